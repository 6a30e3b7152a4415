"""What vectors say: of turns and what stands around them, by the memory's embedder or another, and of single words."""

import logging
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy.sparse import csr_array

from lcm.errors import LcmError, UnrecordedReplyError
from lcm.faults import is_of_machine
from lcm.protocols.contract import Contract
from lcm.protocols.models import Embedder, Vectors
from lcm.protocols.retrieval import Batch, Numbers, Places
from lcm.retrieval.frames import query_runs
from lcm.retrieval.indexes import embedded, embedded_texts, mean_vector
from lcm.retrieval.indexing import bm25_idf
from lcm.retrieval.ranking.evidence.talk import Excerpt, Talk, highest, talk_of, told_apart, with_evidence

_log = logging.getLogger(__name__)
Rows = npt.NDArray[np.float32]
Make = Callable[[Places], Rows]
"""Gives the rows of some numbers; of documents, their places in a talk."""
FEW = 5
"""Documents of one speaker whose mean is no better known than that of all, if there are no more."""
LEAST_LIKENESS = 0.3
"""A cosine of words that says nothing."""
IDF_LIMIT = 4.5
"""A word that is nowhere weighs no more."""
_RADIUS = 2  # of the wide window
_NOTHING = 1e-6  # a vector that is shorter says nothing
_GRID = 2.0**20
_ROUGH = 1e-4  # that a cosine in single precision may be off
_AT_ONCE = 1024  # rows: in double precision, they and a query lie in the processor's cache
_FIRST_ROOM = 64
_KEPT_NUMBERS = 10_000_000  # likenesses, of all words that were asked


@dataclass(frozen=True, slots=True)
class VectorEvidence:
    """Add columns: standard scores of cosines among all turns that the query may see.

    The query is embedded without author names; documents have the mean vector of their speaker (of their role, where
    none is named; of all, where it has fewer than 5 documents) taken away, for that is what the name before each turn
    adds. `meaning_passage`: of the document alone, where a turn was cut into several; `meaning_before` and
    `meaning_behind`: of the turn before and behind, which is as near as its best passage; `meaning_window` and
    `meaning_wide_window`: of the sum of the vectors of one and two turns before to as many behind; `meaning_section`:
    the nearest turn from one of the user's up to the next. All 0 where the query cannot be embedded, which is logged
    and counted.

    Source: ours.
    """

    embedder: Embedder
    """That of the memory: documents keep their vectors."""

    contract = Contract(makes=(
        "meaning_passage", "meaning_before", "meaning_behind", "meaning_window", "meaning_wide_window",
        "meaning_section",
    ))  # fmt: skip

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        ids = batch.documents["document_id"]

        def vectors_of(documents: Places) -> Vectors:
            return batch.document_vectors(ids[pl.Series(documents.astype(np.uint32))].to_list())

        names = {name: name for name in self.contract.makes}
        return _with_cosines(frame, batch, names, self.embedder, VectorEvidence, vectors_of)


@dataclass(frozen=True, slots=True)
class FurtherVectorEvidence:
    """Add what `VectorEvidence` makes by another embedder than the memory's: `further_meaning_passage`,
    `further_meaning_window`, and `further_meaning_session`, of the nearest turn of the session.

    The documents are embedded here, as a memory embeds them: once while the memory is open, and what a cache keeps not
    even then.

    Source: ours.
    """

    embedder: Embedder

    contract = Contract(makes=("further_meaning_passage", "further_meaning_window", "further_meaning_session"))

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        key = FurtherVectorEvidence, self.embedder.name  # a model that is not there is no failure to be survived
        talk = talk_of(batch)

        def vectors_of(documents: Places) -> Vectors:
            numbers = talk.numbers[documents]
            place_of = dict(zip(numbers.tolist(), documents.tolist(), strict=True))

            def made(missing: Places) -> Vectors:
                places = pl.Series([place_of[number] for number in missing.tolist()], dtype=pl.UInt32)
                windows = embedded(self.embedder, embedded_texts(batch.documents[places]))
                return np.concatenate([mean_vector(rows) for rows in windows])

            with talk.talks.lock:
                return talk.talks.kept(key, lambda: KeptRows(self.embedder.dim)).of(numbers, made)

        names = {name.removeprefix("further_"): name for name in self.contract.makes}
        return _with_cosines(frame, batch, names, self.embedder, key, vectors_of)


