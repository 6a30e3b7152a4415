"""One score from what several branches say: sums of scores or ranks, a linear model, and libravdb's two passes."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from lcm.checks import check_choice, check_range, check_weights
from lcm.protocols.contract import Contract
from lcm.protocols.retrieval import Batch, Columns, Decay, Numbers, numbers_of
from lcm.records.rules import Rules
from lcm.retrieval.frames import beside, best_by, best_first, of_queries, query_numbers, taken, texts_of, told_of
from lcm.retrieval.ranking.evidence.text_evidence import FormEvidence, SpeakerEvidence, TimeEvidence, WordEvidence
from lcm.retrieval.ranking.evidence.vector_evidence import FurtherVectorEvidence, VectorEvidence, WordLikeness
from lcm.retrieval.source.indexes import further_branches, read_by
from lcm.retrieval.terms import Terms, TermWords

FrequencyOver = Literal["near", "all"]
_Places = npt.NDArray[np.int64]
EVIDENCE_COLUMNS = frozenset().union(
    *(stage.contract.makes for stage in (FormEvidence, SpeakerEvidence, TimeEvidence, WordEvidence)),
    *(stage.contract.makes for stage in (FurtherVectorEvidence, VectorEvidence, WordLikeness)),
)
"""What stages of evidence make."""


def shares(*weights: float) -> list[float]:
    """Each weight divided by their sum, which is not 0."""
    whole = sum(weights)
    return [weight / whole for weight in weights]


def share(columns: Columns, name: str, least: float = 0.0) -> Numbers:
    """A column within [least, 1]; what is missing or no number counts as 0."""
    values = columns.numbers(name)
    return np.clip(np.where(np.isnan(values), 0.0, values), least, 1.0)


def recency(decay: Decay, columns: Columns) -> Numbers:
    """The multiplier of the decay; 1 for what is authored, which has no age."""
    return np.where(columns.are("kind", "authored"), 1.0, columns.by_document(decay.multiplier))


def summary_quality(delta: float, columns: Columns) -> Numbers | float:
    """Q = 1 - delta decay_rate for a summary, 1 for anything else; in [1 - delta, 1].

    A decay rate is 1 - the confidence of whoever wrote the summary; one that is no number counts as 0.

    Source: libravdb memory 1.3.5, mathematical reference, section 1.
    """
    if delta == 0:
        return 1.0
    return np.where(columns.are("kind", "summary"), 1.0 - delta * share(columns, "decay_rate"), 1.0)


def further_weights(frame: pl.DataFrame, weights: Mapping[str, float]) -> dict[str, float]:
    """Branch -> weight, of every further branch that a frame has; one that is not named weighs 1.

    Raises:
        ValueError: if a weight names no branch of the frame.
    """
    names = further_branches(frame)
    for name in weights:
        if name not in names:
            remedy = f"choose from: {', '.join(names)}" if names else "choose source=branches, which has some"
            raise ValueError(f"weights.{name} names no branch that the source has beside dense and lexical; {remedy}")
    return {name: weights.get(name, 1.0) for name in names}


@dataclass(frozen=True, slots=True)
class WeightedSum:
    """Fuse dense_score v and lexical_score b, each 0 where its branch did not return the document.

    In the dense branch: max(w_v v + w_b b, floor_ratio b if b >= floor_from else 0). Found by words alone: b itself,
    unweighted. Of what these two give, at weight 1, and the scores of all further branches, at their weights, it is the
    mean; a branch that `weights` does not name weighs 1. Clamped to [0, 1] where `clamp` says so; what is not a number
    becomes 0.1.

    Source: memory-lancedb-pro, fuseResults; further branches are ours.
    """

    dense_weight: float = 0.7
    lexical_weight: float = 0.3
    floor_ratio: float = 0.92
    """0 switches the floor off."""
    floor_from: float = 0.75
    clamp: bool = True
    weights: Mapping[str, float] = field(default_factory=dict)
    """Of the branches beside dense and lexical, by name."""

    @property
    def contract(self) -> Contract:
        reads = ("dense_score", "lexical_score", "dense_rank")
        return Contract(reads=reads, weighs_branches=True, gives_unit_scores=self.clamp)

    def __post_init__(self) -> None:
        check_weights(self, "dense_weight", "lexical_weight", "floor_ratio")
        check_range(self, "floor_from")
        check_range(self, "weights", ge=0)

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        return best_first(beside(frame, [pl.Series("score", self.scores(frame))]))

    @np.errstate(all="ignore")
    def scores(self, frame: pl.DataFrame) -> Numbers:
        columns, further = Columns(frame), further_weights(frame, self.weights)
        fused = self._of_two(columns)
        if further:
            for name, weight in further.items():
                fused = fused + weight * columns.numbers(f"{name}_score", missing=0.0)
            fused = fused / (1.0 + sum(further.values()))
        return np.where(np.isfinite(fused), np.clip(fused, 0.0, 1.0) if self.clamp else fused, 0.1)

    def _of_two(self, columns: Columns) -> Numbers:
        dense, lexical = (columns.numbers(name, missing=0.0) for name in ("dense_score", "lexical_score"))
        total = self.dense_weight * dense + self.lexical_weight * lexical
        if self.floor_ratio > 0:
            floor = np.where(lexical >= self.floor_from, self.floor_ratio * lexical, 0.0)
            total = np.where(total < floor, floor, total)  # no number stays none, and is replaced above
        return np.where(columns.are_missing("dense_rank"), lexical, total)


@dataclass(frozen=True, slots=True)
class ReciprocalRank:
    """score = sum over the branches that returned the document of weight / (k + rank), ranks 1-based.

    A branch that `weights` does not name weighs 1.

    Source: Cormack, Clarke, Buettcher, "Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning
    Methods", SIGIR 2009, with weights as is common since (all 1 there).
    """

    k: float = 60.0
    dense_weight: float = 1.0
    lexical_weight: float = 1.0
    weights: Mapping[str, float] = field(default_factory=dict)
    """Of the branches beside dense and lexical, by name."""
    contract = Contract(
        reads=("dense_rank", "lexical_rank"),
        weighs_branches=True,
        gives_unit_scores=False,  # a few hundredths, where others give a score near 1
    )

    def __post_init__(self) -> None:
        check_range(self, "k", "dense_weight", "lexical_weight", "weights", ge=0)
        if any((self.dense_weight, self.lexical_weight, *self.weights.values())):
            check_weights(self, "dense_weight", "lexical_weight", "weights")

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        return best_first(beside(frame, [pl.Series("score", self.scores(frame))]))

    def scores(self, frame: pl.DataFrame) -> Numbers:
        weights = {"dense": self.dense_weight, "lexical": self.lexical_weight, **further_weights(frame, self.weights)}
        if not any(weights.values()):  # only the frame tells which branches there are that weigh 1 unnamed
            raise ValueError(
                f"every branch ({', '.join(weights)}) weighs 0: raise dense_weight, lexical_weight or weights"
            )
        columns, score = Columns(frame), np.zeros(len(frame))
        for name, weight in weights.items():
            rank = columns.numbers(f"{name}_rank")
            score += np.where(np.isnan(rank), 0.0, weight / (self.k + rank))
        return score


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
    def contract(self) -> Contract:
        return Contract(reads=("cosine", "scope_class", "decay_rate", "kind", *read_by(self.recency)))

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        return best_first(beside(frame, [pl.Series("score", self.scores(frame))]))

    def scores(self, frame: pl.DataFrame) -> Numbers:
        columns = Columns(frame)
        alpha, beta, gamma = shares(self.cosine_weight, self.recency_weight, self.scope_weight)
        scope = np.where(columns.are("scope_class", "durable"), self.durable_scope, self.global_scope)
        scope = np.where(columns.are("scope_class", "session"), self.session_scope, scope)
        base = alpha * share(columns, "cosine") + beta * recency(self.recency, columns) + gamma * scope
        return np.clip(base * summary_quality(self.summary_delta, columns), 0.0, 1.0)


@dataclass(frozen=True, slots=True)
class Learnt:
    """score = the sum over columns of weight times value; a missing value counts 0, and so does evidence that no stage
    before has made (`EVIDENCE_COLUMNS`), so that weights learnt in one ranking stand in another.

    Columns should come on one scale, as standard scores and shares do: nothing is scaled here.

    Source: ours; `docs/unified.md` says how the weights of `fusion=unified` were learnt.
    """

    weights: Mapping[str, float] = field(default_factory=lambda: {"dense_score": 1.0, "lexical_score": 0.5})
    """Column -> weight."""

    def __post_init__(self) -> None:
        if not self.weights:
            raise ValueError("weights must name at least one column, got none")
        check_range(self, "weights")

    @property
    def contract(self) -> Contract:
        return Contract(reads=tuple(self.weights), gives_unit_scores=False)

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        return best_first(beside(frame, [pl.Series("score", self.scores(frame))]))

    def scores(self, frame: pl.DataFrame) -> Numbers:
        named = set(frame.columns)  # each is asked for its type: of a whole schema a live query waits longer
        columns = {name: frame[name] for name in self.weights if name in named}
        found = {name: column for name, column in columns.items() if column.dtype.is_numeric()}
        for column in self.weights:
            if column not in found and (column not in EVIDENCE_COLUMNS or not found):
                raise ValueError(
                    f"weights.{column} names no column of numbers that a stage before makes; leave it out, or choose "
                    "from: " + ", ".join(sorted(name for name, dtype in frame.schema.items() if dtype.is_numeric()))
                )
        score = np.zeros(len(frame))  # in numpy: a plan of so many columns takes longer than their sum
        for name, held in found.items():
            values = numbers_of(held)
            if (is_missing := np.isnan(values)).any():
                values = np.where(is_missing, 0.0, values)
            score += values * self.weights[name]
        return score


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
    def contract(self) -> Contract:
        reads = ("cosine", "access_count", "authority", "decay_rate", "kind", *read_by(self.recency))
        return Contract(reads=reads)

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        groups = self._groups(frame)
        near, scores = self._near(frame, batch, groups)
        first = best_by([scores], groups[near], self.k2)
        rows, scores = near[first], scores[first]
        order = np.lexsort((-scores, query_numbers(frame)[rows]))
        return beside(taken(frame, rows[order]), [pl.Series("score", scores[order])])

    def reasons(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        """Of what is dropped, which cut did it, and by how much it missed that."""
        groups, cosines = self._groups(frame), _cosines(Columns(frame))
        rows = np.argsort(groups, kind="stable")
        by_cosine = _ranked(frame, rows, cosines[rows], groups)
        near, scores = self._near(frame, batch, groups)
        is_first = pl.col("rank") <= self.k1
        is_far = pl.Series(~self._are_near(by_cosine["score"].to_numpy(), by_cosine["_group"].to_numpy()))
        lacks = pl.when(pl.col("_group") % 2 == 1).then(pl.lit("not above")).otherwise(pl.lit("below"))
        below = pl.format(f"cosine {{}} {{}} theta1 {self.theta1:g}", pl.col("score").round(4), lacks)
        return pl.concat(
            [
                _behind(by_cosine, self.k1, "k1", "cosine"),
                told_of(by_cosine.filter(is_first & is_far), below),
                _behind(_ranked(frame, near, scores, groups), self.k2, "k2", "score"),
            ]
        )

    def _groups(self, frame: pl.DataFrame) -> _Places:
        """The number of those that each row is cut with: even, and odd where it is guidance of its query."""
        groups = 2 * query_numbers(frame)
        return groups + Columns(frame).are("kind", "guidance") if self.rules == "corrected" else groups

    def _are_near(self, cosines: Numbers, groups: _Places) -> npt.NDArray[np.bool_]:
        return np.where(groups % 2 == 1, cosines > self.theta1, cosines >= self.theta1)

    def _near(self, frame: pl.DataFrame, batch: Batch, groups: _Places) -> tuple[_Places, Numbers]:
        """The rows that pass the first cut, those of a group together and best first, with the scores of the second."""
        rows, cosines = np.argsort(groups, kind="stable"), _cosines(Columns(frame))
        first = rows[best_by([cosines[rows]], groups[rows], self.k1)]
        near = first[self._are_near(cosines[first], groups[first])]
        columns = Columns(frame, near)
        weights = (self.recency_weight, self.frequency_weight, self.authority_weight)
        most = most_accesses(columns, groups[near]) if self.frequency_over == "near" else most_of_all(batch)
        score = authority(columns, self.recency, *weights, most) * np.maximum(_cosines(columns), 0.0)
        if self.kappa > 0:
            covered = keyword_coverage(frame, batch, self.terms, near)
            score *= (1.0 + self.kappa * covered) / (1.0 + self.kappa)
        return near, np.clip(score * summary_quality(self.summary_delta, columns), 0.0, 1.0)


def _cosines(columns: Columns) -> Numbers:
    return share(columns, "cosine", least=-1.0)


def _ranked(frame: pl.DataFrame, rows: _Places, scores: Numbers, groups: _Places) -> pl.DataFrame:
    """Some rows, those of a group together, best first, with `score`, `rank` in their group and its number `_group`."""
    groups = groups[rows]
    order = best_by([scores], groups, max(1, len(rows)))
    groups = groups[order]
    starts = np.searchsorted(groups, groups)
    columns = [pl.Series("rank", np.arange(len(order)) - starts + 1), pl.Series("_group", groups)]
    return beside(taken(frame, rows[order]), [pl.Series("score", scores[order]), *columns])


def _behind(ranked: pl.DataFrame, n: int, cut: str, by: str) -> pl.DataFrame:
    """Of ranked rows behind the first n of their group, where they stand and what the last of the first has."""
    last = pl.col("score").filter(pl.col("rank") == n).first().over("_group")
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
