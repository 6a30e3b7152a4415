"""Words that are no match but alike: each word of a query against the word of a turn that is nearest to it."""

import logging
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from lcm.errors import LcmError
from lcm.faults import is_of_machine
from lcm.protocols.models import Embedder
from lcm.protocols.retrieval import Batch
from lcm.retrieval.ranking.columns import on_grid, standardised, with_evidence
from lcm.retrieval.ranking.evidence.haystack import Haystack, Numbers, Places, content_words, haystack_of

_log = logging.getLogger(__name__)
COLUMNS = ("alike_session", "alike_sum")
_LEAST = 0.3  # likeness that says nothing
_IDF_LIMIT = 4.5  # a word that is nowhere weighs no more


@dataclass(frozen=True, slots=True)
class WordLikeness:
    """Add columns, from the cosines of single words' vectors, less the mean of the documents' words.

    The likeness of a query's word to a document is its highest cosine with one of the document's words, what exceeds
    0.3 of it scaled to [0, 1]. Like documents are rare or frequent as words are, so a word weighs
    ln(1 + (N - n + .5) / (n + .5)), where n is the sum of its likenesses. `alike_session`: the session's best weighed
    sum over the query's words; `alike_sum`: the cosine between the sums of the word vectors of both, each weighed by
    its idf; both as standard scores. All 0 where words cannot be embedded, which is logged and counted.

    Source: ours, after ColBERT's MaxSim (Khattab and Zaharia 2020) and soft cardinality.
    """

    embedder: Embedder
    """Of single words: each is embedded once a haystack, and what a cache keeps not even then."""

    makes = COLUMNS

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        haystack = haystack_of(batch.documents)
        texts = batch.queries["text"]
        wanted = set(frame["query_id"].unique())
        asked = {
            row: _query_words(haystack, texts[row])
            for row, query_id in enumerate(batch.queries["query_id"])
            if query_id in wanted
        }
        try:
            words = _words(haystack, self.embedder)
            words.learn({word for of_one in asked.values() for word in of_one}, self.embedder)
        except LcmError as error:
            if is_of_machine(error):
                raise
            _log.warning("single words could not be embedded, other evidence ranks alone: %s", error)
            batch.incidents["word likeness failed"] += len(asked)
            return frame.with_columns(pl.lit(0.0).alias(name) for name in COLUMNS)

        def evidence(haystack: Haystack, row: int) -> list[Numbers]:
            raw, total = np.zeros(len(haystack)), np.zeros(words.sums.shape[1])
            for word in asked[row]:
                likeness = words.likeness(word)
                frequency = likeness.sum()
                raw += np.log1p((len(haystack) - frequency + 0.5) / (frequency + 0.5)) * likeness
                total += words.idf(word) * words.vectors[word]
            return [
                standardised(haystack.best_of(haystack.sessions, raw)),
                standardised(words.sums @ _centred(total[np.newaxis], np.zeros(len(total)))[0]),
            ]

        return with_evidence(frame, batch, COLUMNS, evidence)


@dataclass(slots=True)
class _Words:
    """The word vectors of a haystack, and what has been asked of them."""

    count: int
    mean: Numbers
    vectors: dict[str, Numbers]
    """Word -> unit vector, the mean taken away; the documents' first."""
    matrix: Numbers
    """Shape (words, dim): of the documents' words."""
    holders: Numbers
    """How many documents hold each of them."""
    numbers: dict[str, int]
    flat: Places
    """The numbers of each document's words, one document after another."""
    begun: Places
    """Where the words of each document that has any begin in `flat`."""
    worded: Places
    """The documents that have any."""
    sums: Numbers
    """Shape (n, dim): each document's word vectors, weighed by idf, to unit length."""
    likenesses: dict[str, Numbers] = field(default_factory=dict)

    def learn(self, words: set[str], embedder: Embedder) -> None:
        unknown = sorted(words - self.vectors.keys())
        if unknown:
            self.vectors.update(
                zip(unknown, _centred(embedder.embed(unknown, "document").astype(np.float64), self.mean), strict=True)
            )

    def idf(self, word: str) -> float:
        holders = self.holders[self.numbers[word]] if word in self.numbers else 0.0
        return min(float(np.log1p((self.count - holders + 0.5) / (holders + 0.5))), _IDF_LIMIT)

    def likeness(self, word: str) -> Numbers:
        """Of every document, in [0, 1]."""
        if word not in self.likenesses:
            found = np.zeros(self.count)
            if len(self.flat):
                cosines = self.matrix @ self.vectors[word]
                found[self.worded] = np.maximum.reduceat(cosines[self.flat], self.begun)
            self.likenesses[word] = np.maximum(found - _LEAST, 0.0) / (1 - _LEAST)
        return self.likenesses[word]


def _words(haystack: Haystack, embedder: Embedder) -> _Words:
    key = (WordLikeness, embedder.name)
    if key not in haystack.cache:
        lists = [list(dict.fromkeys(words)) for words in haystack.words]
        numbers: dict[str, int] = {}
        for words in lists:
            for word in words:
                numbers.setdefault(word, len(numbers))
        rows = embedder.embed(list(numbers), "document").astype(np.float64)
        mean = rows.mean(axis=0) if len(rows) > 1 else np.zeros(embedder.dim)
        matrix = _centred(rows, mean)
        flat = np.array([numbers[word] for words in lists for word in words], dtype=np.int64)
        sizes = np.array([len(words) for words in lists], dtype=np.int64)
        worded = np.flatnonzero(sizes)
        holders = np.bincount(flat, minlength=len(numbers)).astype(np.float64)
        idf = np.minimum(np.log1p((len(lists) - holders + 0.5) / (holders + 0.5)), _IDF_LIMIT)
        sums = np.zeros((len(lists), embedder.dim))
        np.add.at(sums, np.repeat(np.arange(len(lists)), sizes), matrix[flat] * idf[flat, np.newaxis])
        haystack.cache[key] = _Words(
            count=len(lists), mean=mean, vectors=dict(zip(numbers, matrix, strict=True)), matrix=matrix,
            holders=holders, numbers=numbers, flat=flat, begun=(np.cumsum(sizes) - sizes)[worded], worded=worded,
            sums=_centred(sums, np.zeros(embedder.dim)),
        )  # fmt: skip
    kept: _Words = haystack.cache[key]
    return kept


def _centred(rows: Numbers, mean: Numbers) -> Numbers:
    """Rows less the mean, to unit length, on the grid."""
    less = rows - mean
    lengths = np.linalg.norm(less, axis=1, keepdims=True)
    return on_grid(np.where(lengths > 1e-6, less / np.maximum(lengths, 1e-6), 0.0))


def _query_words(haystack: Haystack, text: str) -> list[str]:
    words = content_words(haystack.without_names(text))
    return [word for word in dict.fromkeys(words) if word not in haystack.names]
