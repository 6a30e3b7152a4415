"""Digests of words, added up: no model, and no meaning but that equal words are equal."""

import functools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

import numpy as np
import numpy.typing as npt

from lcm.checks import check_range
from lcm.protocols.models import TextKind, Vectors

_WORD = re.compile("[^\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+")
"""White space as Unicode has it, which does not count the separators U+001C to U+001F."""


@dataclass(frozen=True, slots=True)
class TokenSum:
    """value[i] = sum over the words of (byte i mod 32 of SHA-256(word) / 127.5 - 1), in lower case; then unit length.

    Words are what white space parts; a text without one is its own only word. Where a sum is 0 everywhere, the row is
    the first unit vector. Every byte counts for several places beyond 32: a wider row says no more.

    Source: libravdb memory 1.4.4, its fallback where no model can be opened.
    """

    dim: int = 384

    def __post_init__(self) -> None:
        check_range(self, "dim", ge=1)

    @property
    def name(self) -> str:
        return f"token-sum-1-{self.dim}"

    def windows(self, texts: Sequence[str]) -> list[list[str]]:
        return [[text] for text in texts]

    def embed(self, texts: Sequence[str], kind: TextKind) -> Vectors:
        rows = np.zeros((len(texts), self.dim))
        for row, text in zip(rows, texts, strict=True):
            values = np.zeros(32)
            for word in _WORD.findall(_lower(text)) or [text]:
                values += _values(word)
            row[:] = np.resize(values, self.dim)
            length = math.sqrt(np.square(row).sum())
            if length > 0:
                row /= length
            else:
                row[0] = 1.0
        return rows.astype(np.float32)


def _lower(text: str) -> str:
    """Each character by itself: none becomes two, and the place of a sigma does not matter."""
    return text.lower() if text.isascii() else "".join(character.lower()[0] for character in text)


@functools.lru_cache(maxsize=1 << 16)
def _values(word: str) -> npt.NDArray[np.float64]:
    """Shape (32,), in [-1, 1]."""
    digest = sha256(word.encode("utf-8", "surrogatepass")).digest()
    return np.frombuffer(digest, np.uint8) / 127.5 - 1
