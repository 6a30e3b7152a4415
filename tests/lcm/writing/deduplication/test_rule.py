"""The judge and the merging that need no model."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.protocols.writing import Judgement, Neighbour
from lcm.records.document import Candidate
from lcm.writing.deduplication import LineMerge, RuleJudge
from tests.lcm.refusals import assert_refused
from tests.lcm.writing.admission.tables import candidate, document

LINES = st.lists(st.text("ab c", max_size=6), max_size=4).map("\n".join)


@pytest.mark.parametrize(
    ("text", "category", "known", "cosine", "action"),
    [
        ("The kettle broke", "events", "the kettle broke", 0.99, "skip"),
        ("The kettle broke", "other", "the kettle broke!", 0.95, "skip"),
        ("The kettle broke", "events", "the kettle broke", 0.94, "create"),
        ("The kettle broke again", "events", "the kettle broke", 0.99, "create"),  # 1 of 4 words is new
        ("Ada drinks tea", "entities", "Ada drinks tea", 0.99, "support"),
        ("I like tea from Lipton", "preferences", "I love tea from Lipton", 0.7, "support"),
        ("Editor: emacs", "preferences", "Editor: vim", 0.6, "supersede"),
        ("Editor: emacs", "preferences", "Editor: vim", 0.59, "create"),
        ("Editor: vim with plugins", "preferences", "Editor: vim", 0.8, "merge"),
        ("Editor: emacs", "patterns", "Editor: vim", 0.8, "create"),  # patterns have no fact key
        ("Ada drinks green tea", "entities", "Ada drinks black tea", 0.86, "merge"),
        ("Ada drinks green tea", "entities", "Ada drinks black tea", 0.84, "create"),
    ],
)
def test_the_first_rule_that_holds_decides(text: str, category: str, known: str, cosine: float, action: str) -> None:
    near = [Neighbour(document("d", known, category, content=known), cosine)]
    found = RuleJudge().judge(candidate(text, category, content=text), near, incidents=Counter())
    assert found.action == action
    assert (found.matched is None) == (action == "create")


def judged(one: Candidate, *near: Neighbour) -> Judgement:
    return RuleJudge().judge(one, near, incidents=Counter())


def test_the_author_of_a_message_is_no_topic() -> None:
    said, known = candidate("Ada: the goats eat hay", "entities"), document("d", "Ada: my kettle is red", "entities")
    assert judged(said, Neighbour(known, 0.8)).action == "create"


def test_only_documents_of_the_own_category_are_compared() -> None:
    one, other = candidate("the kettle broke", "events"), Neighbour(document("d", "the kettle broke", "cases"), 1.0)
    found = judged(one, other, Neighbour(document("e", "the kettle broke", "events"), 0.99))
    assert found.matched and found.matched.document_id == "e"
    assert judged(one, other).action == "create"


def test_a_fact_key_that_was_kept_goes_before_one_that_is_derived() -> None:
    kept = document("d", "Uses vim", "preferences", content="Vim", metadata={"fact_key": "preferences:editor"})
    newer = candidate("Editor: emacs", "preferences", content="Emacs")
    assert judged(newer, Neighbour(kept, 0.7)).action == "supersede"


def test_a_threshold_out_of_range_is_refused() -> None:
    bad = [1.1, -1.1, float("nan")]
    assert_refused(RuleJudge, "be in [-1, 1]", same_cosine=bad, topic_cosine=bad, merge_cosine=bad)
    assert_refused(RuleJudge, "be in [0, 1]", same_words=bad, refined_words=bad)


def test_the_newer_lines_stand_first_and_none_is_said_twice() -> None:
    known = document("d", "Ada: tea", overview="- tea\n- Goats", content="Ada drinks tea.\nShe keeps goats.")
    newer = candidate("Ada: green tea", content="she  keeps goats. Three of them.")
    assert LineMerge().merge(known, newer) == (
        "Ada: green tea\nAda: tea",
        "- tea\n- Goats",
        "she  keeps goats. Three of them.\nAda drinks tea.",
    )


@given(newer=LINES, older=LINES)
def test_no_line_is_lost_in_a_merge(newer: str, older: str) -> None:
    merged = LineMerge().merge(document("d", older), candidate(newer))
    assert merged is not None
    kept = [" ".join(line.split()) for line in merged.text.splitlines()]
    for line in [*newer.splitlines(), *older.splitlines()]:
        assert any(" ".join(line.split()) in other for other in kept) or not line.strip()
    assert len(set(kept)) == len(kept)
