"""Stages that give a score or change it: branches brought to one scale, age, importance, length, neighbours."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from lcm.checks import check_choice, check_range
from lcm.protocols.contract import Contract, contract_of
from lcm.protocols.retrieval import Batch, Columns, Decay, Expansion, Numbers, Stage
from lcm.records.document import DEFAULT_RATING
from lcm.retrieval.frames import beside, best_first, of_queries, query_numbers
from lcm.retrieval.source.indexes import read_by, scored_columns

_COLUMNS = ("cosine", "bm25", "dense_score", "lexical_score")
_PLACE = ("conversation_id", "session_id", "seq")
FALLBACK_RATIO = 0.3
"""Stands in for a multiplier that is no number; only a decay from outside could give one."""


def rescored(
    frame: pl.DataFrame,
    formula: Callable[[Columns], Numbers],
    fallback_ratio: float,
    spared_kinds: Sequence[str] = (),
) -> pl.DataFrame:
    """Give the rows new scores in [0, 1], best first; arguments as of `new_scores`."""
    return best_first(beside(frame, [pl.Series("score", new_scores(frame, formula, fallback_ratio, spared_kinds))]))


def new_scores(
    frame: pl.DataFrame,
    formula: Callable[[Columns], Numbers],
    fallback_ratio: float,
    spared_kinds: Sequence[str] = (),
) -> Numbers:
    """New scores in [0, 1], of the rows as they stand.

    Args:
        frame: candidates.
        formula: gives the new scores, before they are clamped.
        fallback_ratio: what is left of the old score where the new one is no finite number.
        spared_kinds: kinds of documents that keep their score.
    """
    columns = Columns(frame)
    score = columns.numbers("score")
    with np.errstate(all="ignore"):
        clamped = clamp01(formula(columns), fallback_ratio * score)
    return np.where(columns.are("kind", *spared_kinds), score, clamped) if spared_kinds else clamped


def clamp01(value: Numbers, fallback: Numbers) -> Numbers:
    """`value` clamped to [0, 1]; where it is no finite number the fallback as it is, or 0 where that is none either.

    Source: memory-lancedb-pro, clamp01.
    """
    otherwise = np.where(np.isfinite(fallback), fallback, 0.0)
    return np.where(np.isfinite(value), np.clip(value, 0.0, 1.0), otherwise)


def clamp01_with_floor(value: Numbers, floor: Numbers) -> Numbers:
    """As `clamp01`, and never below the floor, itself clamped to [0, 1].

    Source: memory-lancedb-pro, clamp01WithFloor.
    """
    least = clamp01(floor, np.zeros_like(floor))
    return np.maximum(least, clamp01(value, least))


@dataclass(frozen=True, slots=True)
class InverseDistance:
    """dense_score = 1 / (1 + d) with d = 1 - cosine: 1 at cosine 1, 1/2 at 0, 1/3 at -1.

    So has NAME_score every other branch that gives cosines.
    """

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        columns, scored = Columns(frame), scored_columns(frame, "cosine").items()
        return beside(
            frame, [pl.Series(score, 1 / (1 + (1 - columns.numbers(raw))), nan_to_null=True) for raw, score in scored]
        )


@dataclass(frozen=True, slots=True)
class Sigmoid:
    """lexical_score = 1 / (1 + exp(-bm25 / scale)) for a positive BM25, else 0.5.

    A document found by substring alone keeps the score of that. So has NAME_score every other branch that gives BM25.
    """

    scale: float = 5.0

    def __post_init__(self) -> None:
        check_range(self, "scale", gt=0)

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        columns, scored = Columns(frame), scored_columns(frame, "bm25").items()
        return beside(frame, [pl.Series(score, self._mapped(columns, raw), nan_to_null=True) for raw, score in scored])

    def _mapped(self, columns: Columns, raw: str) -> Numbers:
        bm25, contained = columns.numbers(raw), columns.numbers(f"{raw.removesuffix('bm25')}contained")
        return np.where(np.isnan(bm25), contained, 1.0 / (1.0 + np.exp(-np.maximum(bm25, 0.0) / self.scale)))


@dataclass(frozen=True, slots=True)
class RawScore:
    """score = one branch's cosine or bm25 as the index gave it, or what a stage before made of that."""

    column: Literal["cosine", "bm25", "dense_score", "lexical_score"] = "bm25"

    def __post_init__(self) -> None:
        check_choice(self, column=_COLUMNS)

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        return best_first(frame.with_columns(score=pl.col(self.column)))


