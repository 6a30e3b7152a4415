"""Words that are no match but alike: each word of a query against the word of a turn that is nearest to it."""

import logging
from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
import polars as pl
from scipy.sparse import csc_array

from lcm.errors import LcmError
from lcm.faults import is_of_machine
from lcm.protocols.models import Embedder, Vectors
from lcm.protocols.retrieval import Batch
from lcm.retrieval.ranking.columns import Rows, dot_products, standardised, units, with_evidence
from lcm.retrieval.ranking.evidence.haystack import Haystack, Numbers, Places, content_words, haystack_of
from lcm.retrieval.ranking.evidence.kept_vectors import KeptVectors
from lcm.retrieval.ranking.evidence.postings import TermIndex

_log = logging.getLogger(__name__)
_kept = KeptVectors(100_000)  # of words
COLUMNS = ("alike_session", "alike_sum")
_LEAST = 0.3  # likeness that says nothing
_ROUGH = 1e-4  # that a cosine in single precision may be off
_KEPT_NUMBERS = 10_000_000  # likenesses, of all words that were asked
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
            words.learn(dict.fromkeys(chain.from_iterable(asked.values())), self.embedder)
        except LcmError as error:
            if is_of_machine(error):
                raise
            _log.warning("single words could not be embedded, other evidence ranks alone: %s", error)
            batch.incidents["word likeness failed"] += len(asked)
            return frame.with_columns(pl.lit(0.0).alias(name) for name in COLUMNS)

        def evidence(haystack: Haystack, row: int) -> list[Numbers]:
            raw, total = np.zeros(len(haystack)), np.zeros(words.sums.shape[1])
            for word in asked[row]:
                likeness = words.likenesses[word]
                frequency = likeness.sum()
                raw += np.log1p((len(haystack) - frequency + 0.5) / (frequency + 0.5)) * likeness
                total += words.idf(word) * words.vectors[word]
            return [
                standardised(haystack.best_of(haystack.sessions, raw)),
                standardised(dot_products(words.sums, units(total[np.newaxis])[0].astype(np.float64))),
            ]

        return with_evidence(frame, batch, COLUMNS, evidence)


@dataclass(slots=True)
class _Words:
    """The word vectors of a haystack, and what has been asked of them."""

    count: int
    mean: Numbers
    vectors: dict[str, Rows]
    """Word -> unit vector, the mean taken away; the documents' first."""
    matrix: Rows
    """Shape (words, dim): of the documents' words."""
    index: TermIndex
    """Which documents hold each of them."""
    sums: Rows
    """Shape (n, dim): each document's word vectors, weighed by idf, to unit length."""
    likenesses: dict[str, Numbers] = field(default_factory=dict)

    def learn(self, words: Collection[str], embedder: Embedder) -> None:
        """Embed words that were not asked before, and compare them with those of the documents."""
        unknown = sorted(word for word in words if word not in self.vectors)
        if unknown:
            rows = _vectors_of(unknown, embedder) - self.mean
            self.vectors.update(zip(unknown, units(rows), strict=True))
        if len(self.likenesses) * self.count > _KEPT_NUMBERS:
            self.likenesses.clear()
        new = [word for word in words if word not in self.likenesses]
        if new:
            rough = self.matrix @ np.stack([self.vectors[word] for word in new]).T
            for word, row in zip(new, rough.T, strict=True):
                self.likenesses[word] = self._likeness(word, np.flatnonzero(row > _LEAST - _ROUGH))

    def idf(self, word: str) -> float:
        return min(float(np.log1p((self.count - (n := len(self.index.held(word)[0])) + 0.5) / (n + 0.5))), _IDF_LIMIT)

    def _likeness(self, word: str, near: Places) -> Numbers:
        """Of every document, in [0, 1], where some words are all that may be alike enough."""
        cosines = dot_products(self.matrix[near], self.vectors[word].astype(np.float64))
        found = np.full(self.count, _LEAST)
        for place in np.argsort(cosines):  # the best word of a document is written last
            if cosines[place] > _LEAST:
                found[self.index.holders_of(near[place])] = cosines[place]
        return (found - _LEAST) / (1 - _LEAST)


def _words(haystack: Haystack, embedder: Embedder) -> _Words:
    key = (WordLikeness, embedder.name)
    if key not in haystack.cache:
        index = TermIndex.of([list(dict.fromkeys(words)) for words in haystack.words])
        rows = _vectors_of(list(index.numbers), embedder).astype(np.float64)
        mean = rows.mean(axis=0) if len(rows) > 1 else np.zeros(embedder.dim)
        matrix = units(rows - mean)
        holders = index.holder_counts()
        idf = np.minimum(np.log1p((len(haystack) - holders + 0.5) / (holders + 0.5)), _IDF_LIMIT)
        weights = csc_array(
            (np.repeat(idf, holders.astype(np.int64)), index.holders, index.begun), (len(haystack), len(matrix))
        )
        haystack.cache[key] = _Words(
            count=len(haystack), mean=mean, vectors=dict(zip(index.numbers, matrix, strict=True)), matrix=matrix,
            index=index, sums=units(weights @ matrix.astype(np.float64)),
        )  # fmt: skip
    kept: _Words = haystack.cache[key]
    return kept


def _vectors_of(words: list[str], embedder: Embedder) -> Vectors:
    if not words:
        return np.empty((0, embedder.dim), dtype=np.float32)
    return _kept.of(embedder.name, words, lambda missing: embedder.embed(missing, "document"))


def _query_words(haystack: Haystack, text: str) -> list[str]:
    words = content_words(haystack.without_names(text))
    return [word for word in dict.fromkeys(words) if word not in haystack.names]
