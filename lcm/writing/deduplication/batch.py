"""Twins among the candidates of one extraction.

Source: memory-lancedb-pro, batchDedup.
"""

from collections import Counter
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lcm.checks import check_range
from lcm.protocols.models import Vectors
from lcm.protocols.writing import Judgement, Merged, Neighbours
from lcm.records.document import Candidate, Document

_BLOCK = 256
"""Rows whose cosines are worked out at once."""


@dataclass(frozen=True, slots=True)
class TwinsOnly:
    """What is no twin becomes a document: the plugin without a language model, which has nobody to ask."""

    batch_threshold: float = 0.85
    """Cosine above which a candidate is the twin of an earlier one of its extraction."""
    is_off = False

    def __post_init__(self) -> None:
        check_range(self, "batch_threshold", ge=-1, le=1)

    def twins(self, vectors: Vectors) -> list[int | None]:
        return twins(vectors, self.batch_threshold)

    def judge(
        self, candidate: Candidate, vector: Vectors | None, neighbours: Neighbours, *, incidents: Counter[str]
    ) -> Judgement:
        return Judgement("create", "nobody to ask")

    def merge(self, document: Document, candidate: Candidate) -> Merged | None:
        return None


def twins(vectors: npt.NDArray[np.floating], threshold: float) -> list[int | None]:
    """For each row the first earlier one whose cosine with it is above the threshold; None = its own.

    A row that is a twin itself makes no others; a row of zeros has none. All cosines in float64.
    """
    rows = np.asarray(vectors, dtype=np.float64)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    unit = np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)
    first: list[int | None] = [None] * len(rows)
    is_own = np.ones(len(rows), dtype=bool)
    for start in range(0, len(rows), _BLOCK):
        block = unit[start : start + _BLOCK] @ unit[start:].T > threshold
        for i, above in enumerate(block, start=start):
            if is_own[i]:
                alike = np.flatnonzero(is_own[i + 1 :] & above[i + 1 - start :]) + i + 1
                is_own[alike] = False
                for j in alike:
                    first[j] = i
    return first
