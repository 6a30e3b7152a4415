"""BM25 over lists of terms, every document scored: of turns, and of the windows and sessions around them."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lcm.retrieval.ranking.evidence.haystack import Numbers, Places

_K1, _B = 1.2, 0.75


@dataclass(frozen=True, slots=True)
class Postings:
    """Term -> the places that hold it, and what it weighs there.

    Source: Lucene's BM25: idf = ln(1 + (N - n + .5) / (n + .5)), weight = f (k1 + 1) / (f + k1 (1 - b + b length /
    mean length)), k1 = 1.2, b = .75.
    """

    count: int
    """Of the places."""
    entries: dict[str, tuple[Places, Numbers]]

    def idf(self, term: str) -> float:
        holders = len(self.entries[term][0]) if term in self.entries else 0
        return math.log(1 + (self.count - holders + 0.5) / (holders + 0.5))

    def scores(self, terms: Sequence[str]) -> Numbers:
        """BM25 of every place; terms that come twice count once."""
        found = np.zeros(self.count)
        for term in dict.fromkeys(terms):
            if term in self.entries:
                places, weights = self.entries[term]
                found[places] += self.idf(term) * weights
        return found

    def coverage(self, terms: Sequence[str]) -> Numbers:
        """The share of the terms that are anywhere, weighed by their idf, that each place holds."""
        found, total = np.zeros(self.count), 0.0
        for term in dict.fromkeys(terms):
            if term in self.entries:
                found[self.entries[term][0]] += self.idf(term)
                total += self.idf(term)
        return found / total if total else found


def postings_of(lists: Sequence[Sequence[str]]) -> Postings:
    lengths = np.array([len(terms) for terms in lists], dtype=np.float64)
    norms = _K1 * (1 - _B + _B * lengths / (lengths.mean() or 1.0)) if len(lists) else lengths
    entries: dict[str, tuple[list[int], list[int]]] = {}
    for place, terms in enumerate(lists):
        for term, times in Counter(terms).items():
            places, counts = entries.setdefault(term, ([], []))
            places.append(place)
            counts.append(times)
    weighed = {}
    for term, (found, counts) in entries.items():
        at, times_there = np.array(found, dtype=np.int64), np.array(counts, dtype=np.float64)
        weighed[term] = at, times_there * (_K1 + 1) / (times_there + norms[at])
    return Postings(len(lists), weighed)
