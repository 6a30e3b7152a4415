"""Words and character n-grams hashed to signs and places: no model, for tests and as a lexical control."""

import functools
import itertools
import re
import threading
import unicodedata
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

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
_AT_ONCE = 256  # texts
_MOST_RUNS = 1 << 16  # that are remembered

_Numbers = npt.NDArray[np.int64]


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
        of_runs = np.repeat(np.arange(len(texts)), list(map(len, said)))
        rows, numbers, weights, counts = _vocabulary(self.seed).counted(
            list(itertools.chain.from_iterable(said)), of_runs
        )
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


class _Vocabulary:
    """The features of runs of letters that were seen, in tables. Safe to use from several threads."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._lock = threading.Lock()
        self._clear()

    def _clear(self) -> None:
        self._runs: dict[str, int] = {}
        self._ends = array("q", [0])
        """Of the features of each run, by its number."""
        self._features = array("q")
        self._places: dict[tuple[str, str], int] = {}
        self._numbers, self._weights = array("Q"), array("d")

    def counted(
        self, runs: Sequence[str], rows: _Numbers
    ) -> tuple[_Numbers, npt.NDArray[np.uint64], npt.NDArray[np.float64], _Numbers]:
        """The features of runs that stand in rows, each once a row.

        Args:
            runs: in order.
            rows: of each run.

        Returns:
            Of each feature, in the order of first appearance: its row, number and weight, and how often it is there.
        """
        with self._lock:
            if len(self._runs) > _MOST_RUNS:
                self._clear()
            for run in runs:
                if run not in self._runs:
                    self._add(run)
            if not runs:
                return rows, np.empty(0, np.uint64), np.empty(0), rows
            named = np.fromiter(map(self._runs.__getitem__, runs), np.int64, len(runs))
            ends = np.frombuffer(self._ends, np.int64)
            firsts, counts = ends[named], ends[named + 1] - ends[named]
            within = np.arange(counts.sum()) + np.repeat(firsts - (np.cumsum(counts) - counts), counts)
            rows, places, counts = _distinct(np.repeat(rows, counts), np.frombuffer(self._features, np.int64)[within])
            numbers, weights = np.frombuffer(self._numbers, np.uint64), np.frombuffer(self._weights, np.float64)
            return rows, numbers[places], weights[places], counts

    def _add(self, run: str) -> None:
        words, ngrams = _features(run)
        for kind, weight, names in (("word", _WORD_WEIGHT, words), ("ngram", _NGRAM_WEIGHT, ngrams)):
            for name in names:
                place = self._places.get((kind, name))
                if place is None:
                    place = self._places[kind, name] = len(self._places)
                    self._numbers.append(_number(kind, name, self._seed))
                    self._weights.append(weight)
                self._features.append(place)
        self._runs[run] = len(self._runs)
        self._ends.append(len(self._features))


_vocabulary = functools.lru_cache(maxsize=4)(_Vocabulary)


def _distinct(rows: _Numbers, places: _Numbers) -> tuple[_Numbers, _Numbers, _Numbers]:
    """Pairs of row and place, each once with how often it is there, in the order of first appearance."""
    cells = rows << 32 | places
    order = np.argsort(cells, kind="stable")
    starts = np.flatnonzero(np.diff(cells[order], prepend=-1))
    counts = np.zeros(len(cells), np.int64)
    counts[order[starts]] = np.diff(starts, append=len(cells))
    firsts = np.flatnonzero(counts)
    return rows[firsts], places[firsts], counts[firsts]


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