@dataclass(frozen=True, slots=True)
class ZScore:
    """dense_score and lexical_score = (x - mean) / standard deviation over the query's candidates.

    A candidate that shares no word with the query has BM25 0; one without a cosine takes the query's lowest. Where
    all candidates are equal the score is 0. So has NAME_score every other branch.
    """

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        near, worded = scored_columns(frame, "cosine"), scored_columns(frame, "bm25")
        scores = {**near, **worded}
        columns, queries = Columns(frame), query_numbers(frame)
        raw = {name: _with_lowest(columns.numbers(name), queries) for name in near}
        raw |= {name: columns.numbers(name, missing=0.0) for name in worded}
        return beside(frame, [pl.Series(scores[name], _standardised(one, queries)) for name, one in raw.items()])


def _with_lowest(values: Numbers, queries: npt.NDArray[np.int64]) -> Numbers:
    """A column, where it is missing the lowest of its query; 0 where that query has none."""
    is_missing = np.isnan(values)
    if not is_missing.any():
        return values
    return np.where(is_missing, np.nan_to_num(of_queries(np.fmin, values, queries)), values)


def _standardised(values: Numbers, queries: npt.NDArray[np.int64]) -> Numbers:
    """Standard scores within each query."""
    sizes = of_queries(np.add, np.ones(len(values)), queries)
    centred = values - of_queries(np.add, values, queries) / sizes
    deviation = np.sqrt(of_queries(np.add, centred * centred, queries) / sizes)
    # A rounded mean is near, not equal.
    differ = of_queries(np.maximum, values, queries) > of_queries(np.minimum, values, queries)
    return np.divide(centred, deviation, out=np.zeros(len(values)), where=differ & (deviation > 0))


@dataclass(frozen=True, slots=True)
class MinMax:
    """score = (score - least) / (greatest - least) of the query's candidates; 1 where all are equal. The order stays.

    A reranker blends the score with one in [0, 1], a decay multiplies it, a summary lends a share of it to what lies
    beneath, a minimum cuts at it: none of that means anything of a standard score or a learnt sum, which may be below
    0, nor of a reciprocal rank. Idle where the scores are on that scale by themselves, and where nothing behind
    reckons with it.

    Source: ours; as search engines bring scores of several branches together.
    """

    contract = Contract(reads=())

    def is_idle(self, before: Sequence[Stage | Expansion], behind: Sequence[Stage | Expansion]) -> bool:
        is_unit = all(contract_of(stage).gives_unit_scores for stage in before)
        return is_unit or not any(contract_of(stage).reads_unit_scores for stage in behind)

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        return beside(frame, [pl.Series("score", self.scores(frame), nan_to_null=True)])

    def scores(self, frame: pl.DataFrame) -> Numbers:
        score, queries = Columns(frame).numbers("score"), query_numbers(frame)
        least, greatest = of_queries(np.fmin, score, queries), of_queries(np.fmax, score, queries)
        spread = greatest - least
        is_spread = spread > 0
        return np.where(is_spread, (score - least) / np.where(is_spread, spread, 1.0), 1.0)


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Add to dense_score and lexical_score a share of those of the document just before and just after.

    Neighbours are candidates of the same query whose first messages follow each other in one session. One that is
    not a candidate lends nothing, so pools should be as large as the haystack. Documents of one message stand in the
    order of their ids: the first has the message before beside it, the last the one behind.

    Source: ours.
    """

    dense_weight: float = 0.3
    lexical_weight: float = 0.3
    contract = Contract(makes=("dense_score", "lexical_score"))

    def __post_init__(self) -> None:
        check_range(self, "dense_weight", "lexical_weight", ge=0)

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        in_place = frame.with_row_index("_row").sort(pl.col("query_id").rle_id(), *_PLACE, "document_id")
        lent = in_place.with_columns(
            dense_score=pl.col("dense_score") + self.dense_weight * _lent("dense_score"),
            lexical_score=pl.col("lexical_score") + self.lexical_weight * _lent("lexical_score"),
        )
        return lent.sort("_row").drop("_row")


def _lent(column: str) -> pl.Expr:
    """The sum of the column's values at seq - 1 and seq + 1 of the same query and session, 0 where there is none."""
    place = (pl.col("query_id"), pl.col("conversation_id"), pl.col("session_id"))

    def from_row(distance: int) -> pl.Expr:
        same = pl.all_horizontal(
            *(key.eq_missing(key.shift(distance)) for key in place),
            pl.col("seq") - pl.col("seq").shift(distance) == distance,
        )
        return pl.when(same).then(pl.col(column).shift(distance)).otherwise(0.0).fill_null(0.0)

    return from_row(1) + from_row(-1)