def _with_cosines(
    frame: pl.DataFrame, batch: Batch, names: Mapping[str, str], embedder: Embedder, key: Hashable, vectors_of: Make
) -> pl.DataFrame:
    """Add some of what `VectorEvidence` makes, and `meaning_session`, the nearest turn of the session.

    Args:
        frame: candidates, the rows of a query together.
        batch: what they were asked of.
        names: one of these -> what it is called.
        embedder: of the queries.
        key: tells the vectors of the documents from others.
        vectors_of: gives them.
    """
    talk = talk_of(batch)

    def evidence(seen: Excerpt, row: int) -> list[Numbers]:
        vectors = talk.kept(key, lambda: TalkVectors(talk, talk.talks.kept((BlockSums, key), BlockSums), vectors_of))
        passages, window, wide_window = vectors.cosines(seen, asked[row], vectors_of)
        scores = seen.standardised(highest(seen.turns, passages))
        found = {
            "meaning_passage": seen.standardised(passages),
            "meaning_before": seen.beside(scores, 1),
            "meaning_behind": seen.beside(scores, -1),
            "meaning_window": seen.standardised(window),
            "meaning_wide_window": seen.standardised(wide_window),
            "meaning_section": seen.standardised(highest(seen.sections, scores)[seen.sections]),
            "meaning_session": seen.standardised(highest(seen.sessions, scores)[seen.sessions]),
        }
        return [found[column] for column in names]

    rows = _asked_rows(frame, batch)
    try:
        texts = [talk.speakers.without_names(batch.queries["text"][row]) for row in rows]
        asked = dict(zip(rows, embedder.embed(texts, "query").astype(np.float64), strict=True))
        return with_evidence(frame, batch, list(names.values()), evidence, _RADIUS)
    except LcmError as error:
        return _without(frame, batch, list(names.values()), error, "queries without names", "vector evidence failed")


def _asked_rows(frame: pl.DataFrame, batch: Batch) -> list[int]:
    """The rows of `batch.queries` that a frame has candidates of."""
    wanted = {query_id for _, query_id in query_runs(frame)}
    return [row for row, query_id in enumerate(batch.queries["query_id"]) if query_id in wanted]


def _without(
    frame: pl.DataFrame, batch: Batch, names: Sequence[str], error: LcmError, what: str, incident: str
) -> pl.DataFrame:
    """Columns of 0 in the place of evidence that could not be had: logged, and counted by the query."""
    if is_of_machine(error) or isinstance(error, UnrecordedReplyError):
        raise error
    _log.warning("%s could not be embedded, other evidence ranks alone: %s", what, error)
    batch.incidents[incident] += len(_asked_rows(frame, batch))
    return frame.with_columns(pl.lit(0.0).alias(name) for name in names)


class _Laid(NamedTuple):
    """The vectors of an excerpt, and what sums of their cosines are multiplied by: 1 / the length of the sum."""

    passages: Rows
    """Of each document, of unit length or nothing."""
    per_turn: Numbers
    """Of the sum of each turn's passages."""
    per_window: Numbers
    """Of the sum of the turns from one before to one behind, of the turns that were asked for."""
    per_wide_window: Numbers
    """From two before to two behind."""


