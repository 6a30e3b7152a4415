"""Words that are no match but alike: each word of a query against the word of a turn that is nearest to it."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np
import polars as pl
from scipy.sparse import csr_array

from lcm.errors import LcmError
from lcm.faults import is_of_machine
from lcm.protocols.models import Embedder
from lcm.protocols.retrieval import Batch
from lcm.retrieval.frames import query_runs
from lcm.retrieval.ranking.evidence.kept_rows import (
    NOTHING,
    BlockSums,
    KeptRows,
    Numbers,
    Places,
    Rows,
    dot_products,
    units,
)
from lcm.retrieval.ranking.evidence.talk import Excerpt, Talk, highest, runs, talk_of, told_apart, with_evidence

_log = logging.getLogger(__name__)
COLUMNS = ("alike_session", "alike_sum")
LEAST_LIKENESS = 0.3
"""A cosine that says nothing."""
IDF_LIMIT = 4.5
"""A word that is nowhere weighs no more."""
_ROUGH = 1e-4  # that a cosine in single precision may be off
_KEPT_NUMBERS = 10_000_000  # likenesses, of all words that were asked


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
    """Of single words: each is embedded once while a memory is open, and what a cache keeps not even then."""

    makes = COLUMNS

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        talk, texts = talk_of(batch), batch.queries["text"]
        wanted = {query_id for _, query_id in query_runs(frame)}
        asked = {
            row: list(dict.fromkeys(talk.speakers.query_words(texts[row])))
            for row, query_id in enumerate(batch.queries["query_id"])
            if query_id in wanted
        }
        try:
            words = self._words(talk)
            words.learn(list(dict.fromkeys(chain.from_iterable(asked.values()))))
        except LcmError as error:
            if is_of_machine(error):
                raise
            _log.warning("single words could not be embedded, other evidence ranks alone: %s", error)
            batch.incidents["word likeness failed"] += len(asked)
            return frame.with_columns(pl.lit(0.0).alias(name) for name in COLUMNS)

        def evidence(seen: Excerpt, row: int) -> list[Numbers]:
            alike, cosines = words.likeness(seen, asked[row])
            best = highest(seen.sessions, alike)[seen.sessions]
            return [seen.standardised(best), seen.standardised(cosines)]

        return with_evidence(frame, batch, COLUMNS, evidence)

    def _words(self, talk: Talk) -> "TalkWords":
        """Made once a talk."""
        key = TalkWords, self.embedder.name
        if key not in talk.cache:
            with talk.talks.lock:
                talk.cache[key] = TalkWords(talk, self.embedder)
        words: TalkWords = talk.cache[key]
        return words


class TalkWords:
    """The word vectors of a talk and of the words that are asked: what counts is what differs from the mean of all."""

    def __init__(self, talk: Talk, embedder: Embedder) -> None:
        self._talk, self._embedder = talk, embedder
        kept, key = talk.talks.kept, (TalkWords, embedder.name)
        made: tuple[KeptRows, BlockSums] = kept.setdefault(key, (KeptRows(embedder.dim), BlockSums()))
        self._raw, sums = made
        said = talk.said
        places = talk.firsts(said.words)
        self._held, turns = said.words[places].astype(np.int64), talk.turns[said.documents[places]]
        """Every word of every turn, once."""
        self._begun = np.searchsorted(turns, np.arange(len(talk) + 1))
        self._turns_of = np.bincount(self._held, minlength=len(talk.talks.words)).astype(np.float64)
        """How many turns hold each word."""
        words = np.flatnonzero(self._turns_of)
        self._mean = np.zeros(embedder.dim)
        if len(words) > 1:  # the mean of one would leave nothing of it
            count, total = sums.of(words, np.zeros(len(words), np.int64), self._rows)[0]
            self._mean = total / count
        self._sums = KeptRows(embedder.dim, len(talk))

    def learn(self, words: Sequence[str]) -> None:
        """Embed words that are asked and not known yet."""
        self._rows(self._numbers(words))

    def likeness(self, seen: Excerpt, words: Sequence[str]) -> tuple[Numbers, Numbers]:
        """Of each turn the weighed sum of its likenesses to words that were asked, and the cosine between the sums.

        A word is as frequent as its likenesses to the turns seen add up to; where these are not all, at least as the
        turns that hold it.
        """
        count, numbers = len(self._talk), self._numbers(words)
        raw, total = np.zeros(len(seen)), np.zeros(self._embedder.dim)
        said = self._said(seen)
        self._compare(seen, numbers)
        for number, row in zip(numbers.tolist(), self._asked(numbers), strict=True):
            turns = self._turns_of[number] if number < len(self._turns_of) else 0.0
            likeness = said.likenesses[number]
            frequency = likeness.sum() if seen.is_everything else max(likeness.sum(), turns)
            raw += np.log1p((count - frequency + 0.5) / (frequency + 0.5)) * likeness
            total += _idf(turns, count) * row
        with self._talk.talks.lock:
            sums = self._sums.of(
                seen.numbers, lambda missing: self._sums_of(said, np.searchsorted(seen.numbers, missing))
            )
        return raw, dot_products(sums, units(total[np.newaxis])[0].astype(np.float64))

    def _compare(self, seen: Excerpt, numbers: Places) -> None:
        """Note of words that are asked how like every turn is, in [0, 1]."""
        said = self._said(seen)
        if len(said.likenesses) * len(seen) > _KEPT_NUMBERS:
            said.likenesses.clear()
        new = np.array([number for number in numbers.tolist() if number not in said.likenesses], np.int64)
        values = np.full(len(said.rows), LEAST_LIKENESS)
        for number, asked in zip(new.tolist(), self._asked(new), strict=True):
            shared, rough = asked @ self._mean, _products(said.rows, asked)
            close = np.flatnonzero(rough - shared > (LEAST_LIKENESS - _ROUGH) * said.lengths)
            values[close] = (said.rows[close].astype(np.float64) @ asked - shared) / said.lengths[close]
            of_words = values[said.places]
            is_like = of_words > LEAST_LIKENESS
            best = np.full(len(seen), LEAST_LIKENESS)
            np.maximum.at(best, said.turns[is_like], of_words[is_like])
            said.likenesses[number] = (best - LEAST_LIKENESS) / (1 - LEAST_LIKENESS)
            values[close] = LEAST_LIKENESS

    def _said(self, seen: Excerpt) -> "_Said":
        return seen.kept(self, lambda: self._made(seen))

    def _made(self, seen: Excerpt) -> "_Said":
        begun, ends = self._begun[seen.numbers], self._begun[seen.numbers + 1]
        numbers, places = told_apart(self._held[runs(begun, ends)], len(self._turns_of))
        turns = np.repeat(np.arange(len(seen)), ends - begun)
        rows = self._rows(numbers)
        squares = np.einsum("wd,wd->w", rows, rows) - 2 * _products(rows, self._mean) + self._mean @ self._mean
        lengths: Numbers = np.sqrt(np.maximum(squares.astype(np.float64), NOTHING))
        weights = _idf(self._turns_of[numbers], len(self._talk)) / lengths
        return _Said(
            places, np.append(0, np.cumsum(ends - begun)), turns, rows, lengths, weights.astype(np.float32), {}
        )

    def _sums_of(self, said: "_Said", turns: Places) -> Rows:
        """The word vectors of some turns, weighed by idf, added up to unit length."""
        begun, ends = said.begun[turns], said.begun[turns + 1]
        places = said.places[runs(begun, ends)]
        behind = np.append(0, np.cumsum(ends - begun))
        weighed = csr_array((said.weights[places], places, behind), (len(turns), len(said.rows)))
        sums = weighed @ said.rows - np.multiply.outer(weighed.sum(axis=1), self._mean.astype(np.float32))
        return units(sums)

    def _asked(self, numbers: Places) -> Numbers:
        """Unit vectors of words that are asked, the mean taken away."""
        rows = self._rows(numbers) - self._mean
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        found: Numbers = np.where(lengths > NOTHING, rows / np.maximum(lengths, NOTHING), 0.0)
        return found

    def _numbers(self, words: Sequence[str]) -> Places:
        """The numbers of words; new ones get one."""
        with self._talk.talks.lock:
            return np.array([self._talk.talks.words[word] for word in words], np.int64)

    def _rows(self, numbers: Places) -> Rows:
        """The vectors of words as they are embedded."""
        names = self._talk.talks.words.names
        with self._talk.talks.lock:
            return self._raw.of(
                numbers,
                lambda missing: self._embedder.embed([names[number] for number in missing.tolist()], "document"),
            )


class _Said(NamedTuple):
    """The words of an excerpt: of every turn each once."""

    places: Places
    """Of each word of each turn, turn by turn, its place in `rows`."""
    begun: Places
    """Where those of each turn begin, and where those of the last end."""
    turns: Places
    """Of each its turn's place."""
    rows: Rows
    """The vectors of the words that differ, as they are embedded."""
    lengths: Numbers
    """Of each, the mean taken away."""
    weights: Rows
    """The idf of each, divided by its length."""
    likenesses: dict[int, Numbers]
    """Number of a word that was asked -> how like every turn is."""


def _products(rows: Rows, vector: Numbers) -> Rows:
    """Of each row with a vector: without threads, for a product this short waits for them on cores in use."""
    found: Rows = np.einsum("wd,d->w", rows, vector.astype(np.float32))
    return found


def _idf(held: Numbers | float, count: int) -> Numbers:
    """How much words weigh that so many of all turns hold."""
    found: Numbers = np.minimum(np.log1p((count - held + 0.5) / (held + 0.5)), IDF_LIMIT)
    return found