@dataclass(frozen=True, slots=True)
class DecayBoost:
    """score times the decay's multiplier, clamped to [0, 1].

    Idle where there is no decay, and where a step before weighs one already, as a fusion does that has a `recency`:
    an age counts once.

    Source: memory-lancedb-pro, applyDecayBoost.
    """

    decay: Decay
    spared_kinds: Sequence[str] = ()
    """Kinds of documents that keep their score."""

    @property
    def contract(self) -> Contract:
        reads = (*read_by(self.decay), *(["kind"] if self.spared_kinds else []))
        return Contract(reads=reads, reads_unit_scores=not contract_of(self.decay).is_off)

    def is_idle(self, before: Sequence[Stage | Expansion], behind: Sequence[Stage | Expansion]) -> bool:
        return contract_of(self.decay).is_off or any(hasattr(stage, "recency") for stage in before)

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        return rescored(frame, self._boosted, FALLBACK_RATIO, self.spared_kinds)

    def scores(self, frame: pl.DataFrame) -> Numbers:
        return new_scores(frame, self._boosted, FALLBACK_RATIO, self.spared_kinds)

    def _boosted(self, columns: Columns) -> Numbers:
        return columns.numbers("score") * columns.by_document(self.decay.multiplier)


@dataclass(frozen=True, slots=True)
class ImportanceWeight:
    """score (base_weight + importance_weight importance), clamped to [0, 1].

    A missing importance counts as 0.7, one that is no finite number as 0.

    Source: memory-lancedb-pro, applyImportanceWeight.
    """

    base_weight: float = 0.7
    importance_weight: float = 0.3
    contract = Contract(reads=("importance",))

    def __post_init__(self) -> None:
        check_range(self, "base_weight", "importance_weight", ge=0)

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        return rescored(frame, self._weighted, fallback_ratio=self.base_weight)

    def _weighted(self, columns: Columns) -> Numbers:
        importance = columns.numbers("importance", missing=DEFAULT_RATING)
        return columns.numbers("score") * (self.base_weight + self.importance_weight * importance)


@dataclass(frozen=True, slots=True)
class LengthNormalization:
    """score / (1 + slope log2(length / anchor)) for a text longer than the anchor, clamped to [0, 1].

    With the defaults twice the anchor leaves 2/3 of the score, four times leaves half.

    Source: memory-lancedb-pro, applyLengthNormalization.
    """

    anchor: int = 500
    """UTF-16 code units; 0 or less: nothing changes."""
    slope: float = 0.5
    spared_kinds: Sequence[str] = ()
    """Kinds of documents that keep their score."""

    def __post_init__(self) -> None:
        check_range(self, "anchor")
        check_range(self, "slope", ge=0)

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        if self.anchor <= 0:
            return frame
        return rescored(frame, self._normalized, 0.0, self.spared_kinds)

    def _normalized(self, columns: Columns) -> Numbers:
        times_the_anchor = np.maximum(columns.numbers("length_utf16", missing=0.0) / self.anchor, 1.0)
        return columns.numbers("score") / (1.0 + self.slope * np.log2(times_the_anchor))


