"""What stands beside something better counts less: the best of a turn, or of a session, tells most of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from lcm.checks import check_choice, check_range
from lcm.protocols.columns import numbers_of
from lcm.protocols.retrieval import Batch
from lcm.retrieval.frames import beside, told_of
from lcm.retrieval.ranking.ordering import query_numbers
from lcm.retrieval.ranking.turns import FEW, turn_of

Places = npt.NDArray[np.int64]


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
        places, is_placed = self._places(frame, queries)
        better = np.where(is_placed, _ranks(places, scores), 0)
        cost = self.penalty * better * _spreads(scores, queries)[queries]
        return beside(frame, [frame["score"] - pl.Series(cost)])

    def _places(self, frame: pl.DataFrame, queries: Places) -> tuple[Places, npt.NDArray[np.bool_]]:
        """The number of each row's place, of no other query's, and which rows stand in one."""
        if self.within == "turn":
            return turn_of(frame, "query_id").to_numpy(), np.ones(len(frame), dtype=np.bool_)
        if len(frame) <= FEW:
            return _few_sessions(frame["conversation_id"].to_list(), frame["session_id"].to_list(), queries)
        session = pl.struct("conversation_id", "session_id")
        is_placed = pl.all_horizontal(pl.col("conversation_id", "session_id").is_not_null())
        known = frame.select(number=session.rank("dense").cast(pl.Int64), is_placed=is_placed)
        numbers = known["number"].to_numpy()
        return queries * (numbers.max(initial=0) + 1) + numbers, known["is_placed"].to_numpy()


def _few_sessions(
    conversations: Sequence[str | None], sessions: Sequence[str | None], queries: Places
) -> tuple[Places, npt.NDArray[np.bool_]]:
    """As `Crowding._places`, row by row, of few rows."""
    places = list(zip(queries.tolist(), conversations, sessions, strict=True))
    numbers = dict(zip(dict.fromkeys(places), count(), strict=False))
    is_placed = np.ones(len(places), np.bool_)
    if None in conversations or None in sessions:
        is_placed[[row for row, place in enumerate(places) if None in place]] = False
    return np.fromiter(map(numbers.__getitem__, places), np.int64, len(places)), is_placed


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
