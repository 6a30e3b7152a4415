"""A weighted sum of nearness, recency and scope."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from lcm.checks import check_range, check_weights
from lcm.protocols.columns import Columns, Numbers
from lcm.protocols.retrieval import Batch, Decay
from lcm.retrieval.frames import beside
from lcm.retrieval.fusion.weighed import recency, share, shares, summary_quality
from lcm.retrieval.ranking.ordering import best_first
from lcm.retrieval.source.candidates import read_by


@dataclass(frozen=True, slots=True)
class HybridScore:
    """score = (alpha cosine + beta R + gamma S) Q, in [0, 1].

    R is the multiplier of the decay, S what the scope class of the document is worth, Q the quality of a summary
    (`summary_quality`); alpha, beta and gamma are divided by their sum. A cosine below 0, missing
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
        return ("cosine", "scope_class", "decay_rate", "kind", *read_by(self.recency))

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        return best_first(beside(frame, [pl.Series("score", self._score(Columns(frame)))]))

    def _score(self, columns: Columns) -> Numbers:
        alpha, beta, gamma = shares(self.cosine_weight, self.recency_weight, self.scope_weight)
        scope = np.where(columns.are("scope_class", "durable"), self.durable_scope, self.global_scope)
        scope = np.where(columns.are("scope_class", "session"), self.session_scope, scope)
        base = alpha * share(columns, "cosine") + beta * recency(self.recency, columns) + gamma * scope
        return np.clip(base * summary_quality(self.summary_delta, columns), 0.0, 1.0)
