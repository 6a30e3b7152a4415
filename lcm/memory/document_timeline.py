"""The rows of a workspace's documents in the order of time, and which of them a query may see."""

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from datetime import datetime, timedelta

import numpy as np
import polars as pl

from lcm.clock import EPOCH
from lcm.records.document import DEFAULT_RATING, TURN_KINDS

_SANITISED = {"importance": DEFAULT_RATING, "confidence": DEFAULT_RATING}
"""What takes the place of a rating that is no number."""
_MOST_CHUNKS = 32
"""Pieces that the frame may lie in before they are made one."""
_MILLISECOND = timedelta(milliseconds=1)


class DocumentTimeline:
    """The rows of documents by `valid_from`, ties in the order of adding.

    What is taken in waits until somebody reads: then it is put among the others, once for many changes.
    """

    def __init__(self, documents: pl.DataFrame) -> None:
        """Begin with these; ratings that are no number, which only a foreign hand can store, are replaced."""
        self._settled, self.sanitised = _sanitised(documents)
        self._waiting: list[pl.DataFrame] = []
        self._is_sorted = True
        """Whether what waits stands behind what is settled, and in order."""
        self.ids: set[str] = set(documents["document_id"])
        self.scopes: set[str] = set(documents["scope"].unique())
        self._starts = _milliseconds(documents["valid_from"])
        self._latest = self._starts[-1] if self._starts else None
        self._ends = self._ended(documents)

    @property
    def frame(self) -> pl.DataFrame:
        """Every row."""
        if self._waiting:
            frame = pl.concat([self._settled, *self._waiting])
            self._waiting.clear()
            if not self._is_sorted:
                frame = frame.sort("valid_from", maintain_order=True)
                self._starts = array("q", sorted(self._starts))
                self._is_sorted = True
            self._settled = frame.rechunk() if frame.n_chunks() > _MOST_CHUNKS else frame
        return self._settled

    def take_in(self, changed: pl.DataFrame) -> tuple[pl.DataFrame, bool]:
        """Take in rows that were stored or have ended since: the result is what the whole store would give.

        Args:
            changed: by `valid_from`, ties in the order of adding; no instant of being known has changed.
        Returns:
            The rows that are new, and whether all of them came to stand behind those that were there.
        """
        changed, _ = _sanitised(changed)
        new = changed
        if not self.ids.isdisjoint(changed["document_id"]):
            is_new = pl.Series([document_id not in self.ids for document_id in changed["document_id"]])
            new, ended = changed.filter(is_new), changed.filter(~is_new).select("document_id", "invalidated_at")
            self._settled = self.frame.update(ended, on="document_id", include_nulls=True)
        starts = _milliseconds(new["valid_from"])
        is_behind = not starts or self._latest is None or starts[0] >= self._latest
        if starts:
            self._waiting.append(new)
            self._starts += starts
            self._latest = starts[-1] if self._latest is None else max(self._latest, starts[-1])
        self._is_sorted = self._is_sorted and is_behind
        self.ids.update(new["document_id"])
        self.scopes.update(new["scope"])
        if changed["invalidated_at"].null_count() < len(changed):
            self._ends = self._ended(self.frame)
        return new, is_behind

    def moment(self, at: datetime) -> tuple[int, int]:
        """How many documents had begun and how many had ended then: what is visible at equal moments is the same."""
        _ = self.frame  # else the starts may not be in order
        instant = (at - EPOCH) // _MILLISECOND
        return bisect_right(self._starts, instant), bisect_right(self._ends, instant)

    def of(self, scopes: Sequence[str] | None) -> pl.DataFrame:
        """Every document of these scopes, None = all: those that have ended too."""
        return _of_scopes(self.frame, scopes)

    def visible(self, at: datetime, scopes: Sequence[str] | None) -> pl.DataFrame:
        """The documents of these scopes that stood then."""
        begun, ended = self.moment(at)
        documents = self.frame.head(begun)
        if ended:
            documents = documents.filter(pl.col("invalidated_at").is_null() | (pl.col("invalidated_at") > at))
        return _of_scopes(documents, scopes)

    def folded(self, at: datetime, scopes: Sequence[str] | None) -> pl.DataFrame:
        """The documents of messages of these scopes that had ended by then without another in their place."""
        begun, ended = self.moment(at)
        if not ended:
            return self.frame.clear()
        documents = self.frame.head(begun)
        folded = documents.filter(pl.col("invalidated_at") <= at).filter(  # first: few have ended
            pl.col("kind").is_in(TURN_KINDS),
            ~pl.col("document_id").is_in(documents["supersedes"].drop_nulls().implode()),
        )
        return _of_scopes(folded, scopes)

    def note_use(self, use: pl.DataFrame) -> None:
        """Take in that documents were used: columns document_id, access_count, last_accessed_at, decay_tier."""
        self._settled = self.frame.update(use, on="document_id", include_nulls=True)

    @staticmethod
    def _ended(documents: pl.DataFrame) -> "array[int]":
        return _milliseconds(documents["invalidated_at"].drop_nulls().sort())


def _milliseconds(instants: pl.Series) -> "array[int]":
    """Instants since EPOCH: eight bytes each, of half a million."""
    return array("q", instants.to_physical().to_numpy().tobytes())


def _of_scopes(documents: pl.DataFrame, scopes: Sequence[str] | None) -> pl.DataFrame:
    return documents if scopes is None else documents.filter(pl.col("scope").is_in(list(scopes)))


def _sanitised(documents: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """The documents without ratings that are no number, and how many had such."""
    if all(np.isfinite(documents[name].to_numpy()).all() for name in _SANITISED):  # what is null is no number there
        return documents, 0
    broken = ~pl.all_horizontal(pl.col(*_SANITISED).is_finite().fill_null(False))
    count: int = documents.select(broken.sum()).item()
    return documents.with_columns(
        pl.when(pl.col(name).is_finite()).then(name).otherwise(default).alias(name)
        for name, default in _SANITISED.items()
    ), count
