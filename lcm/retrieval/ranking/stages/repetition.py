"""Say a thing once: what stands beside something better or repeats it counts less, or steps back."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from lcm.checks import check_choice, check_range
from lcm.protocols.columns import Places, numbers_of
from lcm.protocols.contract import Contract
from lcm.protocols.models import Vectors
from lcm.protocols.retrieval import REASONS_SCHEMA, Batch
from lcm.retrieval.frames import (
    beside,
    best_first,
    first_rows,
    places,
    query_numbers,
    query_runs,
    rows_by_size,
    told_of,
    turn_of,
)
from lcm.retrieval.lookup import rows_of, vectors_of

_GATHERED_FLOATS = 2_000_000
"""How many components of vectors are laid out at once: 8 MB, which caches hold."""
_Said = frozenset[tuple[str, str]]
"""Pairs of neighbouring words; the first word stands beside the role that speaks."""
_NOTHING: _Said = frozenset()
_SAID_AT_HAND = 1 << 13
"""Texts whose pairs stay at hand: the documents of a conversation come up again in query after query."""


@dataclass(frozen=True, slots=True)
class Crowding:
    """score - penalty * n * the standard deviation of the query's scores, where n documents of one place are better.

    A place is a turn, whose passages are the documents that one message or step was cut into; or a session, so that
    what was told on several occasions is found on more of them. Of equal ones the earlier row is the better. Nothing
    changes where every document is a turn of its own, or stands in no session; nor does the order within one place.

    Source: ours; after the diminishing returns of maximal marginal relevance (Carbonell and Goldstein 1998).
    """

    penalty: float = 1.0
    """In standard deviations; 0: none."""
    within: Literal["turn", "session"] = "turn"
    """The place whose documents count together."""

    def __post_init__(self) -> None:
        check_range(self, "penalty", ge=0)
        check_choice(self, within=Literal["turn", "session"])

    def reasons(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        """Of what stands beside something better, by how much its score falls."""
        cost = (frame["score"] - self(frame, batch)["score"]).round(3)
        told = pl.format(f"loses {{}} to better documents of the same {self.within}", "cost")
        return told_of(frame.with_columns(cost=cost).filter(pl.col("cost") > 0), told)

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        if frame.is_empty():
            return frame
        scores = numbers_of(frame["score"])
        queries = query_numbers(frame)
        cost = self.penalty * _ranks(self._places(frame), scores) * _spreads(scores, queries)[queries]
        return beside(frame, [frame["score"] - pl.Series(cost)])

    def _places(self, frame: pl.DataFrame) -> Places:
        """The number of each row's place, of no other query's."""
        if self.within == "turn":
            return turn_of(frame, "query_id").to_numpy()
        is_placed = pl.all_horizontal(pl.col("conversation_id", "session_id").is_not_null())
        return first_rows(frame, is_placed, "query_id", "conversation_id", "session_id").to_numpy()


def _ranks(places: Places, scores: npt.NDArray[np.float64]) -> Places:
    """How many rows of its own place each row has before it, by score, then as they stand; what is no number last.

    Args:
        places: of each row, counted from 0.
    """
    ranks = np.zeros(len(places), dtype=np.int64)
    rows = np.flatnonzero(np.bincount(places)[places] > 1)  # most stand alone in their turn
    order = rows[np.argsort(-scores[rows], kind="stable")]
    narrow = places[order].astype(np.min_scalar_type(places.max(initial=0)))  # 16 bits are sorted by their digits
    order = order[np.argsort(narrow, kind="stable")]
    ordered = places[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))
    sizes = np.diff(starts, append=len(ordered))
    ranks[order] = np.arange(len(order)) - np.repeat(starts, sizes)
    return ranks


def _spreads(scores: npt.NDArray[np.float64], queries: Places) -> npt.NDArray[np.float64]:
    """The standard deviation of the finite scores of each query; 0 of none."""
    starts = np.flatnonzero(np.diff(queries, prepend=-1))
    parts = np.split(scores, starts[1:])
    finite = (part[np.isfinite(part)] for part in parts)
    return np.array([part.std() if len(part) else 0.0 for part in finite])


@dataclass(frozen=True, slots=True)
class Diversity:
    """Walk down the ranks; a document nearer than the threshold to one already taken goes behind all that are taken.

    Near is a cosine strictly above the threshold. Both groups keep their order, nothing is dropped and no score
    changes: the column `deferred` says who steps back, and `best_first` heeds it. A document without a vector is near
    to none.

    Source: memory-lancedb-pro, applyMMRDiversity.
    """

    similarity_threshold: float = 0.85

    contract: ClassVar[Contract] = Contract(compares_vectors=True)

    def __post_init__(self) -> None:
        check_range(self, "similarity_threshold", ge=-1, le=1)

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        ordered = best_first(frame)
        return best_first(beside(ordered, [pl.Series("deferred", self._deferred(ordered, batch))]))

    def reasons(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        """Of what steps back, the taken document that it is nearest to, and how near."""
        ordered = best_first(frame)
        is_deferred, rows = self._deferred(ordered, batch), []
        vectors, vector_of_row = vectors_of(batch, ordered["document_id"])
        queries, ids = ordered["query_id"].to_list(), ordered["document_id"].to_list()
        for row in np.flatnonzero(is_deferred):
            better = [other for other in range(row) if queries[other] == queries[row] and not is_deferred[other]]
            cosines = vectors[vector_of_row[better]] @ vectors[vector_of_row[row]]
            nearest = int(np.argmax(cosines))
            told = f"cosine {cosines[nearest]:.3f} to a better document, above {self.similarity_threshold:g}"
            rows.append((queries[row], ids[row], told, ids[better[nearest]]))
        return pl.DataFrame(rows, schema=REASONS_SCHEMA, orient="row")

    def _deferred(self, ordered: pl.DataFrame, batch: Batch) -> npt.NDArray[np.bool_]:
        is_deferred = np.zeros(len(ordered), dtype=np.bool_)
        if not len(ordered) or places(ordered).max() == 0:
            return is_deferred
        vectors, vector_of_row = vectors_of(batch, ordered["document_id"])
        # A query's rows are compared in a matrix of their own size: padded, they could round in another way.
        for rows in rows_by_size(ordered, _GATHERED_FLOATS // max(1, vectors.shape[1])):
            is_deferred[rows] = _stepping_back(vectors[vector_of_row[rows]], self.similarity_threshold)
        return is_deferred


def _stepping_back(vectors: Vectors, threshold: float) -> npt.NDArray[np.bool_]:
    """Which rows step back.

    Args:
        vectors: shape (queries, rows, dim), rows in rank order.
        threshold: of the cosine.
    Returns:
        Shape (queries, rows).
    """
    # Copied, for BLAS sends small matrices that share their memory a way that takes ten times as long.
    cosines = np.matmul(vectors, np.ascontiguousarray(vectors.transpose(0, 2, 1)))
    is_near = np.tril(cosines > threshold, -1)
    has_vector = np.diagonal(cosines, axis1=1, axis2=2) > 0
    if not has_vector.all():
        is_near &= has_vector[:, :, np.newaxis] & has_vector[:, np.newaxis]
    later, earlier = _pairs(is_near)
    is_deferred = np.zeros(has_vector.size, dtype=np.bool_)
    # In rounds, each for all ranks at once: near duplicates are few, and chains of them short.
    while len(later):
        is_open = np.zeros(has_vector.size, dtype=np.bool_)
        is_open[later] = True
        is_deferred[later[~is_open[earlier]]] = True
        undecided = ~(is_deferred[later] | is_deferred[earlier])
        later, earlier = later[undecided], earlier[undecided]
    return is_deferred.reshape(has_vector.shape)


def _pairs(is_near: npt.NDArray[np.bool_]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Of every near pair the later row and the earlier one, counted over all queries."""
    size = is_near.shape[1]
    later, column = np.divmod(np.flatnonzero(is_near), size)
    return later, later - later % size + column


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
