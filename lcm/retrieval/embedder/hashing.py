"""Words and character n-grams hashed to signs and places: no model, for tests and as a lexical control."""

import functools
import itertools
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from lcm.checks import check_range
from lcm.protocols.models import TextKind, Vectors

_WORD = re.compile(r"\w+")
# Scripts written without spaces: their words are found by pairs of neighbouring characters.
_UNSPACED = re.compile("([\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]+)")
_NGRAM_LENGTH = 3
_NGRAM_WEIGHT = 0.5  # below whole words: n-grams only bridge inflections and typing errors


@dataclass(frozen=True, slots=True)
class Hashing:
    """value[place(f)] += sign(f) · weight(f) · sqrt(count of f), for every feature f; then unit length.

    A text without any word gives the first unit vector.

    Source: Weinberger et al., "Feature Hashing for Large Scale Multitask Learning", ICML 2009; the features are ours.
    """

    dim: int = 384
    seed: int = 0

    def __post_init__(self) -> None:
        check_range(self, "dim", ge=2)
        check_range(self, "seed", ge=0, lt=2**64)

    @property
    def name(self) -> str:
        return f"hashing-1-{self.dim}-{self.seed}"

    def windows(self, texts: Sequence[str]) -> list[list[str]]:
        return [[text] for text in texts]

    def embed(self, texts: Sequence[str], kind: TextKind) -> Vectors:
        rows = np.empty((len(texts), self.dim))
        for row, text in zip(rows, texts, strict=True):
            sums = [0.0] * self.dim  # a list: numbers of an array are reached in many times the time
            words, ngrams = _features(text)
            for word, count in words.items():
                place, sign = _place("word", word, self.dim, self.seed)
                sums[place] += sign * math.sqrt(count)
            for ngram, count in ngrams.items():
                place, sign = _place("ngram", ngram, self.dim, self.seed)
                sums[place] += sign * (_NGRAM_WEIGHT * math.sqrt(count))
            row[:] = sums
            length = math.sqrt(np.square(row).sum())
            if length > 0:
                row /= length
            else:
                row[0] = 1.0
        return rows.astype(np.float32)


def _features(text: str) -> tuple[Counter[str], Counter[str]]:
    """How often each word and each n-gram stands in a text."""
    words: Counter[str] = Counter()
    ngrams: Counter[str] = Counter()
    for run in _WORD.findall(unicodedata.normalize("NFKC", text).casefold()):
        for i, part in enumerate(_UNSPACED.split(run)):
            if i % 2:  # the captured runs of an unspaced script
                words.update(part)
                words.update(map("".join, itertools.pairwise(part)))
            elif part:
                words[part] += 1
                edged = f"<{part}>"
                for j in range(len(edged) - _NGRAM_LENGTH + 1):
                    ngrams[edged[j : j + _NGRAM_LENGTH]] += 1
    return words, ngrams


@functools.lru_cache(maxsize=1 << 17)
def _place(kind: str, name: str, dim: int, seed: int) -> tuple[int, int]:
    key = seed.to_bytes(8, "little")
    digest = blake2b(f"{kind} {name}".encode("utf-8", "surrogatepass"), digest_size=8, key=key).digest()
    number = int.from_bytes(digest, "little")
    return (number >> 1) % dim, 1 if number & 1 else -1
