"""Two passes over the candidates of all queries, as a stage and as one writes them in numpy."""

import re
from collections.abc import Callable, Set
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import polars as pl

from eval.benchmark.timing import Comparison, DisagreementError, Target, compared_times, take_turns
from lcm.retrieval.decay.exponential import Exponential
from lcm.retrieval.fusion.two_pass import TwoPass
from lcm.retrieval.text_index.words import split_words
from tests.support.numpy_twins.fused import FusedBatch, FusedSizes, Numbers

TARGET = Target("at most", 1.5)

_TOLERANCE = 1e-9
_ASCII_TERM = re.compile("[a-z0-9_]+")
_SHORTEST = 3

Best = tuple[npt.NDArray[np.int64], Numbers]
"""Rows of the frame, best first within each query, and their scores."""


@dataclass(frozen=True, slots=True)
class TwoPassScore(FusedSizes):
    """`TwoPass` over one frame of all queries against the same in numpy: tables of queries and candidates, and sets of
    terms.

    Both are given raw cosines and find texts by document ids. Compared with the words of the query, and without, where
    what is left is the price of a frame: tables of numbers alone are sorted several times as fast.
    """

    fusion: TwoPass
    dim: int = field(default=16, init=False)
    """Of vectors that nothing here looks at."""

    def __post_init__(self) -> None:
        FusedSizes.__post_init__(self)
        if not isinstance(self.fusion.recency, Exponential):
            raise ValueError(
                f"recency must decay exponentially to be compared with numpy, got {self.fusion.recency!r}: "
                "decay=authority"
            )

    def run(self, repeats: int, seed: int) -> list[Comparison]:
        made = self.fused_batch(seed)
        return [
            self._compared("two-pass", made, self.fusion, repeats, TARGET),
            self._compared("two-pass, without words", made, replace(self.fusion, kappa=0.0), repeats, None),
        ]

    def _compared(
        self, name: str, made: FusedBatch, fusion: TwoPass, repeats: int, target: Target | None
    ) -> Comparison:
        arrays = Arrays.of(made)
        rounds = take_turns(
            lambda: lambda: fusion(made.frame, made.batch),
            lambda: lambda: best(arrays, fusion),
            _agreement(made.frame),
            repeats,
        )
        return compared_times(name, "µs a query", 1e6 / self.queries, rounds, target, self.facts)


@dataclass(frozen=True, slots=True)
class Arrays:
    """What the frame holds, each of shape (queries, candidates)."""

    cosine: Numbers
    age_seconds: Numbers
    accesses: Numbers
    authority: Numbers
    loss: Numbers
    """The decay rate of a summary, 0 of anything else."""
    document_ids: list[list[str]]
    texts: dict[str, str]
    """Of documents, by id."""
    questions: list[str]

    @classmethod
    def of(cls, made: FusedBatch) -> "Arrays":
        def table(column: pl.Expr) -> Numbers:
            numbers: Numbers = made.frame.select(column.cast(pl.Float64).fill_null(0.0)).to_series().to_numpy()
            return numbers.reshape(len(made.batch.queries), -1)

        created = pl.col("created_at").cast(pl.Int64)
        age_ms = pl.when(created > 0).then(pl.col("asked_at").cast(pl.Int64) - created).clip(lower_bound=0)
        ids = np.array(made.frame["document_id"].to_list(), dtype=object).reshape(len(made.batch.queries), -1)
        return cls(
            cosine=table(pl.col("cosine")),
            age_seconds=table(age_ms) / 1000,
            accesses=table(pl.col("access_count")),
            authority=table(pl.col("authority")),
            loss=table(pl.when(pl.col("kind") == "summary").then("decay_rate")),
            document_ids=ids.tolist(),
            texts=dict(made.batch.documents.select("document_id", "text").iter_rows()),
            questions=made.batch.queries["text"].to_list(),
        )


def best(arrays: Arrays, fusion: TwoPass) -> Best:
    """What two passes leave of each query, all of whose documents are durable and none guidance."""
    if not isinstance(fusion.recency, Exponential):
        raise TypeError(f"recency must decay exponentially, got {fusion.recency!r}")
    queries, candidates = arrays.cosine.shape
    cosine = arrays.cosine.clip(-1, 1)
    order = np.argsort(-cosine, axis=1, kind="stable")[:, : fusion.k1]

    def kept(table: Numbers) -> Numbers:
        return np.take_along_axis(table, order, axis=1)

    cosine = kept(cosine)
    is_near = cosine >= fusion.theta1
    accesses = np.where(is_near, kept(arrays.accesses), 0)
    weights = np.array([fusion.recency_weight, fusion.frequency_weight, fusion.authority_weight])
    recency, frequency, authored = weights / weights.sum()
    omega = (
        recency * np.exp(-fusion.recency.durable_rate * kept(arrays.age_seconds))
        + frequency * np.log1p(accesses) / np.log(accesses.max(axis=1, keepdims=True) + 2)
        + authored * kept(arrays.authority)
    ).clip(0, 1)
    score = omega * cosine.clip(0) * (1 - fusion.summary_delta * kept(arrays.loss))
    if fusion.kappa:
        score *= (1 + fusion.kappa * _coverage(arrays, fusion, order, is_near)) / (1 + fusion.kappa)
    second = np.argsort(np.where(is_near, -score, np.inf), axis=1, kind="stable")[:, : fusion.k2]
    is_left = np.take_along_axis(is_near, second, axis=1)
    rows = np.take_along_axis(order, second, axis=1) + np.arange(queries)[:, np.newaxis] * candidates
    return rows[is_left], np.take_along_axis(score, second, axis=1)[is_left]


def _coverage(arrays: Arrays, fusion: TwoPass, order: npt.NDArray[np.int64], is_near: npt.NDArray[np.bool_]) -> Numbers:
    coverage = np.zeros(order.shape)
    cut: Callable[[str], list[str]] = _ascii_terms if fusion.terms == "ascii" else _terms
    known: dict[str, Set[str]] = {}
    for query, question in enumerate(arrays.questions):
        keywords = {term for term in cut(question) if len(term) >= _SHORTEST}
        if not keywords:
            continue
        ids = arrays.document_ids[query]
        for place in np.flatnonzero(is_near[query]).tolist():
            document_id = ids[order[query, place]]
            if document_id not in known:
                known[document_id] = frozenset(cut(arrays.texts[document_id]))
            coverage[query, place] = len(keywords & known[document_id]) / len(keywords)
    return coverage


def _ascii_terms(text: str) -> list[str]:
    return _ASCII_TERM.findall(text.lower())


def _terms(text: str) -> list[str]:
    words, _ = split_words(text)  # the texts here are of no script without spaces
    return words


def _agreement(frame: pl.DataFrame) -> Callable[[pl.DataFrame, Best], None]:
    """The check that both left the same rows of the frame in the same order, with the same scores."""

    def check(ours: pl.DataFrame, bare: Best) -> None:
        rows, scores = bare
        if not ours.select("query_id", "document_id").equals(frame.select("query_id", "document_id")[rows]):
            raise DisagreementError("two passes and those in numpy gave different orders")
        if not np.allclose(ours["score"].to_numpy(), scores, rtol=0, atol=_TOLERANCE):
            raise DisagreementError("two passes and those in numpy gave different scores")

    return check
