"""A message of a question without a value is neither found nor missed, wherever misses are counted."""

from pathlib import Path

import polars as pl
import pytest

from eval.ladder.losses import LOSSES_SCHEMA, counted, missed
from eval.ladder.places import FOUND, LATE
from eval.ladder.retrievals import most_missed
from eval.ladder.unseen import UNANSWERED, UNJUDGED
from eval.report.insight import Insight, MessageLadder
from pipelines.views.why_record import losses_record
from pipelines.views.why_table import show_losses

PLACES = [FOUND, LATE, UNANSWERED, UNANSWERED, UNJUDGED]
ROWS = pl.DataFrame(
    [("w", f"q{i}", "one", f"m{i}", place, None) for i, place in enumerate(PLACES)], schema=LOSSES_SCHEMA, orient="row"
)


def test_it_is_no_miss() -> None:
    assert missed(counted(ROWS)["all"]) == {LATE: 1}
    assert most_missed(ROWS, 5) == ["q1"]
    record = losses_record(Path("run"), ROWS)
    assert (record["missed"], record["places"][UNANSWERED]) == (1, 2)


def test_lcm_why_tells_it_apart(capsys: pytest.CaptureFixture[str]) -> None:
    show_losses(Path("run"), ROWS, counted(ROWS), {})
    told = capsys.readouterr().out
    assert "run: 1 of 2 judged messages are missed by the first 10 documents: late 1 = 1" in told
    assert "3 more are neither found nor missed: their questions have no value" in told


def test_a_page_names_no_stage_that_lost_it() -> None:
    ladders = {"q": [MessageLadder("m", UNANSWERED, ())], "r": [MessageLadder("m", LATE, ())]}
    insight = Insight(ROWS, ladders)
    assert (insight.lost("q"), insight.lost("r")) == (None, LATE)
