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
        features: list[int] = []
        counts: list[int] = []
        weights: list[float] = []
        of_row: list[int] = []
        for words, ngrams in (_features(text, self.seed) for text in texts):
            features += [*words, *ngrams]
            counts += [*words.values(), *ngrams.values()]
            weights += [1.0] * len(words) + [_NGRAM_WEIGHT] * len(ngrams)
            of_row.append(len(words) + len(ngrams))
        numbers = np.array(features, np.uint64)
        signs = np.where(numbers & np.uint64(1), 1.0, -1.0)
        places = ((numbers >> np.uint64(1)) % np.uint64(self.dim)).astype(np.int64)
        places += np.repeat(np.arange(len(texts)) * self.dim, of_row)
        values = signs * (np.array(weights) * np.sqrt(np.array(counts, np.float64)))
        sums = np.bincount(places, values, len(texts) * self.dim).astype(np.float64, copy=False)
        rows = sums.reshape(len(texts), self.dim)
        for row in rows:
            length = math.sqrt(np.square(row).sum())
            if length > 0:
                row /= length
            else:
                row[0] = 1.0
        return rows.astype(np.float32)


def _features(text: str, seed: int) -> tuple[Counter[int], Counter[int]]:
    """How often each word and each n-gram stands in a text, by their numbers, in the order of the text."""
    runs = [_run_features(run, seed) for run in _WORD.findall(unicodedata.normalize("NFKC", text).casefold())]
    words = Counter(itertools.chain.from_iterable(words for words, _ in runs))
    return words, Counter(itertools.chain.from_iterable(ngrams for _, ngrams in runs))


@functools.lru_cache(maxsize=1 << 15)
def _run_features(run: str, seed: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The numbers of the words and n-grams of a run of letters, in order."""
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
    return tuple(_number("word", word, seed) for word in words), tuple(_number("ngram", one, seed) for one in ngrams)


@functools.lru_cache(maxsize=1 << 17)
def _number(kind: str, name: str, seed: int) -> int:
    """64 bits: the last one is the sign, the others give the place."""
    key = seed.to_bytes(8, "little")
    digest = blake2b(f"{kind} {name}".encode("utf-8", "surrogatepass"), digest_size=8, key=key).digest()
    return int.from_bytes(digest, "little")