class TalkVectors:
    """The vectors of a talk, less what all of one speaker share: what no query has looked at is not laid out."""

    def __init__(self, talk: Talk, sums: "BlockSums", vectors_of: Make) -> None:
        """
        Args:
            sums: of this memory's vectors.
        """
        self._talk = talk
        authors = talk.authors[talk.turns]
        self._owners = np.where(authors >= 0, 2 * authors, 2 * talk.roles[talk.turns] + 1)
        """Of each document the author; where none is named, the role."""
        place_of = np.full(len(talk.talks.documents), -1)
        place_of[talk.numbers] = np.arange(len(talk.numbers))
        found = sums.of(talk.numbers, self._owners, lambda numbers: vectors_of(place_of[numbers]))
        counts, totals = zip(*found.values(), strict=True)
        self._mean = np.sum(totals, axis=0) / sum(counts)
        centres = np.tile(self._mean, (int(self._owners.max()) + 1, 1))
        for owner, (count, total) in found.items():
            if count >= FEW:
                centres[owner] = total / count
        self._centres = centres.astype(np.float32)
        self._passages = KeptRows(centres.shape[1], len(talk.numbers))

    def cosines(self, seen: Excerpt, query: Numbers, vectors_of: Make) -> tuple[Numbers, Numbers, Numbers]:
        """Of a query with each document, and with the turns around each turn: one, and two, before to as many behind.

        Args:
            seen: turns and, of those asked for, the two before and behind.
        """
        laid = seen.kept(self, lambda: self._lay_out(seen, vectors_of))
        passages = dot_products(laid.passages, units((query - self._mean)[np.newaxis])[0])
        turns = passages
        if self._talk.is_cut:
            turns = np.bincount(seen.turns, weights=passages, minlength=len(seen)) * laid.per_turn
        window = turns + seen.beside(turns, 1) + seen.beside(turns, -1)
        wide_window = window + seen.beside(turns, 2) + seen.beside(turns, -2)
        return passages, window * laid.per_window, wide_window * laid.per_wide_window

    def _lay_out(self, seen: Excerpt, vectors_of: Make) -> _Laid:
        def made(documents: Places) -> Rows:
            return units(vectors_of(documents) - self._centres[self._owners[documents]])

        with self._talk.talks.lock:
            passages = self._passages.of(seen.documents, made)
        turns, per_turn = passages, np.ones(len(seen))
        if self._talk.is_cut:
            ones, own = np.ones(len(passages), np.float32), (seen.turns, np.arange(len(passages)))
            turns = csr_array((ones, own), (len(seen), len(passages))) @ passages
            per_turn = _one_over(np.linalg.norm(turns, axis=1).astype(np.float64))
            turns *= per_turn[:, np.newaxis].astype(np.float32)
        near, per = turns[seen.asked], np.zeros((_RADIUS, len(seen)))
        for radius in (1, _RADIUS):
            for distance in (radius, -radius):
                lenders = seen.near(distance)[seen.asked]
                near[lenders >= 0] += turns[lenders[lenders >= 0]]
            per[radius - 1, seen.asked] = _one_over(np.linalg.norm(near, axis=1).astype(np.float64))
        return _Laid(passages, per_turn, *per)


@dataclass(frozen=True, slots=True)
class WordLikeness:
    """Add columns of words that are no match but alike, from the cosines of single words' vectors, less the mean of the
    documents' words.

    The likeness of a query's word to a document is its highest cosine with one of the document's words, what exceeds
    0.3 of it scaled to [0, 1]. Like documents are rare or frequent as words are, so a word weighs
    ln(1 + (N - n + .5) / (n + .5)), where n is the sum of its likenesses. `alike_session`: the session's best weighed
    sum over the query's words; `alike_sum`: the cosine between the sums of the word vectors of both, each weighed by
    its idf; both as standard scores. All 0 where words cannot be embedded, which is logged and counted.

    Source: ours, after ColBERT's MaxSim (Khattab and Zaharia 2020) and soft cardinality.
    """

    embedder: Embedder
    """Of single words: each is embedded once while a memory is open, and what a cache keeps not even then."""

    contract = Contract(makes=("alike_session", "alike_sum"))

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        talk, texts = talk_of(batch), batch.queries["text"]
        asked = {row: list(dict.fromkeys(talk.speakers.query_words(texts[row]))) for row in _asked_rows(frame, batch)}
        try:
            words = talk.kept((TalkWords, self.embedder.name), lambda: TalkWords(talk, self.embedder))
            words.learn(list(dict.fromkeys(chain.from_iterable(asked.values()))))
        except LcmError as error:
            return _without(frame, batch, self.contract.makes, error, "single words", "word likeness failed")

        def evidence(seen: Excerpt, row: int) -> list[Numbers]:
            alike, cosines = words.likeness(seen, asked[row])
            best = highest(seen.sessions, alike)[seen.sessions]
            return [seen.standardised(best), seen.standardised(cosines)]

        return with_evidence(frame, batch, self.contract.makes, evidence)


