"""The vectors of a talk's words, kept as it grows, and how alike the words of queries are to some of its turns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from lcm.retrieval.ranking.evidence.excerpt import Excerpt, told_apart
from lcm.retrieval.ranking.evidence.growing_columns import GrowingColumn, runs
from lcm.retrieval.ranking.evidence.haystack import Numbers, Places
from lcm.retrieval.ranking.evidence.haystack_words import LEAST_LIKENESS, Embed, idf
from lcm.retrieval.ranking.evidence.rows_at_hand import RowsAtHand
from lcm.retrieval.ranking.evidence.talk import Talk
from lcm.retrieval.ranking.vector_rows import NOTHING, Rows

_GRID = 2.0**26  # on which sums are exact
_AT_ONCE = 4096


@dataclass(frozen=True, slots=True)
class TalkWords:
    """The word vectors of a talk at one moment, and those of the words that are asked."""

    talk: Talk
    mean: Numbers
    """Of the first words, so many as the greatest power of two that there are."""
    rows: Rows
    """Shape (words, dim): as they were embedded."""
    lengths: Numbers
    """Of each, the mean taken away."""
    vectors: Mapping[str, Numbers]
    """Words that are asked -> unit vector, the mean taken away."""
    sums: RowsAtHand
    """Of turns the sums of their word vectors, as far as they were asked for."""

    @classmethod
    def of(cls, talk: Talk, name: str, dim: int, asked: Sequence[str], embed: Embed) -> "TalkWords":
        """The words of a talk, and of some queries; what is new of a talk that has grown is embedded.

        Args:
            name: of the embedder, whose vectors have `dim` numbers.
        """
        key = TalkWords, name
        if key not in talk.cache:
            with talk.lock:
                growing: _GrowingWords = talk.kept.setdefault(key, _GrowingWords(dim))
                growing.take_in(talk.vocabulary[: len(talk.word_turns)], embed)
                sums = RowsAtHand(len(talk), dim)
                talk.cache[key] = growing.mean, growing.rows.rows, growing.lengths.rows, sums
        mean, rows, lengths, sums = talk.cache[key]
        return cls(talk, mean, rows, lengths, _of_asked(asked, mean, embed), sums)

    def likeness(self, seen: Excerpt, words: Sequence[str]) -> tuple[Numbers, Numbers]:
        """Of each turn the weighed sum of its likenesses to words that were asked, and the cosine between the sums.

        A word is as frequent as the turns of the talk that hold it, or as its likenesses to the turns seen add up to.
        """
        raw, talk = np.zeros(len(seen)), self.talk
        held, sizes = talk.words.of(seen.numbers)
        if not words or not len(held):
            return raw, np.zeros(len(seen))
        numbers, places = told_apart(held, len(self.rows))
        rows, lengths = self.rows[numbers], np.maximum(self.lengths[numbers], NOTHING)
        asked = np.stack([self.vectors[word] for word in words])
        cosines = (rows @ asked.T.astype(np.float32) - asked @ self.mean) / lengths[:, np.newaxis]
        held_in = np.concatenate([[0], np.cumsum(sizes)])
        is_said = sizes > 0
        best = np.zeros((len(seen), len(words)))
        best[is_said] = np.maximum.reduceat(cosines[places], held_in[:-1][is_said], axis=0)
        likenesses = np.maximum(best - LEAST_LIKENESS, 0.0) / (1 - LEAST_LIKENESS)
        turns_of = np.array([self._turns_of(word) for word in words])
        frequencies = np.maximum(likenesses.sum(axis=0), turns_of)
        raw = likenesses @ np.log1p((len(talk) - frequencies + 0.5) / (frequencies + 0.5))

        def made(missing: Places) -> Rows:
            """Of turns the sums of their word vectors, weighed by idf, the mean taken away."""
            turns = np.searchsorted(seen.numbers, missing)
            mine = places[runs(held_in[turns], held_in[turns + 1])]
            weights = (idf(talk.word_turns[numbers].astype(np.float64), len(talk)) / lengths).astype(np.float32)
            ends = np.concatenate([[0], np.cumsum(sizes[turns])])
            of_turns = csr_array((weights[mine], mine, ends), (len(turns), len(numbers)))
            found: Rows = of_turns @ rows - np.multiply.outer(of_turns.sum(axis=1), self.mean.astype(np.float32))
            return found

        with talk.lock:
            sums = self.sums.of(seen.numbers, made)
        total = idf(turns_of, len(talk)) @ asked
        norms = np.linalg.norm(sums, axis=1) * np.linalg.norm(total)
        return raw, np.where(norms > NOTHING, sums @ total / np.maximum(norms, NOTHING), 0.0)

    def _turns_of(self, word: str) -> float:
        """How many turns of the talk hold a word."""
        number = self.talk.word_numbers.get(word, len(self.rows))
        return float(self.talk.word_turns[number]) if number < len(self.rows) else 0.0


def _of_asked(words: Sequence[str], mean: Numbers, embed: Embed) -> dict[str, Numbers]:
    """Unit vectors of words, the mean taken away."""
    if not words:
        return {}
    rows = _rounded(embed(list(words))) / _GRID - mean
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return dict(zip(words, np.where(lengths > NOTHING, rows / np.maximum(lengths, NOTHING), 0.0), strict=True))


class _GrowingWords:
    """The vectors of all words so far."""

    def __init__(self, dim: int) -> None:
        self.rows, self.lengths = GrowingColumn(np.float32, dim), GrowingColumn(np.float64)
        self.mean = np.zeros(dim)
        self._words: list[str] = []
        self._counted = 1  # words that the mean is of; that of one word would leave nothing of it

    def take_in(self, words: Sequence[str], embed: Embed) -> None:
        """Have the vectors of these words and of no others."""
        known = len(self._words)
        if list(words[:known]) != self._words:  # the last documents have ended, and other words came
            pairs = zip(words, self._words, strict=False)
            known = next((place for place, (one, other) in enumerate(pairs) if one != other), min(known, len(words)))
            self.rows, self.lengths = self.rows.head(known), self.lengths.head(known)
        for first in range(known, len(words), _AT_ONCE):
            self.rows.extend(_rounded(embed(list(words[first : first + _AT_ONCE]))) / _GRID)
        self._words = list(words)
        counted = 1 << max(0, len(words).bit_length() - 1)
        if counted != self._counted or known < counted:  # it is of more words, or of others
            mine = self.rows.rows
            parts = (_rounded(mine[first : min(first + _AT_ONCE, counted)]) for first in range(0, counted, _AT_ONCE))
            self.mean = sum(part.sum(axis=0) for part in parts) / (_GRID * counted)
            if counted == 1:
                self.mean = np.zeros_like(self.mean)
            self._counted, known = counted, 0
            self.lengths = GrowingColumn(np.float64)
        for first in range(known, len(words), _AT_ONCE):
            self.lengths.extend(np.linalg.norm(self.rows.rows[first : first + _AT_ONCE] - self.mean, axis=1))


def _rounded(vectors: Rows) -> Numbers:
    """Whole numbers of the grid's step."""
    found: Numbers = np.rint(vectors.astype(np.float64) * _GRID)
    return found
