"""Which documents hold a term, of documents that come a few at a time: an inverted index of segments, as search engines
keep it. Segments of a size are made one, so that there are few of them and nothing is sorted often."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt

from lcm.retrieval.ranking.evidence.haystack import Places

_Numbers = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class TermSegment:
    """The terms of some documents that stand together."""

    terms: _Numbers
    """The numbers of all terms in it, ascending."""
    begun: Places
    """Where the documents of each begin, and where those of the last one end."""
    holders: _Numbers
    """The documents of each term in ascending order, one term after another."""
    counts: _Numbers
    """How often each of them holds it."""

    @classmethod
    def of(cls, first: int, lists: Sequence[Sequence[int]]) -> "TermSegment":
        """
        Args:
            first: the number of the first document.
            lists: the terms of each document, by their numbers.
        """
        sizes = np.fromiter(map(len, lists), np.int64, len(lists))
        terms = np.fromiter(chain.from_iterable(lists), np.int64, int(sizes.sum()))
        pairs, counts = np.unique(terms * len(lists) + np.repeat(np.arange(len(lists)), sizes), return_counts=True)
        held, holders = np.divmod(pairs, max(1, len(lists)))
        return cls.sorted(held, holders + first, counts)

    @classmethod
    def sorted(cls, held: Places, holders: npt.NDArray[np.integer], counts: npt.NDArray[np.integer]) -> "TermSegment":
        terms, begun = np.unique(held, return_index=True)
        ends = np.append(begun, len(held)).astype(np.int64)
        return cls(terms.astype(np.int32), ends, holders.astype(np.int32), counts.astype(np.int32))

    def with_next(self, behind: "TermSegment") -> "TermSegment":
        """One of two, whose documents stand behind one another."""
        held = np.concatenate([np.repeat(one.terms, np.diff(one.begun)) for one in (self, behind)])
        order = np.argsort(held, kind="stable")
        holders = np.concatenate([self.holders, behind.holders])
        return self.sorted(held[order], holders[order], np.concatenate([self.counts, behind.counts])[order])

    def held(self, term: int) -> slice:
        """Where the documents of a term stand."""
        place = int(np.searchsorted(self.terms, term))
        if place == len(self.terms) or self.terms[place] != term:
            return slice(0, 0)
        return slice(int(self.begun[place]), int(self.begun[place + 1]))


Segments = tuple[TermSegment, ...]


def with_segment(segments: Segments, new: TermSegment) -> Segments:
    """The segments with one more, the last ones made one where they are about as large."""
    kept = [*segments, new]
    while len(kept) > 1 and len(kept[-2].holders) <= 2 * len(kept[-1].holders):
        behind = kept.pop()
        kept[-1] = kept[-1].with_next(behind)
    return tuple(kept)


def up_to(segments: Segments, count: int) -> Segments:
    """The segments without the documents from a number on, which are few."""
    found = []
    for one in segments:
        stays = one.holders < count
        if stays.all():
            found.append(one)
        elif stays.any():
            held = np.repeat(one.terms, np.diff(one.begun))[stays].astype(np.int64)
            found.append(TermSegment.sorted(held, one.holders[stays], one.counts[stays]))
    return tuple(found)


def held(segments: Segments, term: int) -> tuple[_Numbers, _Numbers]:
    """The documents that hold a term, ascending, and how often."""
    parts = [(one, one.held(term)) for one in segments]
    found = [(one.holders[here], one.counts[here]) for one, here in parts if here.stop > here.start]
    if len(found) == 1:
        return found[0]
    if not found:
        nothing = np.empty(0, np.int32)
        return nothing, nothing
    holders, counts = zip(*found, strict=True)
    return np.concatenate(holders), np.concatenate(counts)
