"""Folds: a dataset cut between its workspaces, run part by part, and put together again.

Nothing passes from one workspace to another, so the parts' values are those of the whole run.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import polars as pl

from eval.dataset.dataset import Dataset
from eval.experiment.experiment import Experiment, Outcome
from eval.measures.retrieval import judged_queries, workspace_of_query
from lcm.errors import LcmError


@dataclass(frozen=True, slots=True)
class Fold:
    """Workspaces that are held out together."""

    name: str
    workspaces: tuple[str, ...]


def folds_of(dataset: Dataset, wanted: int | Literal["workspace"]) -> tuple[Fold, ...]:
    """Cut a dataset into folds with about as many judged queries each; those of a workspace stay together.

    Args:
        wanted: how many; `workspace` = one for each workspace that has judged queries.
    Returns:
        A single fold where a single workspace is judged.
    Raises:
        LcmError: if there are fewer such workspaces than folds are wanted.
    """
    workspaces = dataset.workspaces
    asked = workspace_of_query(dataset).join(judged_queries(dataset), on="query_id", how="semi")
    judged = Counter(asked["workspace_id"].to_list())
    n = len(judged) if wanted == "workspace" else wanted
    if n > len(judged):
        raise LcmError(
            f"study.folds={wanted}: {dataset.name} has {len(judged)} workspaces with judged queries; set study.folds "
            f"to workspace or to at most {max(2, len(judged))}"
        )
    if n <= 1:
        return (Fold("all", tuple(workspaces)),)
    members: list[list[str]] = [[] for _ in range(n)]
    sizes = [0] * n
    for workspace in sorted(workspaces, key=lambda one: -judged[one]):
        smallest = min(range(n), key=lambda i: (sizes[i], len(members[i])))
        members[smallest].append(workspace)
        sizes[smallest] += judged[workspace]
    place = {workspace: i for i, workspace in enumerate(workspaces)}
    parts = sorted((sorted(part, key=place.__getitem__) for part in members), key=lambda part: place[part[0]])
    if wanted == "workspace":
        return tuple(Fold(next(one for one in part if judged[one]), tuple(part)) for part in parts)
    return tuple(Fold(str(i), tuple(part)) for i, part in enumerate(parts, 1))


def part_of(experiment: Experiment, fold: Fold) -> Experiment:
    return replace(experiment, dataset=experiment.dataset.part(fold.workspaces))


def pooled(outcomes: Mapping[str, Outcome], experiment: Experiment) -> Outcome:
    """What the whole experiment would have found, from what it found in each of its folds.

    Equal to the whole run but for `flags`, which say of what fold they are, and for times.

    Args:
        outcomes: fold -> its outcome, of all folds.
    """
    parts = list(outcomes.values())
    dataset = experiment.dataset
    workspaces = dataset.workspaces
    place = {query: i for i, query in enumerate(judged_queries(dataset)["query_id"])}
    values = pl.concat([part.values for part in parts])
    columns = {key: i for i, key in enumerate(values.select("arm", "measure").unique(maintain_order=True).iter_rows())}
    values = (
        values.with_columns(
            column=pl.Series([columns[key] for key in values.select("arm", "measure").iter_rows()], dtype=pl.Int64),
            place=pl.col("query_id").replace_strict(place, return_dtype=pl.Int64),
        )
        .sort("column", "place", maintain_order=True)
        .drop("column", "place")
    )
    quality = pl.concat([part.summary_quality for part in parts])
    retrieval = experiment.retrieval
    incidents = sum((Counter(dict(part.incidents)) for part in parts), Counter[str]())
    return Outcome(
        run=_in_order([part.run for part in parts], workspaces),
        documents=_in_order([part.documents for part in parts], workspaces),
        values=values,
        means=retrieval.means(values, dataset),
        confidence=retrieval.confidence,
        compression=_in_order([part.compression for part in parts], workspaces),
        summary_quality=quality,
        summary_means=experiment.summary_quality.means(
            quality, retrieval.resamples, retrieval.confidence, retrieval.seed
        ),
        decisions=_in_order([part.decisions for part in parts], workspaces),
        counts={name: sum(part.counts[name] for part in parts) for name in parts[0].counts},
        incidents=dict(sorted(incidents.items())),
        flags=shared({name: part.flags for name, part in outcomes.items()}),
        latency={},
        seconds={name: sum(part.seconds[name] for part in parts) for name in parts[0].seconds},
    )


def shared(flags: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """What folds warn of: once where all do, else with the name of the fold."""
    times = Counter(flag for of_fold in flags.values() for flag in of_fold)
    told = (
        flag if times[flag] == len(flags) else f"fold {name}: {flag}"
        for name, of_fold in flags.items()
        for flag in of_fold
    )
    return tuple(dict.fromkeys(told))


def _in_order(parts: Sequence[pl.DataFrame], workspaces: Sequence[str]) -> pl.DataFrame:
    """Rows of several folds in the order of the workspaces."""
    position = {workspace: i for i, workspace in enumerate(workspaces)}
    rows = pl.concat(parts)
    places = pl.col("workspace_id").replace_strict(position, return_dtype=pl.Int64)
    return rows.with_columns(_place=places).sort("_place", maintain_order=True).drop("_place")
