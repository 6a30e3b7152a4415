"""The vectors of a haystack, laid out for cosines of its passages, turns and windows with a query: one product each."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from lcm.protocols.models import Vectors
from lcm.retrieval.ranking.evidence.centres import FEW, Centres, VectorsOf, centres_of
from lcm.retrieval.ranking.evidence.excerpt import Excerpt, Seen, excerpt_of
from lcm.retrieval.ranking.evidence.haystack import Haystack, Numbers, Places
from lcm.retrieval.ranking.evidence.rows_at_hand import RowsAtHand
from lcm.retrieval.ranking.evidence.talk import Talk
from lcm.retrieval.ranking.vector_rows import NOTHING, Rows, units


@dataclass(frozen=True, slots=True)
class LaidVectors:
    """The vectors of a haystack's documents, less what all of one speaker share; and what their sums are divided by."""

    mean: Numbers
    """Of all documents, which is taken from a query too."""
    passages: Rows
    """Of each document, of unit length or nothing."""
    per_turn: Numbers
    """1 / the length of the sum of each turn's passages; 0 where there is none."""
    per_window: Numbers
    """Likewise of the sum of the turns from one before to one behind."""
    per_wide_window: Numbers
    """From two before to two behind."""

    @classmethod
    def of(cls, haystack: Haystack, vectors: Vectors) -> "LaidVectors":
        """The vectors of all documents."""
        own = vectors.astype(np.float64)
        mean = own.mean(axis=0)
        own -= mean
        speakers = [author or f"\n{role}" for author, role in zip(haystack.authors, haystack.roles, strict=True)]
        numbers = {speaker: number for number, speaker in enumerate(dict.fromkeys(speakers))}
        owners = np.array([numbers[speaker] for speaker in speakers], dtype=np.int64)[haystack.turns]
        for number in range(len(numbers)):
            said = np.flatnonzero(owners == number)
            if len(said) >= FEW:
                own[said] -= own[said].mean(axis=0)
        passages = units(own)
        turns, per_turn = _of_turns(passages, haystack.turns, len(haystack), own.dtype, len(own) != len(haystack))
        near = turns + haystack.beside(turns, 1) + haystack.beside(turns, -1)
        per_window = _one_over_lengths(near)
        near += haystack.beside(turns, 2)
        near += haystack.beside(turns, -2)
        return cls(mean, passages, per_turn, per_window, _one_over_lengths(near))

    @classmethod
    def of_excerpt(cls, seen: Excerpt, key: Hashable, vectors_of: VectorsOf) -> "LaidVectors":
        """The vectors of an excerpt's documents, each laid out once a moment of the talk.

        Args:
            seen: of the radius of the wide window.
            key: of the vectors, where a talk has several.
        """
        talk, is_cut = seen.talk, len(seen.documents) != len(seen)
        kept_as = LaidVectors, key, is_cut
        with talk.lock:
            if kept_as not in talk.cache:
                talk.cache[kept_as] = _OfTalk(talk, centres_of(talk, key, vectors_of), is_cut)
            known: _OfTalk = talk.cache[kept_as]
            return known.laid(seen, vectors_of)

    def of_turns(self, seen: Seen, of_passages: Numbers) -> Numbers:
        """Cosines of turns from those of their passages."""
        if len(of_passages) == len(seen):
            return of_passages
        return np.bincount(seen.turns, weights=of_passages, minlength=len(seen)) * self.per_turn


class _OfTalk:
    """What is laid out of one moment of a talk, in single precision."""

    def __init__(self, talk: Talk, centres: Centres, is_cut: bool) -> None:
        """
        Args:
            is_cut: whether it is for excerpts with turns of several passages: there every turn is a sum.
        """
        self._talk, self._centres, self._is_cut = talk, centres, is_cut
        self._passages = RowsAtHand(talk.documents, centres.rows.shape[1])
        self._per = np.full((3, len(talk)), np.nan)
        """As `LaidVectors.per_turn`, `per_window` and `per_wide_window`."""

    def laid(self, seen: Excerpt, vectors_of: VectorsOf) -> LaidVectors:
        def made(documents: Places) -> Rows:
            centres = self._centres.of(self._talk, self._talk.turns[documents])
            return units(vectors_of(documents) - self._centres.rows.astype(np.float32)[centres])

        passages = self._passages.of(seen.documents, made)
        wanted = seen.numbers[seen.asked]
        missing = wanted[np.isnan(self._per[1, wanted])]
        if len(missing):
            part = seen if len(missing) == len(wanted) else excerpt_of(self._talk, missing, len(seen.steps) // 2)
            rows = passages if part is seen else self._passages.of(part.documents, made)
            turns, self._per[0, part.numbers] = _of_turns(rows, part.turns, len(part), rows.dtype, self._is_cut)
            self._per[1:, missing] = _of_windows(part, turns)
        windows = np.zeros((2, len(seen)))
        windows[:, seen.asked] = self._per[1:, wanted]
        return LaidVectors(self._centres.rows[0], passages, self._per[0, seen.numbers], *windows)


def _of_turns(
    passages: Rows, turns: Places, count: int, dtype: npt.DTypeLike, is_cut: bool
) -> tuple[npt.NDArray[Any], Numbers]:
    """The vectors of turns, of unit length, and 1 / the lengths of the sums of their passages.

    Args:
        turns: of each passage.
        count: of the turns.
        is_cut: whether some turns are of several passages; else passages are turns, and none is a sum.
    """
    if not is_cut:
        return passages.astype(dtype), np.ones(count)
    own = csr_array((np.ones(len(turns), dtype), (turns, np.arange(len(turns)))), (count, len(turns)))
    sums = own @ passages.astype(dtype)  # on a grid, and so exact in any order
    per_turn = _one_over_lengths(sums)
    sums *= per_turn[:, np.newaxis]
    return sums, per_turn


def _of_windows(seen: Excerpt, turns: npt.NDArray[Any]) -> Numbers:
    """1 / the lengths of the sums of both windows around the turns that were asked for: a row each."""
    padded = np.concatenate([turns, np.zeros((1, turns.shape[1]), turns.dtype)])
    found = np.empty((2, len(seen.asked)))
    near = turns[seen.asked]
    for radius in (1, 2):
        for distance in (radius, -radius):
            near += padded[seen.steps[distance][seen.asked]]
        found[radius - 1] = _one_over_lengths(near)
    return found


def _one_over_lengths(rows: npt.NDArray[Any]) -> Numbers:
    lengths = np.linalg.norm(rows, axis=1)
    return np.where(lengths > NOTHING, 1.0 / np.maximum(lengths, NOTHING), 0.0)
