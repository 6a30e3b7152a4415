"""The stages after fusion as one writes them in numpy: a query at a time, each stage over the arrays of its rows."""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from lcm.protocols.models import Vectors
from lcm.protocols.retrieval import Stage
from lcm.retrieval.decay.weibull import Weibull
from lcm.retrieval.ranking.stages.decay_boost import FALLBACK_RATIO, DecayBoost
from lcm.retrieval.ranking.stages.diversity import Diversity
from lcm.retrieval.ranking.stages.importance_weight import ImportanceWeight
from lcm.retrieval.ranking.stages.length_normalization import LengthNormalization
from lcm.retrieval.ranking.stages.limit import Limit
from lcm.retrieval.ranking.stages.min_score import MinScore
from lcm.retrieval.ranking.stages.noise_filter import NoiseFilter
from lcm.retrieval.ranking.stages.not_expired import NotExpired
from lcm.retrieval.ranking.stages.recency_boost import RecencyBoost
from lcm.retrieval.ranking.stages.time_decay import TimeDecay
from lcm.retrieval.reranker.cosine import Cosine
from lcm.writing.noise import is_noise
from tests.support.numpy_twins.fused import DAY_MS, Numbers, Rows

Places = npt.NDArray[np.int64]
"""Rows of one query, best first."""
Ranked = tuple[Places, Numbers]
"""With their scores."""
STAGES = (
    *(MinScore, NotExpired, Cosine, RecencyBoost, ImportanceWeight, LengthNormalization, TimeDecay, NoiseFilter),
    *(Diversity, Limit),
)


def check(stages: Sequence[Stage]) -> None:
    """Refuse a stage or a decay that has no twin here.

    Raises:
        ValueError: naming it.
    """
    for stage in stages:
        if not isinstance(stage, STAGES) and not (isinstance(stage, DecayBoost) and isinstance(stage.decay, Weibull)):
            raise ValueError(
                f"stages must come after fusion, a decay be Weibull's, to be compared with numpy; got {stage!r}"
            )


def rank(rows: Rows, stages: Sequence[Stage]) -> list[Ranked]:
    """What is left of each query's rows, best first."""
    answers: list[Ranked] = []
    for query in range(rows.queries):
        places = np.arange(query * rows.candidates, (query + 1) * rows.candidates)
        scores = rows.score[places]
        for stage in stages:
            places, scores = _step(stage, rows, query, places, scores)
        answers.append((places, scores))
    return answers


def walk(vectors: Vectors, threshold: float) -> npt.NDArray[np.bool_]:
    """Down the ranks: which rows are nearer than the threshold to one that was taken before."""
    cosines = vectors @ vectors.T.copy()  # a product with itself is sent another way: three times as long at 40 rows
    is_taken = np.zeros(len(vectors), dtype=np.bool_)
    for row in range(len(vectors)):
        is_taken[row] = not (cosines[row, :row][is_taken[:row]] > threshold).any()
    return ~is_taken


