"""Two passes: what is near at all, then how far each of that is to be trusted and how many of the query's words it has.

Source: libravdb memory 1.3.5, mathematical reference, sections 7.3 to 7.6; the names k1, k2, theta1 and kappa are its.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from lcm.checks import check_choice, check_range, check_weights
from lcm.protocols.retrieval import REASONS_SCHEMA, Batch, Decay
from lcm.records.rules import Rules
from lcm.retrieval.formula import beside, kept_rows, worked_out
from lcm.retrieval.fusion.recency import recency, recency_columns
from lcm.retrieval.fusion.shares import share, shares
from lcm.retrieval.fusion.summary_quality import summary_quality
from lcm.retrieval.lookup import texts_of
from lcm.retrieval.ranking.ordering import best_first, first_places, is_one_query, with_rank
from lcm.retrieval.ranking.reasons import told_of
from lcm.retrieval.ranking.sums import in_order
from lcm.retrieval.terms import Terms, TermWords

FrequencyOver = Literal["near", "all"]
IsNear = Callable[[npt.NDArray[np.float64]], npt.NDArray[np.bool_]]
"""Tells of cosines whether they are near."""


@dataclass(frozen=True, slots=True)
class TwoPass:
    """First the `k1` rows of each query with the highest cosine, and of those the ones that reach `theta1`. Then the
    `k2` best of them by

    score = omega max(cosine, 0) (1 + kappa M) / (1 + kappa) Q, in [0, omega],

    with the authority omega (`authority`), the keyword coverage M (`keyword_coverage`) and the quality Q of a summary
    (`lcm.retrieval.fusion.summary_quality`). A document with all of the query's words keeps omega cosine; one with none
    has that divided by 1 + kappa.

    A cosine that is missing or no number counts as 0.

    By the corrected rules words are of any script, and guidance has its own k1 and k2 and must lie above theta1. By the
    original's they are of a-z, 0-9 and underscore, and guidance competes with the rest.

    Source: libravdb memory 1.3.17; Q within the score as its later mathematical reference has it.
    """

    recency: Decay
    """Its multiplier is r in omega."""
    k1: int = 16
    k2: int = 8
    theta1: float = 0.2
    kappa: float = 0.3
    """0: words count for nothing."""
    recency_weight: float = 0.5
    frequency_weight: float = 0.2
    authority_weight: float = 0.3
    frequency_over: FrequencyOver = "near"
    """Which documents a document's accesses are held against: those that passed the first cut, or all."""
    rules: Rules = "corrected"
    summary_delta: float = 0.5
    """0: a summary's confidence counts for nothing."""

    def __post_init__(self) -> None:
        check_range(self, "k1", "k2", ge=1)
        check_range(self, "theta1", ge=-1, le=1)
        check_range(self, "kappa", ge=0)
        check_weights(self, "recency_weight", "frequency_weight", "authority_weight", le=1)
        check_range(self, "summary_delta", ge=0, le=1)
        check_choice(self, rules=Rules, frequency_over=FrequencyOver)

    @property
    def terms(self) -> TermWords:
        """How texts are cut into words."""
        return "unicode" if self.rules == "corrected" else "ascii"

    @property
    def reads(self) -> tuple[str, ...]:
        return ("cosine", "access_count", "authority", "decay_rate", *recency_columns(self.recency))

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        rows = _by_cosine(frame)
        parts = [self._passed(part, batch, is_near) for part, is_near, _ in self._parts(rows)]
        if len(parts) == 1:
            return parts[0]
        order = frame.select(pl.col("query_id").unique(maintain_order=True)).with_row_index("_query")
        both = pl.concat(parts).join(order, on="query_id", how="left", maintain_order="left")
        return best_first(both.sort("_query", maintain_order=True).drop("_query"))

    def reasons(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        """Of what is dropped, which cut did it, and by how much it missed that."""
        told = [pl.DataFrame(schema=REASONS_SCHEMA)]
        for part, is_near, lacks in self._parts(_by_cosine(frame)):
            far = with_rank(best_first(part))
            told.append(_behind(far, self.k1, "k1", "cosine"))
            below = pl.format(f"cosine {{}} {lacks} theta1 {self.theta1:g}", pl.col("score").round(4))
            is_far = pl.Series(~is_near(far["score"].to_numpy()))
            told.append(told_of(far.filter((pl.col("rank") <= self.k1) & is_far), below))
            scored = self._scored(self._near(part, is_near), batch)
            told.append(_behind(with_rank(best_first(scored)), self.k2, "k2", "score"))
        return pl.concat(told)

    def _parts(self, rows: pl.DataFrame) -> Iterator[tuple[pl.DataFrame, IsNear, str]]:
        """The rows that are cut by themselves, which of them are near, and how a cosine lacks theta1 there."""
        is_guidance = np.zeros(len(rows), np.bool_)
        if self.rules == "corrected":
            is_guidance = np.array([kind == "guidance" for kind in rows["kind"].to_list()], np.bool_)
        yield kept_rows(rows, ~is_guidance), lambda scores: scores >= self.theta1, "below"
        if is_guidance.any():
            yield kept_rows(rows, is_guidance), lambda scores: scores > self.theta1, "not above"

    def _near(self, rows: pl.DataFrame, is_near: IsNear) -> pl.DataFrame:
        """Of rows whose score is their cosine those that pass the first cut, best first."""
        places = first_places(rows, self.k1)
        return rows[_places(places[is_near(rows["score"].to_numpy()[places])])]

    def _passed(self, rows: pl.DataFrame, batch: Batch, is_near: IsNear) -> pl.DataFrame:
        """Both passes over rows whose score is their cosine."""
        scored = self._scored(self._near(rows, is_near), batch)
        passed = scored[_places(first_places(scored, self.k2))]
        if self.kappa > 0:
            passed.drop_in_place("_coverage")
        return passed

    def _scored(self, near: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        """The rows of the second pass with their scores."""
        if self.kappa > 0:
            near = beside(near, [keyword_coverage(near, batch, self.terms)])
        score = _score(self, None if self.frequency_over == "near" else most_accesses(batch))
        return beside(near, [worked_out(near, score, "score")])


@lru_cache(maxsize=64)
def _score(settings: TwoPass, most: int | None) -> pl.Expr:
    """The score of the second pass; building it takes longer than working it out for a few rows."""
    covered = pl.lit(1.0)
    if settings.kappa > 0:
        covered = (1.0 + settings.kappa * pl.col("_coverage")) * (1.0 / (1.0 + settings.kappa))
    weights = (settings.recency_weight, settings.frequency_weight, settings.authority_weight)
    omega = authority(settings.recency, *weights, most)
    score = omega * pl.col("score").clip(lower_bound=0.0) * covered * summary_quality(settings.summary_delta)
    return score.clip(0.0, 1.0)


_COSINE = share("cosine", least=-1.0)


def _by_cosine(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows with their cosine for a score."""
    return beside(frame, [worked_out(frame, _COSINE, "score")])


def _behind(ranked: pl.DataFrame, n: int, cut: str, by: str) -> pl.DataFrame:
    """Of ranked rows behind the first n, where they stand and what the last of the first has."""
    last = pl.col("score").filter(pl.col("rank") == n).first().over("query_id")
    words = f"{cut} lets the first {n} through, down to {by} {{}}; it has {{}} and is number {{}}"
    told = ranked.with_columns(_last=last).filter(pl.col("rank") > n)
    return told_of(told, pl.format(words, pl.col("_last").round(4), pl.col("score").round(4), "rank"))


def authority(
    decay: Decay, recency_weight: float, frequency_weight: float, authority_weight: float, most: int | None = None
) -> pl.Expr:
    """omega = a_r r + a_f f + a_a a, in [0, 1], over the rows of each query; the weights are divided by their sum.

    r is the multiplier of the decay, f = ln(1 + n) / ln(2 + N) for n accesses of the document and N of the one among
    the rows that was used most (0 where n is 0), a the authority that its author has. With `most`, the accesses of the
    one that was used most of all documents, f = ln(1 + n) / ln(1 + most), and 0 where `most` is.

    Source: libravdb memory 1.3.17, which adds 1 inside the logarithm below, and takes N of the rows that passed the
    first cut: f depends on the query. `most` is of 1.3.5, mathematical reference, section 7.3.
    """
    weights = shares(recency_weight, frequency_weight, authority_weight)
    terms = (recency(decay), _frequency(most), share("authority"))
    return in_order(weight * term for weight, term in zip(weights, terms, strict=True)).clip(0.0, 1.0)


def most_accesses(batch: Batch) -> int:
    """Of the document that was used most, of all that may be seen."""
    most = batch.documents["access_count"].max()
    return max(0, most) if isinstance(most, int) else 0


def _frequency(most: int | None) -> pl.Expr:
    accesses = pl.col("access_count").fill_null(0).clip(lower_bound=0).cast(pl.Float64)
    if most is None:
        return (accesses + 1.0).log() / (accesses.max().over("query_id") + 2.0).log()
    return ((accesses + 1.0).log() * (1.0 / math.log1p(most))).clip(upper_bound=1.0) if most else pl.lit(0.0)


def keyword_coverage(rows: pl.DataFrame, batch: Batch, words: TermWords) -> pl.Series:
    """The share of the query's distinct terms that the document's text has, in [0, 1]; 0 where the query has none.

    Of a query three characters or more, but for the pairs of scripts without spaces. No stop words.

    Source: libravdb memory 1.3.5, mathematical reference, section 7.5, and 1.4.4 for `ascii`; `unicode` is ours.

    Args:
        rows: columns query_id, document_id.
        batch: knows the texts.
        words: how texts are cut into terms.
    Returns:
        Float64, in the order of the rows.
    """
    ids = rows["document_id"]
    unique = ids if is_one_query(rows) else ids.unique()
    texts = zip(unique.to_list(), texts_of(batch, unique), strict=True)
    said = {name: _said(words, text or "") for name, text in texts}
    asked = {name: set(Terms(words).of(text)) for name, text in batch.queries["query_id", "text"].iter_rows()}
    pairs = zip(rows["query_id"].to_list(), ids.to_list(), strict=True)
    shares = [len(asked[query] & said[one]) / max(1, len(asked[query])) for query, one in pairs]
    return pl.Series("_coverage", shares, dtype=pl.Float64)


@lru_cache(maxsize=4096)
def _said(words: TermWords, text: str) -> frozenset[str]:
    """The terms of a document: live queries find the same ones again, and cutting a text takes longer than all else."""
    return frozenset(Terms(words).all_of(text))


def _places(rows: npt.NDArray[np.int64]) -> pl.Series:
    """Of rows of a frame, as it reads them soonest."""
    return pl.Series(rows.astype(np.uint32))
