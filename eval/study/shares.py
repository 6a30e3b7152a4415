"""Shares of a dataset: folds, which are held out in turn, and rungs, at which poor trials are stopped."""

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, sqrt
from typing import Literal

from eval.dataset.dataset import Dataset
from eval.measures.retrieval import judged_queries, workspace_of_query
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
