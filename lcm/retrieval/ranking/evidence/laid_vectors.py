"""The vectors of a haystack, laid out for cosines of its passages, turns and windows with a query: one product each."""

from dataclasses import dataclass

import numpy as np

from lcm.protocols.models import Vectors
from lcm.retrieval.ranking.columns import NOTHING, Rows, units
from lcm.retrieval.ranking.evidence.haystack import Haystack, Numbers

_FEW = 5  # turns of one speaker whose mean is no better known than that of all


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
        own = vectors.astype(np.float64)
        mean = own.mean(axis=0)
        own -= mean
        speakers = [author or f"\n{role}" for author, role in zip(haystack.authors, haystack.roles, strict=True)]
        numbers = {speaker: number for number, speaker in enumerate(dict.fromkeys(speakers))}
        owners = np.array([numbers[speaker] for speaker in speakers], dtype=np.int64)[haystack.turns]
        for number in range(len(numbers)):
            said = np.flatnonzero(owners == number)
            if len(said) >= _FEW:
                own[said] -= own[said].mean(axis=0)
        passages = units(own)
        if len(passages) == len(haystack):
            per_turn, turns = np.ones(len(haystack)), passages.astype(np.float64)
        else:
            turns = np.zeros((len(haystack), passages.shape[1]))
            order = np.argsort(haystack.turns, kind="stable")
            begun = np.searchsorted(haystack.turns[order], np.arange(len(haystack)))
            np.add.reduceat(passages[order], begun, axis=0, out=turns)
            per_turn = _one_over_lengths(turns)
            turns *= per_turn[:, np.newaxis]
        near = turns + haystack.beside(turns, 1) + haystack.beside(turns, -1)
        per_window = _one_over_lengths(near)
        near += haystack.beside(turns, 2)
        near += haystack.beside(turns, -2)
        return cls(mean, passages, per_turn, per_window, _one_over_lengths(near))

    def of_turns(self, haystack: Haystack, of_passages: Numbers) -> Numbers:
        """Cosines of turns from those of their passages."""
        if len(of_passages) == len(haystack):
            return of_passages
        return np.bincount(haystack.turns, weights=of_passages, minlength=len(haystack)) * self.per_turn


def _one_over_lengths(rows: Numbers) -> Numbers:
    lengths = np.linalg.norm(rows, axis=1)
    return np.where(lengths > NOTHING, 1.0 / np.maximum(lengths, NOTHING), 0.0)
