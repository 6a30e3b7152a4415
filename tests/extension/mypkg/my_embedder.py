"""An embedder of one's own: how often each letter occurs, so that anagrams are equal."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lcm.protocols.models import TextKind, Vectors


@dataclass(frozen=True, slots=True)
class MyEmbedder:
    """value[i] = how often letter i of the alphabet occurs; then unit length.

    A text without any of the letters gives the first unit vector.
    """

    alphabet: str = "abcdefghijklmnopqrstuvwxyz"

    def __post_init__(self) -> None:
        if len(self.alphabet) < 2:
            raise ValueError(f"alphabet must have two letters or more, got {self.alphabet!r}")

    @property
    def name(self) -> str:
        return f"letters-1-{self.alphabet}"

    @property
    def dim(self) -> int:
        return len(self.alphabet)

    def windows(self, texts: Sequence[str]) -> list[list[str]]:
        return [[text] for text in texts]

    def embed(self, texts: Sequence[str], kind: TextKind) -> Vectors:
        rows = np.array([self._counts(text.lower()) for text in texts]).reshape(-1, self.dim)
        rows[~rows.any(axis=1), 0] = 1
        unit: Vectors = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
        return unit

    def _counts(self, text: str) -> list[int]:
        return [text.count(letter) for letter in self.alphabet]
