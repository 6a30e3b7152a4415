"""The vectors of a haystack, laid out for cosines of its passages, turns and windows with a query: one product each."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lcm.protocols.models import Vectors
from lcm.retrieval.ranking.evidence.centres import FEW, Centres
from lcm.retrieval.ranking.evidence.excerpt import Excerpt, Seen
from lcm.retrieval.ranking.evidence.haystack import Haystack, Numbers
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
        return cls._laid(haystack, mean, own)

    @classmethod
    def of_excerpt(cls, seen: Excerpt, vectors: Vectors, centres: Centres) -> "LaidVectors":
        """The vectors of an excerpt's documents."""
        own = vectors - centres.rows.astype(np.float32)[centres.of(seen)]  # single precision: laid out for each query
        return cls._laid(seen, centres.rows[0], own)

    @classmethod
    def _laid(cls, seen: Seen, mean: Numbers, own: npt.NDArray[Any]) -> "LaidVectors":
        """
        Args:
            own: of each document, the mean taken away.
        """
        passages = units(own)
        if len(passages) == len(seen):
            per_turn, turns = np.ones(len(seen)), passages.astype(own.dtype)
        else:
            turns = np.zeros((len(seen), own.shape[1]), own.dtype)
            order = np.argsort(seen.turns, kind="stable")
            begun = np.searchsorted(seen.turns[order], np.arange(len(seen)))
            np.add.reduceat(passages[order], begun, axis=0, out=turns)
            per_turn = _one_over_lengths(turns)
            turns *= per_turn[:, np.newaxis]
        if isinstance(seen, Excerpt):
            return cls(mean, passages, per_turn, *_of_windows(seen, turns))
        near = turns + seen.beside(turns, 1) + seen.beside(turns, -1)
        per_window = _one_over_lengths(near)
        near += seen.beside(turns, 2)
        near += seen.beside(turns, -2)
        return cls(mean, passages, per_turn, per_window, _one_over_lengths(near))

    def of_turns(self, seen: Seen, of_passages: Numbers) -> Numbers:
        """Cosines of turns from those of their passages."""
        if len(of_passages) == len(seen):
            return of_passages
        return np.bincount(seen.turns, weights=of_passages, minlength=len(seen)) * self.per_turn


def _of_windows(seen: Excerpt, turns: npt.NDArray[Any]) -> tuple[Numbers, Numbers]:
    """1 / the lengths of the sums of both windows, of the turns that were asked for; 0 of those around them."""
    padded, found = np.concatenate([turns, np.zeros((1, turns.shape[1]), turns.dtype)]), np.zeros((2, len(seen)))
    near = turns[seen.asked]
    for radius in (1, 2):
        for distance in (radius, -radius):
            near += padded[seen.steps[distance][seen.asked]]
        found[radius - 1, seen.asked] = _one_over_lengths(near)
    return found[0], found[1]


def _one_over_lengths(rows: npt.NDArray[Any]) -> Numbers:
    lengths = np.linalg.norm(rows, axis=1)
    return np.where(lengths > NOTHING, 1.0 / np.maximum(lengths, NOTHING), 0.0)