class _Said(NamedTuple):
    """The words of an excerpt: of every turn each once."""

    weighed: csr_array
    """Turns by words, in the order of `rows`: the idf of each, divided by the length of its vector."""
    turns: Places
    """Of each word of each turn the turn's place."""
    rows: Rows
    """The vectors of the words that differ, as they are embedded."""
    lengths: Numbers
    """Of each, the mean taken away."""
    likenesses: dict[int, Numbers]
    """Number of a word that was asked -> how like every turn is."""


class TalkWords:
    """The word vectors of a talk and of the words that are asked: what counts is what differs from the mean of all."""

    def __init__(self, talk: Talk, embedder: Embedder) -> None:
        self._talk, self._embedder = talk, embedder
        key = TalkWords, embedder.name
        self._raw, sums = talk.talks.kept(key, lambda: (KeptRows(embedder.dim), BlockSums()))
        self._held = talk.counted(talk.said.words)
        self._turns_of = np.bincount(self._held.indices, minlength=self._held.shape[1]).astype(np.float64)
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
        said = seen.kept(self, lambda: self._lay_out(seen))
        vectors = units(self._rows(numbers) - self._mean, is_rounded=False)
        for number, vector in zip(numbers.tolist(), vectors, strict=True):
            turns = self._turns_of[number] if number < len(self._turns_of) else 0.0
            likeness = self._likeness(said, number, vector, len(seen))
            frequency = likeness.sum() if seen.is_everything else max(likeness.sum(), turns)
            raw += bm25_idf(frequency, count) * likeness
            total += min(bm25_idf(turns, count), IDF_LIMIT) * vector
        with self._talk.lock:
            sums = self._sums.of(
                seen.numbers, lambda missing: self._sums_of(said, np.searchsorted(seen.numbers, missing))
            )
        return raw, dot_products(sums, units(total[np.newaxis])[0])

    def _likeness(self, said: _Said, number: int, asked: Numbers, count: int) -> Numbers:
        """How like each of so many turns is to a word, in [0, 1]."""
        if number not in said.likenesses:
            if len(said.likenesses) * count > _KEPT_NUMBERS:
                said.likenesses.clear()
            shared, rough = asked @ self._mean, _products(said.rows, asked)
            close = np.flatnonzero(rough - shared > (LEAST_LIKENESS - _ROUGH) * said.lengths)
            values = np.full(len(said.rows), LEAST_LIKENESS)
            values[close] = (said.rows[close].astype(np.float64) @ asked - shared) / said.lengths[close]
            of_words = values[said.weighed.indices]
            is_like = of_words > LEAST_LIKENESS
            best = np.full(count, LEAST_LIKENESS)
            np.maximum.at(best, said.turns[is_like], of_words[is_like])
            said.likenesses[number] = (best - LEAST_LIKENESS) / (1 - LEAST_LIKENESS)
        return said.likenesses[number]

    def _lay_out(self, seen: Excerpt) -> _Said:
        held = self._held[seen.numbers]
        words, places = told_apart(held.indices, len(self._turns_of))
        rows = self._rows(words)
        squares = np.einsum("wd,wd->w", rows, rows) - 2 * _products(rows, self._mean) + self._mean @ self._mean
        lengths: Numbers = np.sqrt(np.maximum(squares.astype(np.float64), _NOTHING))
        weights = np.minimum(bm25_idf(self._turns_of[words], len(self._talk)), IDF_LIMIT) / lengths
        parts = weights[places].astype(np.float32), places, held.indptr
        weighed = csr_array(parts, (len(seen), len(words)))
        return _Said(weighed, np.repeat(np.arange(len(seen)), np.diff(held.indptr)), rows, lengths, {})

    def _sums_of(self, said: _Said, turns: Places) -> Rows:
        """The word vectors of some turns, the mean taken away and weighed by idf, added up to unit length."""
        weighed = said.weighed[turns]
        return units(weighed @ said.rows - np.multiply.outer(weighed.sum(axis=1), self._mean.astype(np.float32)))

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


