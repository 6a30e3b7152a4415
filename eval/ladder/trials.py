"""What would have kept a document: other settings of a ranking, each of them really ranked by."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import polars as pl

from eval.ladder.places import FIRST
from eval.measures.coverage import with_near_duplicates
from lcm.errors import LcmError
from lcm.memory.memory import Memory
from lcm.protocols.retrieval import Ranker
from lcm.records.query import Query
from lcm.retrieval.ranking.pipeline import Ranking
from lcm.retrieval.ranking.routed import RoutedRanking

_FACTORS = (2, 4, 16)
"""How many times a limit or a pool is made larger, until that is enough."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One change of a ranking, and where a document stood by it."""

    change: str
    """In words: without near_duplicates; limit.n=80; pools 4 times as large."""
    rank: int


def tried(
    memory: Memory, query: Query, documents: list[str], plan: list[str], first: int = FIRST
) -> list[Trial] | None:
    """Rank a query anew with each stage left out, each limit and all pools made larger.


    Args:
        memory: as it stood when the query was asked.
        documents: of which the best counts.
        plan: the stages that the rows of the query pass, but the one that first gives scores: without it nothing is in
            order.
        first: how many documents are read: where a change lets a document be among them, it is not made greater.
    Returns:
        What moves the document up or lets it be ranked, best first; of changes that cannot be ranked by, none. None
        where the ranking itself gives no order: then nothing is tried.
    """
    ranking = memory.system.ranking
    now = _rank(memory, query, ranking, documents)
    if not isinstance(ranking, Ranking | RoutedRanking) or now is _NOT_RANKED:
        return None
    found = []
    for steps in _changes(ranking, plan):
        before = now
        for change, other in steps:
            rank = _rank(memory, query, other, documents)
            if rank is None or rank is _NOT_RANKED or rank == before:
                continue  # it may be ranked where the change is greater
            if now is None or rank < now:
                found.append(Trial(change, rank))
            before = rank
            if rank <= first:
                break
    return sorted(found, key=lambda trial: trial.rank)


_NOT_RANKED = -1
"""The rank of a document by a ranking that gives no order."""


def _changes(ranking: Ranking | RoutedRanking, plan: list[str]) -> Iterator[Iterator[tuple[str, Ranker]]]:
    """Series of changes, each greater than the one before it."""
    for name in plan:
        stage = ranking.stages.get(name)
        if stage is None:
            continue
        yield iter([(f"without {name}", _with(ranking, name, None))])
        if isinstance(n := getattr(stage, "n", None), int):
            yield (
                (f"{name}.n={n * by}", _with(ranking, name, replace(stage, n=n * by)))  # type: ignore[type-var]
                for by in _FACTORS
            )
    yield ((f"pools {by} times as large", _with_pools(ranking, by)) for by in _FACTORS)


def _with(ranking: Ranking | RoutedRanking, name: str, stage: Any) -> Ranker:
    stages: dict[str, Any] = {**ranking.stages, name: stage}
    return replace(ranking, stages=stages)


def _with_pools(ranking: Ranking | RoutedRanking, by: int) -> Ranker:
    if isinstance(ranking, Ranking):
        return replace(ranking, source=_larger(ranking.source, by))
    paths = {name: getattr(ranking, name) for name in ("hybrid", "vector", "tag")}
    return replace(ranking, **{name: replace(path, source=_larger(path.source, by)) for name, path in paths.items()})


def _larger(part: Any, by: int) -> Any:
    """A source with every pool in it, however deep, so many times as large."""
    if isinstance(part, Mapping):
        return {name: _larger(one, by) for name, one in part.items()}
    if not is_dataclass(part) or isinstance(part, type):
        return part
    changes: dict[str, Any] = {}
    for one in fields(part):
        value = getattr(part, one.name)
        if one.name.endswith("pool_size") and isinstance(value, int):
            changes[one.name] = value * by
        elif one.init and (isinstance(value, Mapping) or is_dataclass(value)):
            changes[one.name] = _larger(value, by)
    return replace(part, **changes) if changes else part


def _rank(memory: Memory, query: Query, ranking: Ranker, documents: list[str]) -> int | None:
    """The best rank of some documents; None where none is ranked, `_NOT_RANKED` where nothing is in order."""
    try:
        ranked = memory.rank([query], ranking)
    except (LcmError, ValueError):  # what a later stage reads is not there
        return _NOT_RANKED
    scores = ranked["score"]
    if scores.null_count() or (len(scores) > 1 and scores.n_unique() == 1):
        return _NOT_RANKED  # rows that score alike, or not at all, stand as the source gave them
    rank = with_near_duplicates(ranked).filter(pl.col("document_id").is_in(documents))["rank"].min()
    assert rank is None or isinstance(rank, int)
    return rank
