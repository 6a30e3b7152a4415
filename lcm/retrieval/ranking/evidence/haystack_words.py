"""The vectors of a haystack's words, and how alike the words of queries are to its turns."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.sparse import csc_array

from lcm.protocols.models import Vectors
from lcm.retrieval.ranking.evidence.haystack import Haystack, Numbers, Places
from lcm.retrieval.ranking.evidence.postings import TermIndex
from lcm.retrieval.ranking.vector_rows import Rows, dot_products, units

Embed = Callable[[list[str]], Vectors]
"""Gives a vector of each of some words; at least one."""
LEAST_LIKENESS = 0.3
"""A cosine that says nothing."""
_ROUGH = 1e-4  # that a cosine in single precision may be off
_KEPT_NUMBERS = 10_000_000  # likenesses, of all words that were asked
IDF_LIMIT = 4.5
"""A word that is nowhere weighs no more."""


@dataclass(slots=True)
class HaystackWords:
    """The word vectors of a haystack, and what has been asked of them."""

    count: int
    mean: Numbers
    matrix: Rows
    """Shape (words, dim): of the documents' words."""
    index: TermIndex
    """Which turns hold each of them."""
    sums: Rows
    """Shape (n, dim): each turn's word vectors, weighed by idf, to unit length."""
    vectors: dict[str, Rows] = field(default_factory=dict)
    """Word that was asked -> unit vector, the mean taken away."""
    likenesses: dict[str, Numbers] = field(default_factory=dict)

    @classmethod
    def of(cls, haystack: Haystack, name: str, dim: int, asked: Sequence[str], embed: Embed) -> "HaystackWords":
        """The words of a haystack, and of some queries; made once a haystack.

        Args:
            name: of the embedder, whose vectors have `dim` numbers.
        """
        key = HaystackWords, name
        if key not in haystack.cache:
            haystack.cache[key] = cls._made(haystack, dim, embed)
        words: HaystackWords = haystack.cache[key]
        words._learn(asked, embed)
        return words

    @classmethod
    def _made(cls, haystack: Haystack, dim: int, embed: Embed) -> "HaystackWords":
        index = TermIndex.of([list(dict.fromkeys(words)) for words in haystack.words])
        rows = embed(list(index.numbers)) if index.numbers else np.empty((0, dim), np.float32)
        mean = rows.mean(axis=0, dtype=np.float64) if len(rows) > 1 else np.zeros(dim)
        matrix = units(rows, mean)
        holders = index.holder_counts()
        weights = csc_array(
            (np.repeat(idf(holders, len(haystack)), holders.astype(np.int64)), index.holders, index.begun),
            (len(haystack), len(matrix)),
        )
        return cls(
            count=len(haystack), mean=mean, matrix=matrix, index=index,
            sums=units(weights @ matrix.astype(np.float64)),
        )  # fmt: skip

    def likeness(self, words: Sequence[str]) -> tuple[Numbers, Numbers]:
        """Of each turn the weighed sum of its likenesses to words that were asked, and the cosine between the sums."""
        raw, total = np.zeros(self.count), np.zeros(self.sums.shape[1])
        for word in words:
            likeness = self.likenesses[word]
            frequency = likeness.sum()
            raw += np.log1p((self.count - frequency + 0.5) / (frequency + 0.5)) * likeness
            total += idf(len(self.index.held(word)[0]), self.count) * self.vectors[word]
        return raw, dot_products(self.sums, units(total[np.newaxis])[0].astype(np.float64))

    def _learn(self, words: Collection[str], embed: Embed) -> None:
        """Embed words that were not asked before, and compare them with those of the documents."""
        numbers = self.index.numbers
        self.vectors |= {word: self.matrix[numbers[word]] for word in words if word in numbers}
        unknown = sorted(word for word in words if word not in self.vectors)
        if unknown:
            self.vectors.update(zip(unknown, units(embed(unknown), self.mean), strict=True))
        if len(self.likenesses) * self.count > _KEPT_NUMBERS:
            self.likenesses.clear()
        for word in words:
            if word not in self.likenesses:  # without threads: a product this short waits for them on cores in use
                rough = np.einsum("wd,d->w", self.matrix, self.vectors[word])
                self.likenesses[word] = self._likeness(word, np.flatnonzero(rough > LEAST_LIKENESS - _ROUGH))

    def _likeness(self, word: str, near: Places) -> Numbers:
        """Of every turn, in [0, 1], where some words are all that may be alike enough."""
        cosines = dot_products(self.matrix[near], self.vectors[word].astype(np.float64))
        found = np.full(self.count, LEAST_LIKENESS)
        holders, sizes = self.index.holders_of(near)
        np.maximum.at(found, holders, np.repeat(cosines, sizes))
        return (found - LEAST_LIKENESS) / (1 - LEAST_LIKENESS)


def idf(held: Numbers | int, count: int) -> Numbers:
    """How much words weigh that so many of all turns hold."""
    found: Numbers = np.minimum(np.log1p((count - held + 0.5) / (held + 0.5)), IDF_LIMIT)
    return found
