"""Words hashed to vectors: no model, for tests and as a lexical control."""

import functools
import itertools
import math
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b, sha256

import numpy as np
import numpy.typing as npt

from lcm.checks import check_range
from lcm.protocols.models import TextKind, Vectors

_WORD = re.compile(r"\w+")
# Scripts written without spaces: their words are found by pairs of neighbouring characters.
_UNSPACED = re.compile("([\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]+)")
_NGRAM_LENGTH = 3
_WORD_WEIGHT = 1.0
_NGRAM_WEIGHT = 0.5  # below whole words: n-grams only bridge inflections and typing errors
_AT_ONCE = 256  # texts: as many as 8 bits tell apart
_MOST_RUNS = 1 << 16  # that are remembered

_NOTHING = np.empty(0, np.uint64)

_Numbers = npt.NDArray[np.int64]
_SPACED = re.compile("[^\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+")
"""White space as Unicode has it, which does not count the separators U+001C to U+001F."""


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
        rows = [self._rows(texts[start : start + _AT_ONCE]) for start in range(0, len(texts), _AT_ONCE)]
        return np.concatenate(rows) if rows else np.empty((0, self.dim), np.float32)

    def _rows(self, texts: Sequence[str]) -> Vectors:
        said = [_WORD.findall(unicodedata.normalize("NFKC", text).casefold()) for text in texts]
        found = [_hashed(run, self.seed) for run in itertools.chain.from_iterable(said)]
        of_runs = np.repeat(np.arange(len(texts)), list(map(len, said)))
        rows = np.repeat(of_runs, [len(numbers) for numbers, _ in found])
        numbers = np.concatenate([_NOTHING, *(numbers for numbers, _ in found)])
        weights = np.concatenate([np.empty(0), *(weights for _, weights in found)])
        firsts, counts = _distinct(rows, numbers)
        rows, numbers, weights = rows[firsts], numbers[firsts], weights[firsts]
        places = ((numbers >> np.uint64(1)) % np.uint64(self.dim)).astype(np.int64) + rows * self.dim
        values = np.where(numbers & np.uint64(1), 1.0, -1.0) * (weights * np.sqrt(counts))
        order = np.argsort(weights < _WORD_WEIGHT, kind="stable")  # a sum of floats depends on its order: words first
        places, values = places[order], values[order]
        sums = np.bincount(places, values, len(texts) * self.dim).astype(np.float64, copy=False)
        summed = sums.reshape(len(texts), self.dim)
        lengths = np.sqrt(np.square(summed).sum(axis=1))
        summed[lengths == 0, 0] = lengths[lengths == 0] = 1.0
        vectors: Vectors = (summed / lengths[:, np.newaxis]).astype(np.float32)
        return vectors


@functools.lru_cache(maxsize=_MOST_RUNS)
def _hashed(run: str, seed: int) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.float64]]:
    """The numbers and weights of the features of a run of letters: of its words, then of their n-grams."""
    words, ngrams = _features(run)
    numbers = [_number("word", word, seed) for word in words] + [_number("ngram", ngram, seed) for ngram in ngrams]
    return np.array(numbers, np.uint64), np.repeat([_WORD_WEIGHT, _NGRAM_WEIGHT], [len(words), len(ngrams)])


def _distinct(rows: _Numbers, numbers: npt.NDArray[np.uint64]) -> tuple[_Numbers, _Numbers]:
    """Pairs of row and number, each once: where it appears first, in that order, and how often it is there."""
    cells = numbers << np.uint64(8) | rows.astype(np.uint64)  # 56 bits tell a feature, 8 the row
    order = np.argsort(cells, kind="stable")
    starts = np.flatnonzero(np.concatenate([[True], np.diff(cells[order]) != 0])[: len(cells)])
    counts = np.zeros(len(rows), np.int64)
    counts[order[starts]] = np.diff(starts, append=len(rows))
    firsts = np.flatnonzero(counts)
    return firsts, counts[firsts]


def _features(run: str) -> tuple[list[str], list[str]]:
    """The words and the n-grams of a run of letters, in order."""
    words: list[str] = []
    ngrams: list[str] = []
    for i, part in enumerate(_UNSPACED.split(run)):
        if i % 2:  # the captured runs of an unspaced script
            words += part
            words += map("".join, itertools.pairwise(part))
        elif part:
            words.append(part)
            edged = f"<{part}>"
            ngrams += (edged[j : j + _NGRAM_LENGTH] for j in range(len(edged) - _NGRAM_LENGTH + 1))
    return words, ngrams


def _number(kind: str, name: str, seed: int) -> int:
    """64 bits: the last one is the sign, the others give the place."""
    key = seed.to_bytes(8, "little")
    digest = blake2b(f"{kind} {name}".encode("utf-8", "surrogatepass"), digest_size=8, key=key).digest()
    return int.from_bytes(digest, "little")


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
            for word in _SPACED.findall(_lower(text)) or [text]:
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