def _step(stage: Stage, rows: Rows, query: int, places: Places, scores: Numbers) -> Ranked:
    """The twin of a stage, with its settings, for the rows of one query."""
    match stage:
        case MinScore():
            keep = scores >= stage.threshold
            return places[keep], scores[keep]
        case NotExpired():
            keep = rows.valid_until[places] > rows.asked_at[query]
            return places[keep], scores[keep]
        case Cosine():
            places, scores = places[: stage.window], scores[: stage.window]
            cosines = rows.vectors(places).astype(np.float64) @ rows.query_vectors[query].astype(np.float64)
            return _best_first(places, stage.score_weight * scores + stage.cosine_weight * cosines, scores)
        case RecencyBoost():
            bonus = stage.weight * np.exp(-_age_days(rows, query, places) / stage.half_life_days)
            return _best_first(places, scores + bonus, scores)
        case ImportanceWeight():
            factor = stage.base_weight + stage.importance_weight * rows.importance[places]
            return _best_first(places, scores * factor, stage.base_weight * scores)
        case LengthNormalization():
            excess = np.log2(np.maximum(rows.length_utf16[places] / stage.anchor, 1))
            return _best_first(places, scores / (1 + stage.slope * excess), np.zeros(len(scores)))
        case TimeDecay():
            base = np.where(rows.is_dynamic[places], stage.half_life_days / stage.dynamic_divisor, stage.half_life_days)
            accesses = rows.access_count[places]
            idle_days = np.maximum((rows.asked_at[query] - rows.last_accessed_at[places]) / DAY_MS, 0)
            remembered = accesses * np.exp(-idle_days * math.log(2) / stage.access_half_life_days)
            longer = base + base * stage.reinforcement_factor * np.log1p(remembered)
            half_life_days = np.where(accesses > 0, np.minimum(longer, base * stage.max_half_life_multiplier), base)
            left = np.exp(-_age_days(rows, query, places) / half_life_days)
            factor = stage.floor_ratio + (1 - stage.floor_ratio) * left
            return _best_first(places, scores * factor, stage.floor_ratio * scores)
        case DecayBoost(decay=Weibull() as weibull):
            multiplier = _multiplier(weibull, rows, query, places)
            return _best_first(places, scores * multiplier, FALLBACK_RATIO * scores)
        case NoiseFilter():
            kept = [
                not is_noise(
                    rows.text_of[rows.document_ids[place]],
                    denials=stage.denials,
                    meta_questions=stage.meta_questions,
                    boilerplate=stage.boilerplate,
                    complaints=stage.complaints,
                )
                for place in places.tolist()
            ]
            return places[kept], scores[kept]
        case Diversity():
            is_deferred = walk(rows.vectors(places), stage.similarity_threshold)
            order = np.argsort(is_deferred, kind="stable")
            return places[order], scores[order]
        case Limit():
            return places[: stage.n], scores[: stage.n]
    raise AssertionError(f"{stage!r} was checked before")


def _best_first(places: Places, values: Numbers, fallback: Numbers) -> Ranked:
    """In [0, 1], what is no finite number replaced, sorted; ties keep their order."""
    scores = np.where(np.isfinite(values), values.clip(0, 1), fallback)
    order = np.argsort(-scores, kind="stable")
    return places[order], scores[order]


def _age_days(rows: Rows, query: int, places: Places) -> Numbers:
    """Since creation; 0 where that is unknown."""
    created_at = rows.created_at[places]
    return np.where(created_at > 0, rows.asked_at[query] - created_at, 0) / DAY_MS


def _multiplier(weibull: Weibull, rows: Rows, query: int, places: Places) -> Numbers:
    importance, accesses, created_at = rows.importance[places], rows.access_count[places], rows.created_at[places]
    active_at = np.where(accesses > 0, rows.last_accessed_at[places], created_at)
    is_core, is_peripheral = (rows.decay_tier[places] == tier for tier in ("core", "peripheral"))

    half_life_days = np.where(rows.is_dynamic[places], 1 / weibull.dynamic_divisor, 1) * weibull.recency_half_life_days
    half_life_days *= np.exp(weibull.importance_modulation * importance)
    idle_days = np.maximum((rows.asked_at[query] - active_at) / DAY_MS, 0)
    beta = np.where(is_core, weibull.beta_core, np.where(is_peripheral, weibull.beta_peripheral, weibull.beta_working))
    recency = np.exp(-math.log(2) / half_life_days * idle_days**beta)

    frequency = 1 - np.exp(-accesses / weibull.access_saturation)
    gap_days = np.maximum((active_at - created_at) / DAY_MS, 1) / np.maximum(accesses - 1, 1)
    repeated = frequency * (0.5 + 0.5 * np.exp(-gap_days / weibull.access_gap_days))
    frequency = np.where(accesses <= 1, frequency, repeated)

    strength = (
        weibull.recency_weight * recency
        + weibull.frequency_weight * frequency
        + weibull.intrinsic_weight * importance * rows.confidence[places]
    )
    floor = np.where(
        is_core, weibull.floor_core, np.where(is_peripheral, weibull.floor_peripheral, weibull.floor_working)
    )
    alive = np.maximum(floor, strength)
    if weibull.recency_lifts:
        alive = np.maximum(alive, recency)
    least = weibull.search_boost_min
    factor: Numbers = np.clip(least + (1 - least) * alive, least, 1)
    return factor
