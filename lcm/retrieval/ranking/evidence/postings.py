"""BM25 over lists of terms, every place scored: of documents, and of the turns, windows and sessions that they make up.

One inverted index of the documents serves them all: a place holds what the documents hold that count in it.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count
from typing import Protocol

import numpy as np
from scipy.sparse import csr_array

from lcm.retrieval.ranking.evidence.growing_columns import runs
from lcm.retrieval.ranking.evidence.haystack import Haystack, Numbers, Places

_K1, _B = 1.2, 0.75


@dataclass(frozen=True, slots=True)
class TermIndex:
    """Which documents hold each term, and how often."""

    numbers: Mapping[str, int]
    """Term -> its number."""
    begun: Places
    """Where the documents of each term begin in `holders`, and where those of the last one end."""
    holders: Places
    """The documents of each term in ascending order, one term after another."""
    counts: Numbers
    """How often each of them holds it."""
    lengths: Numbers
    """Terms of each document."""

    @classmethod
    def of(cls, lists: Sequence[Sequence[str]]) -> "TermIndex":
        sizes = np.array([len(terms) for terms in lists], dtype=np.int64)
        flat = list(chain.from_iterable(lists))
        numbers = dict(zip(dict.fromkeys(flat), count(), strict=False))
        terms = np.fromiter(map(numbers.__getitem__, flat), np.int64, len(flat))
        begun = np.concatenate([[0], np.cumsum(sizes)])
        held = csr_array((np.ones(len(terms)), terms, begun), (len(lists), len(numbers))).tocsc()  # counted, not sorted
        held.sum_duplicates()
        ends, holders = held.indptr.astype(np.int64), held.indices.astype(np.int64)
        return cls(numbers, ends, holders, held.data, sizes.astype(np.float64))

    def held(self, term: str) -> tuple[Places, Numbers]:
        """The documents that hold a term, and how often."""
        number = self.numbers.get(term)
        if number is None:
            return self.holders[:0], self.counts[:0]
        here = slice(self.begun[number], self.begun[number + 1])
        return self.holders[here], self.counts[here]

    def holders_of(self, numbers: Places) -> tuple[Places, Places]:
        """The documents that hold the terms of some numbers, one term after another, and how many hold each."""
        begun, ends = self.begun[numbers], self.begun[numbers + 1]
        return self.holders[runs(begun, ends)], ends - begun

    def holder_counts(self) -> Numbers:
        """How many documents hold each term, by the term's number."""
        return np.diff(self.begun).astype(np.float64)


def stem_index(haystack: Haystack, *, of_turns: bool) -> TermIndex:
    """Which documents hold each stem, or which turns: made once a haystack, and one where every turn is a document."""
    is_cut = len(haystack.turns) != len(haystack)
    key = TermIndex, of_turns and is_cut
    if key not in haystack.cache:
        haystack.cache[key] = TermIndex.of(haystack.stems if of_turns else haystack.passage_stems)
    found: TermIndex = haystack.cache[key]
    return found


class Terms(Protocol):
    """Which documents hold a term."""

    @property
    def lengths(self) -> Numbers:
        """Terms of each document."""
        ...

    def held(self, term: str) -> tuple[Places, Numbers]:
        """The documents that hold a term, ascending, and how often."""
        ...


@dataclass(frozen=True, slots=True)
class Counted:
    """What is counted over more places than are scored."""

    places: int
    mean_length: float
    holders: Callable[[str], int]
    """How many of them hold a term."""


class Postings:
    """BM25 of places.

    Source: Lucene's: idf = ln(1 + (N - n + .5) / (n + .5)), weight = f (k1 + 1) / (f + k1 (1 - b + b length / mean
    length)), k1 = 1.2, b = .75.
    """

    def __init__(self, index: Terms, takers: Places | None = None, counted: Counted | None = None) -> None:
        """
        Args:
            index: of the documents.
            takers: shape (documents, any): the places that each document counts in, -1 = none; None = every document
                is a place.
            counted: where these are some of many places; None = they are all.
        """
        self._index, self._takers, self._counted = index, takers, counted
        lengths = index.lengths
        if takers is not None:
            self.count = int(takers.max(initial=-1)) + 1
            lengths = self._taken(np.arange(len(takers)), lengths)
        self.count = len(lengths)
        mean = counted.mean_length if counted is not None else lengths.mean() if len(lengths) else 0.0
        self._norms = _K1 * (1 - _B + _B * lengths / (mean or 1.0))

    def scores(self, terms: Sequence[str]) -> Numbers:
        """BM25 of every place; terms that come twice count once."""
        found = np.zeros(self.count)
        for idf, places, times in self._found(terms):
            found[places] += idf * (times * (_K1 + 1) / (times + self._norms[places]))
        return found

    def coverage(self, terms: Sequence[str]) -> Numbers:
        """The share of the terms that are anywhere, weighed by their idf, that each place holds."""
        found, total = np.zeros(self.count), 0.0
        for idf, places, _ in self._found(terms):
            found[places] += idf
            total += idf
        return found / total if total else found

    def _found(self, terms: Sequence[str]) -> Iterator[tuple[float, Places, Numbers]]:
        """Of each term that is anywhere its idf, the places that hold it, and how often."""
        for term in dict.fromkeys(terms):
            places, times = self._index.held(term)
            if self._takers is not None and len(places):
                taken = self._taken(places, times)
                places = np.flatnonzero(taken)
                times = taken[places]
            held = len(places) if self._counted is None else self._counted.holders(term)
            if held:
                count = self.count if self._counted is None else self._counted.places
                yield math.log(1 + (count - held + 0.5) / (held + 0.5)), places, times

    def _taken(self, documents: Places, numbers: Numbers) -> Numbers:
        """What every place gets of a number of each of these documents."""
        assert self._takers is not None
        takers = self._takers[documents]
        is_one = takers >= 0
        gifts = np.broadcast_to(numbers[:, np.newaxis], takers.shape)[is_one]
        found: Numbers = np.bincount(takers[is_one], weights=gifts, minlength=self.count).astype(np.float64)
        return found
