"""Which children of summaries are shown: worked cases."""

import math

from lcm.retrieval.summary_expansion.bounded import ExpandableSummary, SummaryChild, SummaryExpansion
from tests.lcm.retrieval.refusals import assert_refused

CHILDREN = {
    "sure": [
        SummaryChild("a", 0.5, 10),
        SummaryChild("b", 0.4, 0),
        SummaryChild("c", 0.9, 30),
        SummaryChild("d", 0.2, 5),
    ]
}


def children(summary_id: str, depth: int) -> list[SummaryChild]:
    return CHILDREN.get(summary_id, [])


def test_children_of_sure_summaries_are_added_while_they_fit_and_score_less() -> None:
    opened = [ExpandableSummary("unsure", 0.69), ExpandableSummary("sure", 0.7, depth=1)]
    expanded = SummaryExpansion(token_budget=20).expand(opened, children)
    assert [one.item_id for one in expanded] == ["a", "d"]  # b has no cost; c takes 30 of the 10 left
    assert [one.score for one in expanded] == [0.5 * 0.85, 0.2 * 0.85]
    assert {(one.parent_id, one.depth) for one in expanded} == {("sure", 2)}


def test_nothing_is_opened_once_nothing_is_left() -> None:
    asked = []

    def counted(summary_id: str, depth: int) -> list[SummaryChild]:
        asked.append(summary_id)
        return [SummaryChild(f"of-{summary_id}", 0.5, 20)]

    SummaryExpansion(token_budget=20).expand([ExpandableSummary("one", 1), ExpandableSummary("two", 1)], counted)
    assert asked == ["one"]


def test_settings_out_of_range_are_refused() -> None:
    assert_refused(SummaryExpansion, "be >= 1", depth=0)
    assert_refused(SummaryExpansion, "be >= 0 or null", token_budget=-1)
    assert_refused(SummaryExpansion, "be in [0, 1]", confidence_threshold=math.nan)
