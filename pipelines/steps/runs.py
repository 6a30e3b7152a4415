"""Runs that were kept, and what their configurations describe: datasets loaded anew, experiments made again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl
from omegaconf import DictConfig, OmegaConf

from eval.dataset.dataset import Dataset
from eval.experiment.experiment import Experiment
from eval.ladder.losses import Traced
from eval.measures.names import SYSTEM_ARM
from eval.run import CONFIG, Run
from lcm.errors import LcmError
from pipelines.steps.point import dataset_described, experiment_of

_ANSWER = ["query_id", "document_id", "rank"]
_STEPS = ("trace", "plan", "found_by", "reasons")
"""What of a `Ranker` an evaluation never calls, so that one of a user's own may lack it."""


def config_of(run: Run) -> DictConfig:
    """The configuration of a run, which names a dataset."""
    if "dataset" not in run.config:
        missing = "names no dataset" if run.config else "is missing"
        raise LcmError(f"{run.folder / CONFIG} {missing}: name a folder that `lcm evaluate` wrote")
    config = OmegaConf.create(run.config)
    assert isinstance(config, DictConfig)
    return config


def dataset_of_run(run: Run) -> Dataset:
    """The dataset of a run, loaded anew, unchanged since."""
    return _unchanged(dataset_described(config_of(run)), run)


def named_messages(ranked: pl.DataFrame, names: Mapping[tuple[str, str], str]) -> pl.DataFrame:
    """Ranked messages as documents of a collection, by the names that it gives to (workspace, message)."""
    places = ranked.select("workspace_id", "message_id").iter_rows()
    return ranked.with_columns(document_id=pl.Series([names[place] for place in places], dtype=pl.String))


def runs_alike(folders: Sequence[Path]) -> list[Run]:
    """Runs over one dataset, each once, called by the shortest ends of their paths that differ."""
    runs = [Run.open(folder) for folder in dict.fromkeys(folders)]
    for run in runs:
        if run.summary["dataset"]["digest"] != runs[0].summary["dataset"]["digest"]:
            told = f"{run.folder} is a run over other data than {runs[0].folder}"
            raise LcmError(f"{told}: name runs over the same dataset")
        assert run.ranked_messages.width, "what is missing or damaged is told now"
    return [run.having(name) for run, name in zip(runs, _names(runs), strict=True)]


@dataclass(frozen=True, slots=True)
class RepeatedRun:
    """A run, and the experiment that made it: its rankings can be made again, step by step.

    The replay and the pools of the source come from the stage cache where it still holds them.
    """

    run: Run
    experiment: Experiment

    def require_same(self, traced: Traced) -> None:
        """Refuse what was asked again and is answered otherwise."""
        answers = traced.answers
        asked_ids = answers["query_id"].unique(maintain_order=True)
        kept = self.run.rankings.filter(arm=SYSTEM_ARM).select(_ANSWER)
        wanted = kept.join(asked_ids.to_frame(), on="query_id", how="semi")
        ours = answers.select(_ANSWER).sort(_ANSWER)
        if ours.equals(wanted.sort(_ANSWER)):
            return
        for query_id in asked_ids:
            before, now = (rows.filter(query_id=query_id).sort("rank") for rows in (wanted, ours))
            if not before.equals(now):
                where = f"workspace {traced.asked.workspace_id!r}"
                raise LcmError(
                    f"query {query_id!r} of {where} is answered otherwise today than in {self.run.folder}: the code "
                    "has changed since; run `lcm evaluate` again"
                )


def repeated_run(folder: Path) -> RepeatedRun:
    """The experiment of a run folder that `lcm evaluate` wrote, over the same dataset; its ranking tells its steps."""
    run = Run.open(folder)
    assert run.rankings.width, "what is missing or damaged is told now"
    experiment = experiment_of(config_of(run))
    _unchanged(experiment.evaluator.dataset, run)
    ranking = experiment.evaluator.system.ranking
    if missing := [name for name in _STEPS if not callable(getattr(ranking, name, None))]:
        raise LcmError(f"ranking {type(ranking).__name__} has no {missing[0]}(), which is asked of every step: add it")
    return RepeatedRun(run, experiment)


def _unchanged(dataset: Dataset, run: Run) -> Dataset:
    told = run.summary["dataset"]
    if dataset.digest != told["digest"]:
        raise LcmError(f"dataset {told['name']!r} has changed since {run.folder}: run `lcm evaluate` again")
    return dataset


def _names(runs: Sequence[Run]) -> list[str]:
    parts = [run.folder.resolve().parts[1:] for run in runs]
    longest = max(map(len, parts))
    each = (["-".join(part[-length:]) for part in parts] for length in range(1, longest + 1))
    return next((names for names in each if len(set(names)) == len(names)), ["-".join(part) for part in parts])
