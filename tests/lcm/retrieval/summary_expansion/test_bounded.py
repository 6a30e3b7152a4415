"""Which children of summaries are shown: worked cases."""

import math

from lcm.retrieval.summary_expansion import ExpandableSummary, SummaryChild, SummaryExpansion
from tests.lcm.refusals import assert_refused


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
