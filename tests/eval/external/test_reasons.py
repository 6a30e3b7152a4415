"""What an external memory is not measured by is told, and why: a question without a value, a measure of our own."""

from typing import Any

import polars as pl
import pytest

from eval.experiment.experiment import Experiment
from eval.experiment.external_outcome import _of_queries
from eval.experiment.workspace import WorkspaceEvaluator
from eval.external.python_object import PythonObject
from eval.external.ranking.external import External
from eval.external.reading import ASKED_SCHEMA
from eval.measures.measure import Measure
from eval.measures.resume import Resume
from eval.measures.survival import Survival
from eval.replay.bulk import Bulk
from lcm.errors import LcmError
from lcm.redaction import REDACTED
from tests.eval.external.test_stand_ins import dataset
from tests.support.workspaces import system


def flags(*faults: tuple[str | None, str | None]) -> list[str]:
    rows: list[dict[str, Any]] = [
        {"query_id": f"q{i}", "fault": fault, "detail": detail, "named": 1} for i, (fault, detail) in enumerate(faults)
    ]
    return list(
        _of_queries(pl.DataFrame(rows, schema=ASKED_SCHEMA, orient="row").with_columns(none=0, exact=0, near=0))
    )


def test_the_first_reason_of_each_kind_is_told() -> None:
    told = flags(
        (None, None),
        ("crashed", "crashed: it ended with exit code 1: ValueError: boom"),
        ("error", "error: index is locked"),
        ("error", "error: index is gone"),
    )
    assert told[1] == (
        "gave no answer to 3, which have no value, not 0: 2 error (index is locked), "
        "1 crashed (it ended with exit code 1: ValueError: boom); means are of the others"
    )


@pytest.mark.parametrize("answered", [True, False], ids=["where some were answered", "where none was"])
def test_a_reason_is_one_line_that_gives_no_key_away_and_commands_no_terminal(answered: bool) -> None:
    hostile = "error: \x1b[2Jno\nsuch key sk-proj-abcdefghijklmnopqrstuvwxyz0123456789"
    told = flags(*([(None, None)] if answered else []), ("error", hostile))[-1]
    assert f"\ufffd[2Jno such key {REDACTED}" in told
    assert told.isprintable()


@pytest.mark.parametrize("measure", [Survival(), Resume()], ids=["survival", "resume"])
def test_measures_that_play_sessions_of_ours_are_refused(measure: Measure) -> None:
    external = system(ranking=External(PythonObject("tests.support.external.memories.Newest")))
    with pytest.raises(LcmError, match=r"measures=played plays sessions itself, .* not the external memory: leave it"):
        Experiment(WorkspaceEvaluator(dataset(), external, Bulk(), {"played": measure}))
