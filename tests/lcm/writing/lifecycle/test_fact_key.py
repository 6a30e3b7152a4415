"""The key of a replaceable truth; the vectors of the original are in tests/golden."""

from hypothesis import given
from hypothesis import strategies as st

from lcm.records.document import MEMORY_CATEGORIES
from lcm.writing.lifecycle.fact_key import fact_key

TOPICS = st.text("abz", min_size=1, max_size=20)


@given(st.sampled_from(MEMORY_CATEGORIES), TOPICS, st.text("xy :->", max_size=10))
def test_only_truths_that_are_replaced_have_a_key(category: str, topic: str, rest: str) -> None:
    expected = f"{category}:{topic}" if category in ("preferences", "entities") else None
    assert fact_key(category, f"{topic}: {rest}") == expected


@given(TOPICS, st.sampled_from([":", "：", "->", "=>"]))
def test_case_blanks_and_what_follows_the_separator_do_not_tell_topics_apart(topic: str, separator: str) -> None:
    assert fact_key("preferences", f"  {topic.upper()}{separator} vim") == fact_key(
        "preferences", f"{topic}{separator} emacs "
    )


def test_a_topic_has_at_most_120_units() -> None:
    longest = "\U0001f600" * 60
    assert fact_key("entities", f"{longest}: y") == f"entities:{longest}"
    assert fact_key("entities", f"{longest}x: y") == f"entities:{longest}x: y"
