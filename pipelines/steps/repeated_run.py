"""A kept run made again: from its folder the experiment that made it, as far as its questions ask."""

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from eval.experiment.experiment import Experiment
from eval.ladder.asking import Asked
from eval.measures.names import SYSTEM_ARM
from lcm.errors import LcmError
from pipelines.steps.kept_runs import KeptRun, kept_runs
from pipelines.steps.point import experiment_of

_ANSWER = ["query_id", "document_id", "rank"]
_ASKED = ("trace", "plan", "found_by", "reasons")
"""What of a `Ranker` an evaluation never calls, so that one of a user's own may lack it."""


@dataclass(frozen=True, slots=True)
class RepeatedRun:
    """A kept run, and the experiment that made it: its rankings can be made again, step by step.

    The replay and the pools of the source come from the stage cache where it still holds them.
    """

    kept: KeptRun
    experiment: Experiment
    answers: pl.DataFrame
    """Rows query_id, document_id, rank of the system's arm, as they are kept."""

    def require_same(self, asked: Asked, answers: pl.DataFrame) -> None:
        """Refuse answers that are not the kept ones.

        Args:
            asked: what was asked again.
            answers: rows of `TRACE_SCHEMA` of some of its queries.
        Raises:
            LcmError: naming the first query that is answered otherwise.
        """
        asked_ids = answers["query_id"].unique(maintain_order=True)
        wanted = self.answers.join(asked_ids.to_frame(), on="query_id", how="semi")
        ours = answers.select(_ANSWER).sort(_ANSWER)
        if ours.equals(wanted.sort(_ANSWER)):
            return
        for query_id in asked_ids:
            before, now = (rows.filter(query_id=query_id).sort("rank") for rows in (wanted, ours))
            if not before.equals(now):
                raise LcmError(
                    f"query {query_id!r} of workspace {asked.workspace_id!r} is answered otherwise today than in "
                    f"{self.kept.folder}: the code has changed since; run `lcm evaluate` again"
                )


def repeated_run(folder: Path) -> RepeatedRun:
    """The experiment of a run folder that `lcm evaluate` wrote.

    Raises:
        LcmError: if it is none, if what it names can no longer be built, its dataset has changed, or its ranking does
            not tell of its steps.
    """
    (kept,) = kept_runs([folder])
    experiment = experiment_of(kept.config)
    told = kept.summary["dataset"]
    if experiment.evaluator.dataset.digest != told["digest"]:
        raise LcmError(f"dataset {told['name']!r} has changed since {folder}: run `lcm evaluate` again")
    ranking = experiment.evaluator.system.ranking
    if missing := [name for name in _ASKED if not callable(getattr(ranking, name, None))]:
        raise LcmError(f"ranking {type(ranking).__name__} has no {missing[0]}(), which is asked of every step: add it")
    answers = kept.run.filter(pl.col("arm") == SYSTEM_ARM).select(_ANSWER)
    return RepeatedRun(kept, experiment, answers)
