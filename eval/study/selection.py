"""Selection: by which shares of a dataset trials are judged, which one a study picks, and what that is worth.

The best of many trials is partly luck: the more were tried, the more its value promises too much. So for each fold the
trial is picked by the other folds alone, and its value in that fold counts. Over all folds that is the cross-validated
value of *picking by this rule*; the picked trial's own mean minus that is the optimism. Rungs are smaller shares, at
which poor trials are stopped.
"""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, sqrt
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from eval.dataset.dataset import Dataset
from eval.measures.names import SYSTEM_ARM
from eval.measures.retrieval import judged_queries, workspace_of_query
from eval.run import Run
from eval.study.settings import Objective
from lcm.errors import LcmError


@dataclass(frozen=True, slots=True)
class Fold:
    """Workspaces that are held out together."""

    name: str
    workspaces: tuple[str, ...]


def folds_of(dataset: Dataset, fold_count: int | Literal["workspace"]) -> tuple[Fold, ...]:
    """Cut a dataset into folds with about as many judged queries each; those of a workspace stay together.

    Args:
        fold_count: how many; `workspace` = one for each workspace that has judged queries.
    Returns:
        A single fold where a single workspace is judged.
    Raises:
        LcmError: if there are fewer such workspaces than folds.
    """
    workspaces = dataset.workspaces
    asked = workspace_of_query(dataset).join(judged_queries(dataset), on="query_id", how="semi")
    judged = Counter(asked["workspace_id"].to_list())
    n = len(judged) if fold_count == "workspace" else fold_count
    if n > len(judged):
        raise LcmError(
            f"study.folds={fold_count}: {dataset.name} has {len(judged)} workspaces with judged queries; set "
            f"study.folds to workspace or to at most {max(2, len(judged))}"
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
    if fold_count == "workspace":
        return tuple(Fold(next(one for one in part if judged[one]), tuple(part)) for part in parts)
    return tuple(Fold(str(i), tuple(part)) for i, part in enumerate(parts, 1))


FACTOR = 4
"""Of the trials that reach a rung one in so many goes on, to so many times the queries."""
_PARTS = (FACTOR**2, FACTOR)
"""A rung asks one in so many of the queries."""
_LEAST = 8
"""Queries, of which fewer tell no trials apart."""


@dataclass(frozen=True, slots=True)
class Rung:
    """A share of the judged queries, from a share of the conversations."""

    step: int
    """What a trial has spent when it has come through, a first rung being 1."""
    name: str
    """The share: `1/16`."""
    part: Dataset
    """The workspaces that are replayed, with all that is asked of them."""
    sample: Dataset
    """What is asked of them, and judged."""


def rungs_of(dataset: Dataset, seed: int) -> tuple[Rung, ...]:
    """The rungs below the whole, which is measured as ever.

    A share is taken of conversations and of their queries alike: for one in 16, one in four conversations is replayed,
    and one in four of their queries asked; more conversations where so few have not queries enough. Which ones is drawn
    by the seed; a rung replays what the rungs before it do.

    Raises:
        LcmError: if a quarter of the judged queries is too few to stop anything by.
    """
    judged = set(judged_queries(dataset)["query_id"])
    by_workspace: dict[str, list[str]] = {}
    for query in dataset.queries:
        if query.query_id in judged:
            by_workspace.setdefault(query.workspace_id, []).append(query.query_id)
    drawn = {workspace: _drawn(ids, seed) for workspace, ids in by_workspace.items()}
    order = _drawn(list(drawn), seed)
    rungs: list[Rung] = []
    for parts in _PARTS:
        wanted = ceil(len(judged) / parts)
        if wanted < _LEAST:
            continue
        chosen = _enough(order, drawn, ceil(sqrt(1 / parts) * len(order)), wanted)
        there = sum(len(drawn[workspace]) for workspace in chosen)
        asked = {
            one for workspace in chosen for one in drawn[workspace][: ceil(wanted * len(drawn[workspace]) / there)]
        }
        part = dataset.part(chosen)
        rungs.append(Rung(FACTOR ** len(rungs), f"1/{parts}", part, part.asking(asked)))
    if not rungs:
        raise LcmError(
            f"study.pruner=halving stops trials by a quarter of the judged queries at most, and {dataset.name} has "
            f"{len(judged)} in all: fewer than {_LEAST * FACTOR - FACTOR + 1} tell too little; choose study.pruner=none"
        )
    return tuple(rungs)


def _drawn(names: Sequence[str], seed: int) -> list[str]:
    """In an order by chance, which the seed decides."""
    return sorted(names, key=lambda name: hashlib.sha256(f"{seed} {name}".encode("utf-8", "surrogatepass")).digest())


def _enough(order: Sequence[str], drawn: dict[str, list[str]], least: int, wanted: int) -> list[str]:
    """The first workspaces, at least so many, that hold as many queries as are wanted."""
    chosen: list[str] = []
    there = 0
    for workspace in order:
        if len(chosen) >= least and there >= wanted:
            break
        chosen.append(workspace)
        there += len(drawn[workspace])
    return chosen


Sums = Mapping[str, Mapping[str, Sequence[float]]]
"""Measure -> fold -> sum over its queries that the measure judges, and how many these are."""


@dataclass(frozen=True, slots=True)
class FinishedTrial:
    """A trial of a study that has its values."""

    number: int
    assignment: Mapping[str, Any]
    values: tuple[float, ...]
    """By objective."""
    sums: Sums
    same_as: int | None = None
    """The trial whose configuration this is too, and whose values were taken over."""


def values_by_query(folder: Path) -> pl.DataFrame:
    """What a run found for each query: rows workspace_id, query_id, measure, value."""
    run = Run(folder)
    asked, values = run.frame("queries", ["query_id", "workspace_id"]), run.frame("per_query").filter(arm=SYSTEM_ARM)
    return values.join(asked, on="query_id", how="left", maintain_order="left").select(
        "workspace_id", "query_id", "measure", "value"
    )


def sums_by_fold(values: pl.DataFrame, objectives: Sequence[Objective], folds: Sequence[Fold]) -> Sums:
    """Sum what was found for each query, by fold; times, which no query has, are left out.

    Args:
        values: as `values_by_query` gives them.
    """
    of_workspace = {workspace: fold.name for fold in folds for workspace in fold.workspaces}
    by_fold = (
        values.with_columns(fold=pl.col("workspace_id").replace_strict(of_workspace, return_dtype=pl.String))
        .group_by("measure", "fold")
        .agg(pl.col("value").sum(), n=pl.len())
    )
    found = {(measure, fold): [total, float(n)] for measure, fold, total, n in by_fold.iter_rows()}
    return {
        one.measure: {fold.name: found.get((one.measure, fold.name), [0.0, 0.0]) for fold in folds}
        for one in objectives
        if not one.is_time
    }


def table(
    trials: Sequence[FinishedTrial], objectives: Sequence[Objective], folds: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Sums and counts, each of shape (trials, objectives, folds).

    A time is that of the whole run in every fold, with a count of 1.
    """
    shape = (len(trials), len(objectives), len(folds))
    sums, counts = np.zeros(shape), np.zeros(shape)
    for t, trial in enumerate(trials):
        for o, one in enumerate(objectives):
            if one.is_time:
                sums[t, o], counts[t, o] = trial.values[o], 1.0
            else:
                pairs = np.array([trial.sums[one.measure][fold] for fold in folds])
                sums[t, o], counts[t, o] = pairs[:, 0], pairs[:, 1]
    return sums, counts


@dataclass(frozen=True, slots=True)
class HeldOut:
    """The score of one held-out fold by the trial that the other folds picked."""

    fold: str
    queries: int
    """That the first objective judges."""
    picked: int
    """Number of the trial."""
    training: float
    """Mean of the first objective in the folds that picked it."""
    value: float
    """In the fold itself."""
    chosen_trial_value: float
    """In this fold, of the trial that all folds together pick."""


@dataclass(frozen=True, slots=True)
class CrossValidation:
    """The cross-validated score of a study's first objective, fold by fold."""

    folds: tuple[HeldOut, ...]
    estimate: float
    """Mean over all queries, each judged by the trial that the other folds picked."""
    in_sample: float
    """Mean over all queries of the trial that they pick together."""
    optimism: float
    """How much better the latter looks; in the direction of the objective, so that positive is too good."""
    spread: float
    """Standard deviation over folds of the held-out values; n - 1 in the denominator."""
    agreement: int
    """Folds whose others pick the very trial that all pick."""
    rivals: int
    """Other trials that are no more than one standard error of the paired difference over folds behind the best."""


def front(signed: np.ndarray) -> np.ndarray:
    """Which rows no other is better than: as good in every column and better in one.

    Args:
        signed: shape (trials, objectives), the larger the better.
    Returns:
        shape (trials,), bool.
    """
    at_least = (signed[:, None, :] >= signed[None, :, :]).all(axis=2)
    better = (signed[:, None, :] > signed[None, :, :]).any(axis=2)
    return np.asarray(~(at_least & better).any(axis=0))


def pick(values: np.ndarray, objectives: Sequence[Objective]) -> int:
    """The row of the Pareto front that the objectives pick in their order; the first of equals.

    Of those within `within` of the best by the first objective, those within that of the second of the best by the
    second, and so on; of what the last leaves, its best.

    Args:
        values: shape (trials, objectives), none NaN, at least one row.
    """
    signed = values * np.array([one.sign for one in objectives])
    left = np.flatnonzero(front(signed))
    for o, one in enumerate(objectives):
        slack = one.within if o + 1 < len(objectives) else 0.0
        column = signed[left, o]
        left = left[column >= column.max() - slack]
    return int(left[0])


def best(trials: Sequence[FinishedTrial], objectives: Sequence[Objective]) -> FinishedTrial:
    """The trial that a study picks by its means over all queries."""
    return trials[pick(np.array([trial.values for trial in trials]), objectives)]


def pareto_front(trials: Sequence[FinishedTrial], objectives: Sequence[Objective]) -> list[FinishedTrial]:
    """The trials of the Pareto front."""
    signed = np.array([trial.values for trial in trials]) * np.array([one.sign for one in objectives])
    return [trial for trial, is_in in zip(trials, front(signed), strict=True) if is_in]


def cross_validated(
    trials: Sequence[FinishedTrial], objectives: Sequence[Objective], folds: Sequence[str]
) -> CrossValidation | None:
    """Hold each fold out once; None where there is no second fold, or where the first objective has none.

    A fold in which the first objective judges no query is part of every other's training, and is not held out.
    """
    if len(folds) < 2 or objectives[0].is_time:
        return None
    sums, counts = table(trials, objectives, folds)
    chosen = pick(_means(sums, counts), objectives)
    held = [f for f in range(len(folds)) if counts[0, 0, f] > 0]
    if len(held) < 2:
        return None
    rows = []
    total = 0.0
    for f in held:
        others = [i for i in range(len(folds)) if i != f]
        training = _means(sums[:, :, others], counts[:, :, others])
        picked = pick(training, objectives)
        total += sums[picked, 0, f]
        rows.append(
            HeldOut(
                fold=folds[f],
                queries=int(counts[picked, 0, f]),
                picked=trials[picked].number,
                training=float(training[picked, 0]),
                value=float(sums[picked, 0, f] / counts[picked, 0, f]),
                chosen_trial_value=float(sums[chosen, 0, f] / counts[chosen, 0, f]),
            )
        )
    estimate = total / sum(row.queries for row in rows)
    in_sample = float(sums[chosen, 0].sum() / counts[chosen, 0].sum())
    sign = objectives[0].sign
    return CrossValidation(
        folds=tuple(rows),
        estimate=float(estimate),
        in_sample=in_sample,
        optimism=float(sign * (in_sample - estimate)),
        spread=float(np.std([row.value for row in rows], ddof=1)),
        agreement=sum(row.picked == trials[chosen].number for row in rows),
        rivals=_rivals(sums[:, 0, held] / counts[:, 0, held] * sign, [trial.same_as is None for trial in trials]),
    )


def _means(sums: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Means over queries, shape (trials, objectives); 0 where nothing is judged, in all trials alike."""
    totals = counts.sum(axis=2)
    return np.asarray(np.divide(sums.sum(axis=2), totals, out=np.zeros_like(totals), where=totals > 0))


def _rivals(by_fold: np.ndarray, is_own: Sequence[bool]) -> int:
    """How many trials beside the best by the mean of folds are within one standard error of it.

    Args:
        by_fold: shape (trials, folds), the larger the better.
        is_own: whether a trial is more than a repetition of another.
    """
    first = int(by_fold.mean(axis=1).argmax())
    behind = by_fold[first] - by_fold
    errors = behind.std(axis=1, ddof=1) / np.sqrt(by_fold.shape[1])
    is_near = behind.mean(axis=1) <= errors
    return int(sum(near and own for i, (near, own) in enumerate(zip(is_near, is_own, strict=True)) if i != first))
