"""Two passes: what is near at all, then how far each of that is to be trusted and how many of the query's words it has.

Source: libravdb memory 1.3.5, mathematical reference, sections 7.3 to 7.6; the names k1, k2, theta1 and kappa are its.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from lcm.checks import check_choice, check_range, check_weights
from lcm.protocols.columns import Columns, Numbers
from lcm.protocols.retrieval import REASONS_SCHEMA, Batch, Decay
from lcm.records.rules import Rules
from lcm.retrieval.frames import beside, taken, told_of
from lcm.retrieval.fusion.weighed import recency, share, shares, summary_quality
from lcm.retrieval.lookup import texts_of
from lcm.retrieval.ranking.ordering import best_first, first_places, of_queries, query_numbers, with_rank
from lcm.retrieval.source.candidates import read_by
from lcm.retrieval.terms import Terms, TermWords

FrequencyOver = Literal["near", "all"]
_Places = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class TwoPass:
    """First the `k1` rows of each query with the highest cosine, and of those the ones that reach `theta1`. Then the
    `k2` best of them by

    score = omega max(cosine, 0) (1 + kappa M) / (1 + kappa) Q, in [0, omega],

    with the authority omega (`authority`), the keyword coverage M (`keyword_coverage`) and the quality Q of a summary
    (`summary_quality`). A document with all of the query's words keeps omega cosine; one with none
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
        return ("cosine", "access_count", "authority", "decay_rate", "kind", *read_by(self.recency))

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        cosines, queries = _cosines(Columns(frame)), query_numbers(frame)
        passed = [self._passed(frame, batch, part, cosines, queries) for part in self._parts(frame)]
        rows, scores = (np.concatenate(both) for both in zip(*passed, strict=True))
        if len(passed) > 1:
            order = np.lexsort((-scores, queries[rows]))
            rows, scores = rows[order], scores[order]
        return beside(taken(frame, rows), [pl.Series("score", scores)])

    def reasons(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        """Of what is dropped, which cut did it, and by how much it missed that."""
        cosines, queries = _cosines(Columns(frame)), query_numbers(frame)
        rows = beside(frame, [pl.Series("score", cosines)])
        told = [pl.DataFrame(schema=REASONS_SCHEMA)]
        for part in self._parts(frame):
            far = with_rank(best_first(rows[part.rows]))
            told.append(_behind(far, self.k1, "k1", "cosine"))
            below = pl.format(f"cosine {{}} {part.lacks} theta1 {self.theta1:g}", pl.col("score").round(4))
            is_far = pl.Series(~part.is_near(far["score"].to_numpy()))
            told.append(told_of(far.filter((pl.col("rank") <= self.k1) & is_far), below))
            near, scores = self._scored(frame, batch, part, cosines, queries)
            scored = beside(frame[near], [pl.Series("score", scores)])
            told.append(_behind(with_rank(best_first(scored)), self.k2, "k2", "score"))
        return pl.concat(told)

    def _parts(self, frame: pl.DataFrame) -> Iterator["_Part"]:
        """The rows that are cut by themselves."""
        kinds = frame["kind"].to_list() if self.rules == "corrected" else []
        if "guidance" not in kinds:
            yield _Part(np.arange(len(frame)), lambda cosines: cosines >= self.theta1, "below")
            return
        is_guidance = np.array([kind == "guidance" for kind in kinds], np.bool_)
        yield _Part(np.flatnonzero(~is_guidance), lambda cosines: cosines >= self.theta1, "below")
        yield _Part(np.flatnonzero(is_guidance), lambda cosines: cosines > self.theta1, "not above")

    def _passed(
        self, frame: pl.DataFrame, batch: Batch, part: "_Part", cosines: Numbers, queries: _Places
    ) -> tuple[_Places, Numbers]:
        """The rows of a part that pass both cuts, best first within each query, and their scores."""
        near, scores = self._scored(frame, batch, part, cosines, queries)
        first = first_places(scores, queries[near], self.k2)
        return near[first], scores[first]

    def _scored(
        self, frame: pl.DataFrame, batch: Batch, part: "_Part", cosines: Numbers, queries: _Places
    ) -> tuple[_Places, Numbers]:
        """The rows of a part that pass the first cut, best first within each query, with the scores of the second."""
        first = part.rows[first_places(cosines[part.rows], queries[part.rows], self.k1)]
        near = first[part.is_near(cosines[first])]
        columns = Columns(frame, near)
        weights = (self.recency_weight, self.frequency_weight, self.authority_weight)
        most = most_accesses(columns, queries[near]) if self.frequency_over == "near" else most_of_all(batch)
        score = authority(columns, self.recency, *weights, most) * np.maximum(_cosines(columns), 0.0)
        if self.kappa > 0:
            covered = keyword_coverage(frame, batch, self.terms, near)
            score *= (1.0 + self.kappa * covered) / (1.0 + self.kappa)
        return near, np.clip(score * summary_quality(self.summary_delta, columns), 0.0, 1.0)


class _Part(NamedTuple):
    """Rows that are cut by themselves."""

    rows: _Places
    is_near: Callable[[Numbers], npt.NDArray[np.bool_]]
    """Tells of cosines whether they are near."""
    lacks: str
    """How one that is not lacks theta1."""


def _cosines(columns: Columns) -> Numbers:
    return share(columns, "cosine", least=-1.0)


def _behind(ranked: pl.DataFrame, n: int, cut: str, by: str) -> pl.DataFrame:
    """Of ranked rows behind the first n, where they stand and what the last of the first has."""
    last = pl.col("score").filter(pl.col("rank") == n).first().over("query_id")
    words = f"{cut} lets the first {n} through, down to {by} {{}}; it has {{}} and is number {{}}"
    told = ranked.with_columns(_last=last).filter(pl.col("rank") > n)
    return told_of(told, pl.format(words, pl.col("_last").round(4), pl.col("score").round(4), "rank"))


def authority(
    columns: Columns,
    decay: Decay,
    recency_weight: float,
    frequency_weight: float,
    authority_weight: float,
    most: Numbers | int,
) -> Numbers:
    """omega = a_r r + a_f f + a_a a, in [0, 1]; the weights are divided by their sum.

    r is the multiplier of the decay, f = ln(1 + n) / ln(2 + N) for n accesses of the document and N of the one among
    the rows of the query that was used most (0 where n is 0), a the authority that its author has. Where `most` is one
    number, the accesses of the document that was used most of all, f = ln(1 + n) / ln(1 + most), and 0 where that is.

    Source: libravdb memory 1.3.17, which adds 1 inside the logarithm below, and takes N of the rows that passed the
    first cut: f depends on the query. One N for all is of 1.3.5, mathematical reference, section 7.3.

    Args:
        most: N, of each row or one for all.
    """
    alpha, beta, gamma = shares(recency_weight, frequency_weight, authority_weight)
    used = alpha * recency(decay, columns) + beta * _frequency(_accesses(columns), most)
    return np.clip(used + gamma * share(columns, "authority"), 0.0, 1.0)


def most_accesses(columns: Columns, queries: _Places) -> Numbers:
    """Of each row, the accesses of the one that was used most among those of its query.

    Args:
        queries: the number of each row's query, ascending.
    """
    return of_queries(np.maximum, _accesses(columns), queries)


def most_of_all(batch: Batch) -> int:
    """The accesses of the document that was used most, of all that may be seen."""
    most = batch.documents["access_count"].max()
    return max(0, most) if isinstance(most, int) else 0


def _accesses(columns: Columns) -> Numbers:
    return np.maximum(columns.numbers("access_count", missing=0.0), 0.0)


def _frequency(accesses: Numbers, most: Numbers | int) -> Numbers:
    if isinstance(most, int):
        return np.minimum(np.log1p(accesses) / math.log1p(most), 1.0) if most else np.zeros(len(accesses))
    return np.log1p(accesses) / np.log(most + 2.0)


def keyword_coverage(rows: pl.DataFrame, batch: Batch, words: TermWords, places: _Places | None = None) -> Numbers:
    """The share of the query's distinct terms that the document's text has, in [0, 1]; 0 where the query has none.

    Of a query three characters or more, but for the pairs of scripts without spaces. No stop words.

    Source: libravdb memory 1.3.5, mathematical reference, section 7.5, and 1.4.4 for `ascii`; `unicode` is ours.

    Args:
        rows: columns query_id, document_id.
        batch: knows the texts.
        words: how texts are cut into terms.
        places: of the rows that are meant; None = all.
    Returns:
        Of each of these.
    """
    ids, query_ids = (rows[name] for name in ("document_id", "query_id"))
    if places is not None:
        ids, query_ids = (column[pl.Series(places.astype(np.uint32))] for column in (ids, query_ids))
    asked = {
        query_id: _asked(words, text)
        for query_id, text in zip(*(batch.queries[name].to_list() for name in ("query_id", "text")), strict=True)
    }
    unique = ids if len(asked) == 1 else ids.unique()
    texts = zip(unique.to_list(), texts_of(batch, unique).to_list(), strict=True)
    said = {document_id: _said(words, text or "") for document_id, text in texts}
    pairs = zip(query_ids.to_list(), ids.to_list(), strict=True)
    return np.array([len(asked[query] & said[one]) / max(1, len(asked[query])) for query, one in pairs], np.float64)


@lru_cache(maxsize=64)
def _asked(words: TermWords, text: str) -> frozenset[str]:
    """The terms of a query that a document should have."""
    return frozenset(Terms(words).of(text))


@lru_cache(maxsize=4096)
def _said(words: TermWords, text: str) -> frozenset[str]:
    """The terms of a document: live queries find the same ones again, and cutting a text takes longer than all else."""
    return frozenset(Terms(words).all_of(text))