@dataclass(frozen=True, slots=True)
class RecencyBoost:
    """score + weight exp(-age / half_life_days), clamped to [0, 1].

    In spite of its name the half-life is the age at which 1/e of the bonus is left, as in the original. The age of a
    document without a known time is 0.

    Source: memory-lancedb-pro, applyRecencyBoost.
    """

    half_life_days: float = 14.0
    """0: no bonus."""
    weight: float = 0.1
    """The bonus at age 0; 0: no bonus; below 0: what is new loses that much."""
    clamp_future: bool = False
    """What lies in the future is 0 days old. The original gives it a negative age, and so more than the bonus."""

    def __post_init__(self) -> None:
        check_range(self, "half_life_days", ge=0)
        check_range(self, "weight")

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        if self.half_life_days == 0 or self.weight == 0:
            return frame
        return rescored(frame, self._boosted, fallback_ratio=1.0)

    def _boosted(self, columns: Columns) -> Numbers:
        age_days = columns.days_old(clamp_future=self.clamp_future)
        return columns.numbers("score") + self.weight * np.exp(-age_days / self.half_life_days)


@dataclass(frozen=True, slots=True)
class TimeDecay:
    """score (floor_ratio + (1 - floor_ratio) exp(-age / H)), clamped to [0, 1].

    H is half_life_days, for a dynamic document divided by dynamic_divisor, lengthened by use: see
    `effective_half_life`. In spite of its name the half-life is the age at which 1/e of what can be lost is left, as
    in the original. The age of a document without a known time is 0.

    Source: memory-lancedb-pro, applyTimeDecay.
    """

    half_life_days: float = 60.0
    """0: no decay."""
    floor_ratio: float = 0.5
    """What is left of the score in the end."""
    dynamic_divisor: float = 3.0
    reinforcement_factor: float = 0.5
    """How much accesses lengthen the half-life; 0: not at all."""
    max_half_life_multiplier: float = 3.0
    """The longest half-life of an accessed document, in half-lives."""
    access_half_life_days: float = 30.0
    """In which half of the accesses are forgotten."""
    clamp_future: bool = False
    """What lies in the future is 0 days old. The original gives it a negative age, and so a factor above 1."""
    spared_kinds: Sequence[str] = ()
    """Kinds of documents that keep their score."""
    contract = Contract(reads=("access_count", "created_at", "kind", "last_accessed_at", "temporal_type"))

    def __post_init__(self) -> None:
        check_range(self, "half_life_days", "reinforcement_factor", ge=0)
        check_range(self, "dynamic_divisor", "max_half_life_multiplier", "access_half_life_days", gt=0)
        check_range(self, "floor_ratio", ge=0, le=1)

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        if self.half_life_days == 0:
            return frame
        return rescored(frame, self._decayed, self.floor_ratio, self.spared_kinds)

    def _decayed(self, columns: Columns) -> Numbers:
        days = self.half_life_days
        half_life_days = effective_half_life(
            columns,
            np.where(columns.are("temporal_type", "dynamic"), days / self.dynamic_divisor, days),
            self.reinforcement_factor,
            self.max_half_life_multiplier,
            self.access_half_life_days,
        )
        age_days, floor = columns.days_old(clamp_future=self.clamp_future), self.floor_ratio
        return columns.numbers("score") * (floor + (1.0 - floor) * np.exp(-age_days / half_life_days))


def effective_half_life(
    columns: Columns,
    base_days: Numbers,
    reinforcement_factor: float,
    max_multiplier: float,
    access_half_life_days: float = 30.0,
) -> Numbers:
    """The half-life in days of a document that was accessed n times.

    base (1 + reinforcement_factor ln(1 + n 2^(-d / access_half_life_days))) with d the days since the last access,
    at most base max_multiplier; without access, or with a factor of 0, it is base.

    Source: memory-lancedb-pro, computeEffectiveHalfLife.
    """
    if reinforcement_factor == 0:
        return base_days
    accesses = columns.numbers("access_count", missing=0.0)
    idle_days = np.maximum(columns.days_since("last_accessed_at"), 0.0)
    remembered = np.where(np.isnan(idle_days), 0.0, accesses * np.exp2(-idle_days / access_half_life_days))
    longer = base_days + base_days * reinforcement_factor * np.log1p(remembered)
    return np.where(accesses > 0, np.fmin(longer, base_days * max_multiplier), base_days)
