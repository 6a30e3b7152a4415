"""Say a thing once: what repeats something better word for word steps back, and that stands for it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
import polars as pl

from lcm.checks import check_range
from lcm.protocols.retrieval import Batch
from lcm.retrieval.frames import beside
from lcm.retrieval.lookup import rows_of
from lcm.retrieval.ranking.ordering import best_first, query_runs

_Said = frozenset[tuple[str, str]]
"""Pairs of neighbouring words; the first word stands beside the role that speaks."""

_NOTHING: _Said = frozenset()
_SAID_AT_HAND = 1 << 13
"""Texts whose pairs stay at hand: the documents of a conversation come up again in query after query."""


@dataclass(frozen=True, slots=True)
class NearDuplicates:
    """Walk down the ranks of each query until `n` documents that differ are found. One that says nothing which a better
    one does not say too, and is `least_shared` of that, is its near duplicate: it goes behind all others (`deferred`),
    and the better one's column `stands_for` names it.

    It says nothing else where the same role speaks and each pair of neighbouring words, signs and all, is in the better
    one: a denial, another number, another speaker or another order is something new.

    Source: ours; the resemblance and containment of Broder (1997), On the resemblance and containment of documents.
    """

    least_shared: float = 0.7
    """Of the better one's pairs of words."""
    n: int = 40
    """As many documents as the ranking lets through."""

    def __post_init__(self) -> None:
        check_range(self, "least_shared", gt=0, le=1)
        check_range(self, "n", ge=1)

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        ordered = best_first(frame)
        ids = ordered["document_id"].to_list()
        likes: list[tuple[int, int]] = []
        first = 0
        for length, _ in query_runs(ordered):
            found = self._found(self._read(batch, ordered["document_id"][first : first + length]))
            likes += [(first + row, first + better) for row, better in found]
            first += length
        deferred = (
            ordered["deferred"]
            if "deferred" in ordered.columns
            else pl.Series("deferred", np.zeros(len(ordered), np.bool_))
        )
        if not likes:
            none = pl.Series("stands_for", [[]], pl.List(pl.String)).new_from_index(0, len(ordered))
            return beside(ordered, [deferred, none])
        stands_for: list[list[str]] = [[] for _ in ids]
        is_like = np.zeros(len(ids), dtype=np.bool_)
        for row, better in likes:
            stands_for[better].append(ids[row])
            is_like[row] = True
        named = pl.Series("stands_for", stands_for, pl.List(pl.String))
        return beside(ordered, [(deferred | pl.Series(is_like)).alias("deferred"), named])

    def reasons(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        """Of each near duplicate, what stands for it."""
        better = self(frame, batch).select("query_id", pl.col("document_id").alias("like_id"), "stands_for")
        told = pl.lit("says nothing that a better document does not say")
        return better.explode("stands_for").drop_nulls("stands_for").select(
            "query_id", pl.col("stands_for").alias("document_id"), told.alias("reason"), "like_id"
        )  # fmt: skip

    def _read(self, batch: Batch, ids: pl.Series) -> Iterator[_Said]:
        """What each document says, read as far as it is asked for: few are looked at of many."""
        for first in range(0, len(ids), 2 * self.n):
            seen = rows_of(batch.documents, ids[first : first + 2 * self.n], ["role", "text"])
            for role, text in zip(seen["role"].to_list(), seen["text"].to_list(), strict=True):
                yield _NOTHING if text is None else _said(role or "", text)

    def _found(self, said_by: Iterable[_Said]) -> Iterator[tuple[int, int]]:
        """Each near duplicate and the better one that it is like, as numbers of documents, which come best first."""
        kept: list[tuple[int, _Said]] = []
        said_before: set[tuple[str, str]] = set()
        for row, said in enumerate(said_by):
            if len(kept) == self.n:
                return
            better = None
            if said <= said_before:  # most documents say something that none before has said
                better = next((place for place, other in kept if self._is_like(said, other)), None)
            if better is None:
                said_before |= said
                kept.append((row, said))
            else:
                yield row, better

    def _is_like(self, said: _Said, better: _Said) -> bool:
        return len(said) >= max(1.0, self.least_shared * len(better)) and said <= better


@lru_cache(_SAID_AT_HAND)
def _said(role: str, text: str) -> _Said:
    return frozenset(pairwise([role, *text.split()]))
