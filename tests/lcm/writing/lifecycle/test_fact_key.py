"""The key of a replaceable truth; the vectors of the original are in tests/golden."""

import pytest
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


def test_a_colon_goes_before_an_arrow() -> None:
    assert fact_key("entities", "a -> b: c") == "entities:a -> b"


@pytest.mark.parametrize(("length", "is_topic"), [(120, True), (121, False)])
def test_a_topic_has_at_most_120_units(length: int, is_topic: bool) -> None:
    astral = "\U0001f600" * (length // 2) + "x" * (length % 2)
    assert (fact_key("entities", f"{astral}: y") == f"entities:{astral}") is is_topic


@pytest.mark.parametrize(
    ("text", "topic"), [("Tea!!  => oolong", "tea"), ("Tea.: oolong", "tea"), ("Tea. : oolong", "tea.")]
)
def test_a_final_mark_goes_unless_a_blank_parts_it_from_a_colon(text: str, topic: str) -> None:
    assert fact_key("preferences", text) == f"preferences:{topic}"


def test_the_separator_stands_on_the_first_line() -> None:
    assert fact_key("entities", "a\nb: c") == "entities:a b: c"


def test_nothing_is_left_of_punctuation_alone() -> None:
    assert fact_key("entities", "...") is None
    assert fact_key("entities", " \ufeff ") is None
