"""Kept runs: the folders of `lcm evaluate`, with the dataset that they were made on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
from omegaconf import DictConfig, OmegaConf

from eval.dataset.dataset import Dataset
from eval.experiment.run_folder import CONFIG, SUMMARY, read_arms, read_config, read_summary, read_table
from eval.measures.coverage import ranked_messages
from lcm.errors import LcmError
from pipelines.steps.point import dataset_described

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class KeptRun:
    """A run as its folder keeps it."""

    name: str
    """Tells it from the others of its command: the last names of its path."""
    folder: Path
    summary: Mapping[str, Any]
    ranked: pl.DataFrame
    """arm, workspace_id, query_id, message_id, rank, score: of each arm, read as a ranking of messages."""
    run: pl.DataFrame
    """As in `Outcome`."""
    documents: pl.DataFrame
    """As in `Outcome`."""
    config: DictConfig


def kept_runs(folders: Sequence[Path]) -> list[KeptRun]:
    """Read the folders of runs over one dataset.

    Raises:
        LcmError: if one is no run, lacks its rankings, or is of another dataset than the first.
    """
    summaries = {folder: _of_run(folder) for folder in dict.fromkeys(folders)}
    digests = {folder: summary["dataset"]["digest"] for folder, summary in summaries.items()}
    first = next(iter(digests))
    for folder, digest in digests.items():
        if digest != digests[first]:
            raise LcmError(f"{folder} is a run over other data than {first}: name runs over the same dataset")
    return [_kept(folder, name, summaries[folder]) for folder, name in zip(digests, _names([*digests]), strict=True)]


def dataset_of_runs(runs: Sequence[KeptRun]) -> Dataset:
    """The dataset of kept runs, loaded anew.

    Raises:
        LcmError: if its files have changed since.
    """
    config, told = runs[0].config, runs[0].summary["dataset"]
    dataset = dataset_described(config)
    if dataset.digest != told["digest"]:
        raise LcmError(f"dataset {told['name']!r} has changed since {runs[0].folder}: run `lcm evaluate` again")
    return dataset


def _of_run(folder: Path) -> dict[str, Any]:
    """The summary of a run.

    Raises:
        LcmError: if the folder is none, or is that of a sweep or comparison, whose runs it names.
    """
    summary = read_summary(folder)
    if (kind := summary.get("kind", "run")) == "run":
        return summary
    below = (path.parent for path in folder.rglob(SUMMARY) if path.parent != folder)
    runs = sorted(str(one) for one in below if (one / CONFIG).is_file())
    shown = ", ".join(runs[:_SHOWN]) + (f" and {len(runs) - _SHOWN} more" if len(runs) > _SHOWN else "")
    raise LcmError(f"{folder} is a {kind}, no run: name {f'one of its runs: {shown}' if runs else 'a run'}")


def _kept(folder: Path, name: str, summary: Mapping[str, Any]) -> KeptRun:
    missing = [file for file in (CONFIG, "run.parquet", "documents.parquet") if not (folder / file).is_file()]
    if missing:
        raise LcmError(f"{folder} has no {missing[0]}: name a folder that `lcm evaluate` wrote")
    run, documents = read_arms(folder, "run"), read_table(folder / "documents.parquet")
    config = OmegaConf.create(read_config(folder))
    assert isinstance(config, DictConfig)
    return KeptRun(name, folder, summary, ranked_messages(run, documents), run, documents, config)


def _names(folders: Sequence[Path]) -> list[str]:
    """The shortest ends of their paths that differ."""
    parts = [folder.resolve().parts[1:] for folder in folders]
    for length in range(1, max(map(len, parts)) + 1):
        names = ["-".join(part[-length:]) for part in parts]
        if len(set(names)) == len(names):
            return names
    return ["-".join(part) for part in parts]