class KeptRows:
    """A row a number, made when it is first asked for; who asks from several threads holds a lock."""

    def __init__(self, dim: int, room: int = 0) -> None:
        """
        Args:
            dim: numbers a row.
            room: numbers that may be asked for, where that is known.
        """
        self._rows, self._is_made = np.empty((room, dim), np.float32), np.zeros(room, np.bool_)

    def of(self, numbers: Places, make: Make) -> Rows:
        """The rows of some numbers, each named once.

        Args:
            make: each row must come out the same whichever come with it.
        """
        if (needed := int(numbers.max(initial=-1)) + 1) > len(self._rows):
            room = max(needed, 2 * len(self._rows), _FIRST_ROOM)
            rows = np.empty((room, self._rows.shape[1]), np.float32)  # memory is taken as rows come
            rows[: len(self._rows)] = self._rows
            self._rows, self._is_made = rows, np.append(self._is_made, np.zeros(room - len(self._is_made), np.bool_))
        missing = numbers[~self._is_made[numbers]]
        if len(missing):
            self._rows[missing] = made = make(missing)
            self._is_made[missing] = True
            if len(missing) == len(numbers):  # nothing is read that was just written
                return made
        is_all = len(numbers) == needed and bool((np.diff(numbers) == 1).all())
        return self._rows[:needed] if is_all else self._rows[numbers]


class BlockSums:
    """Sums of rows, a block of numbers at a time: of numbers that grow by a few only the last block is added up."""

    def __init__(self) -> None:
        self._kept: dict[tuple[bytes, bytes], dict[int, tuple[int, Numbers]]] = {}

    def of(self, numbers: Places, groups: Places, make: Make) -> dict[int, tuple[int, Numbers]]:
        """Group -> how many rows it has, and their sum.

        Args:
            numbers: the rows that are added up.
            groups: of each.
        """
        sums, counts, found = {}, Counter[int](), dict[int, Numbers]()
        for first in range(0, len(numbers), _AT_ONCE):
            here, mine = numbers[first : first + _AT_ONCE], groups[first : first + _AT_ONCE]
            key = here.tobytes(), mine.tobytes()
            if key in self._kept:
                sums[key] = self._kept[key]
            else:
                rows = make(here).astype(np.float64)
                sums[key] = {
                    one: (int((mine == one).sum()), rows[mine == one].sum(axis=0)) for one in set(mine.tolist())
                }
            for group, (count, total) in sums[key].items():
                counts[group] += count
                found[group] = found.get(group, 0.0) + total
        self._kept = sums
        return {group: (counts[group], total) for group, total in found.items()}


def units(rows: npt.NDArray[Any], *, is_rounded: bool = True) -> npt.NDArray[Any]:
    """Rows of unit length; what is next to nothing becomes nothing.

    Args:
        is_rounded: to multiples of 2 ** -20, which single precision holds exactly: texts that are alike are exactly as
            near to a query, and stay in their order.
    """
    found: npt.NDArray[Any] = rows * _one_over(np.linalg.norm(rows, axis=1, keepdims=True))
    return np.round(found * _GRID) / _GRID if is_rounded else found


def dot_products(rows: Rows, query: npt.NDArray[Any]) -> Numbers:
    """Of each row with a query, both of `units`: exact in double precision."""
    found = np.empty(len(rows))
    for start in range(0, len(rows), _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        np.dot(rows[part].astype(np.float64), query, out=found[part])
    return found


def _products(rows: Rows, vector: Numbers) -> Rows:
    """Of each row with a vector: without threads, for a product this short waits for them on cores in use."""
    found: Rows = np.einsum("wd,d->w", rows, vector.astype(np.float32))
    return found


def _one_over(lengths: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """1 / each length, 0 of what is next to nothing."""
    return np.where(lengths > _NOTHING, 1 / np.maximum(lengths, _NOTHING), 0)
