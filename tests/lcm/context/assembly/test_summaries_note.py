"""What the system prompt is told of summaries."""

import pytest

from lcm.context.assembly.summaries_note import summaries_note, tier
from tests.lcm.context.assembly.recorded import summary

LEAF, CONDENSED, DEEP = summary("a"), summary("a", depth=1), summary("a", depth=2)


@pytest.mark.parametrize(
    ("summaries", "due"),
    [
        ([], "none"),
        ([LEAF] * 5, "light"),
        ([LEAF, CONDENSED], "light"),
        ([CONDENSED, CONDENSED], "heavy"),
        ([DEEP], "heavy"),
    ],
)
def test_the_note_is_long_where_much_was_condensed(summaries: list[object], due: str) -> None:
    assert tier(summaries) == due  # type: ignore[arg-type]
    assert bool(summaries_note(summaries)) == (due != "none")  # type: ignore[arg-type]


@pytest.mark.parametrize("summaries", [[LEAF], [DEEP]])
@pytest.mark.parametrize(
    "obligation",
    ["compacted", "compressed cue", "not prove exact wording", '"Expand for details about:"', "lcm_grep",
     "lcm_expand_query", "ids of the summaries"],
)  # fmt: skip
def test_every_tier_says(summaries: list[object], obligation: str) -> None:
    assert obligation in summaries_note(summaries)  # type: ignore[arg-type]


def test_the_light_tier_asks_to_state_uncertainty() -> None:
    assert "State your uncertainty" in summaries_note([LEAF])


@pytest.mark.parametrize(
    "obligation",
    ["exact commands", "SHAs", "file paths", "timestamps", "configuration values", "what caused what",
     "Expand before you state", "focused prompt", "Cite the ids", "check what is uncertain", "Never guess"],
)  # fmt: skip
def test_the_heavy_tier_demands(obligation: str) -> None:
    assert obligation in summaries_note([DEEP])
    assert obligation not in summaries_note([LEAF])


def test_the_heavy_tier_gives_the_flow_in_order() -> None:
    told = summaries_note([DEEP])
    steps = [told.index(step) for step in ("1. lcm_grep", "2. lcm_expand_query", "3. Cite the ids")]
    assert steps == sorted(steps)
