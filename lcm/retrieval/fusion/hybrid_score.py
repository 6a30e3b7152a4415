"""A weighted sum of nearness, recency and scope."""

from dataclasses import dataclass
from functools import cache

import polars as pl

from lcm.checks import check_range, check_weights
from lcm.protocols.retrieval import Batch, Decay
from lcm.retrieval.formula import beside, worked_out
from lcm.retrieval.fusion.recency import recency, recency_columns
from lcm.retrieval.fusion.shares import share, shares
from lcm.retrieval.fusion.summary_quality import summary_quality
from lcm.retrieval.ranking.ordering import best_first


@dataclass(frozen=True, slots=True)
class HybridScore:
    """score = (alpha cosine + beta R + gamma S) Q, in [0, 1].

    R is the multiplier of the decay, S what the scope class of the document is worth, Q the quality of a summary
    (`lcm.retrieval.fusion.summary_quality`); alpha, beta and gamma are divided by their sum. A cosine below 0, missing
    or no number counts as 0.

    Source: libravdb memory 1.3.5, mathematical reference, section 1; the bounds are of 1.3.12.
    """

    recency: Decay
    cosine_weight: float = 0.7
    recency_weight: float = 0.2
    scope_weight: float = 0.1
    session_scope: float = 1.0
    durable_scope: float = 0.6
    global_scope: float = 0.3
    summary_delta: float = 0.5
    """0: a summary's confidence counts for nothing."""

    def __post_init__(self) -> None:
        check_weights(self, "cosine_weight", "recency_weight", "scope_weight", le=1)
        check_range(self, "session_scope", "durable_scope", "global_scope", "summary_delta", ge=0, le=1)

    @property
    def reads(self) -> tuple[str, ...]:
        return ("cosine", "scope_class", "decay_rate", *recency_columns(self.recency))

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        return best_first(beside(frame, [worked_out(frame, _score(self), "score")]))


@cache
def _score(settings: HybridScore) -> pl.Expr:
    alpha, beta, gamma = shares(settings.cosine_weight, settings.recency_weight, settings.scope_weight)
    whose = pl.col("scope_class")
    scope = (
        pl.when(whose == "session")
        .then(settings.session_scope)
        .when(whose == "durable")
        .then(settings.durable_scope)
        .otherwise(settings.global_scope)
    )
    base = alpha * share("cosine") + beta * recency(settings.recency) + gamma * scope
    return (base * summary_quality(settings.summary_delta)).clip(0.0, 1.0)
