"""What a reranker's scores make of the scores that were there before."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np
import polars as pl

from lcm.checks import check_range, check_weights
from lcm.protocols.columns import Columns, Numbers
from lcm.protocols.retrieval import REASONS_SCHEMA, Batch
from lcm.retrieval.frames import beside
from lcm.retrieval.ranking.ordering import best_first
from lcm.retrieval.ranking.stages.clamp import clamp01_with_floor
from lcm.retrieval.ranking.stages.limit import Limit


@dataclass(frozen=True, slots=True)
class RerankItem:
    """One entry of a reranker's reply."""

    index: float
    """0-based among the documents that were sent; one that names none of them counts for nothing."""
    score: float


@dataclass(frozen=True, slots=True)
class Blend:
    """A reranker's score s with the score f that a row came with, never below a share of f.

    Returned by the reranker: max(floor, reranker_weight s + score_weight f). Not returned:
    max(floor, unreturned_weight f). The floor is a share of f, the greater the stronger lexical_score b is: strong from
    `strong_from`, fair from `fair_from`, else weak; b is 0 where words did not find the row. All in [0, 1]; a blend
    that is not a number gives the floor, a floor that is none 0.

    Source: memory-lancedb-pro, rerankResults and getRerankPreservationFloor.
    """

    reranker_weight: float = 0.6
    score_weight: float = 0.4
    unreturned_weight: float = 0.8
    strong_from: float = 0.75
    strong_floor: float = 0.95
    strong_floor_unreturned: float = 1.0
    fair_from: float = 0.6
    fair_floor: float = 0.9
    fair_floor_unreturned: float = 0.95
    weak_floor: float = 0.5
    weak_floor_unreturned: float = 0.8

    def __post_init__(self) -> None:
        check_weights(self, "reranker_weight", "score_weight")
        names = [field.name for field in fields(self)]
        check_range(self, *(name for name in names if "_floor" in name), ge=0, le=1)
        check_range(self, *names, ge=0)

    def floor(self, columns: Columns) -> Numbers:
        """The least that a row keeps, by its score, lexical_score and reranker_score (missing where not returned)."""
        is_unreturned = columns.are_missing("reranker_score")
        lexical = np.nan_to_num(columns.numbers("lexical_score"), posinf=np.inf, neginf=-np.inf)

        def share(returned: float, unreturned: float) -> Numbers:
            return np.where(is_unreturned, unreturned, returned)

        fair = share(self.fair_floor, self.fair_floor_unreturned)
        floor = np.where(lexical >= self.fair_from, fair, share(self.weak_floor, self.weak_floor_unreturned))
        strong = share(self.strong_floor, self.strong_floor_unreturned)
        return columns.numbers("score") * np.where(lexical >= self.strong_from, strong, floor)

    def apply(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Give every row its new score, from its score, lexical_score and reranker_score; the rows stay in place."""
        columns = Columns(frame)
        score, reranker_score = columns.numbers("score"), columns.numbers("reranker_score")
        returned = self.reranker_weight * reranker_score + self.score_weight * score
        kept = np.where(columns.are_missing("reranker_score"), self.unreturned_weight * score, returned)
        return beside(frame, [pl.Series("score", clamp01_with_floor(kept, self.floor(columns)))])


def with_replies(frame: pl.DataFrame, replies: Mapping[str, Sequence[RerankItem]], blend: Blend) -> pl.DataFrame:
    """Blend what a reranker replied; among equal scores returned rows come first, in the order of the reply.

    An index that is not that of a row is ignored. One that comes several times counts once, where its score is highest:
    the original returns such a row several times.

    Args:
        frame: rows of the queries that `replies` answers, the rows of a query together.
        replies: query id to the items of its reply; an index counts the rows of that query.
    """
    scores: list[float | None] = []
    places: list[int] = []
    for query_id, count in frame.select(pl.col("query_id").rle().struct.unnest()).select("value", "len").iter_rows():
        best: dict[int, tuple[float, int]] = {}
        for place, item in enumerate(replies[query_id]):
            if 0 <= item.index < count and item.index == int(item.index):
                row = int(item.index)
                if row not in best or item.score > best[row][0]:
                    best[row] = item.score, place
        scores.extend(best[row][0] if row in best else None for row in range(count))
        places.extend(best[row][1] if row in best else len(replies[query_id]) + row for row in range(count))
    replied = frame.with_columns(
        reranker_score=pl.Series(scores, dtype=pl.Float64), _place=pl.Series(places, dtype=pl.Int64)
    )
    in_order = replied.sort(pl.col("query_id").rle_id(), "_place", maintain_order=True).drop("_place")
    return best_first(blend.apply(in_order))


def first(frame: pl.DataFrame, window: int | None, batch: Batch) -> pl.DataFrame:
    """The best `window` rows of each query, best first; None keeps all as they stand."""
    return frame if window is None else Limit(window)(frame, batch)


def beyond(frame: pl.DataFrame, window: int | None, batch: Batch) -> pl.DataFrame:
    """Of what `first` drops, how many it keeps: rows of `REASONS_SCHEMA`."""
    return pl.DataFrame(schema=REASONS_SCHEMA) if window is None else Limit(window).reasons(frame, batch)


def check_window(window: int | None) -> None:
    """Refuse a window that would keep nothing."""
    if window is not None and window < 1:
        raise ValueError(f"window must be >= 1 or null, got {window}")
