"""BM25 as Lucene computes it, bit for bit that of the bm25s library, over postings that grow in place.

Terms are the stems of the words and, of a run of CJK characters, every two neighbours; a character that stands
alone is a term itself. The library computes what every term adds to every document in advance and cannot grow: a
message more in 50,000 was all of it again, seconds, before the next answer. Postings are worked out for the terms of
a query, when it is asked.

Source: the lucene method of bm25s 0.3: idf = ln(1 + (N - n + .5) / (n + .5)), weight = idf * f / (f + k1 (1 - b + b
length / mean length)).
"""

import importlib.metadata
import math
import threading
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt
import Stemmer

from lcm.checks import check_choice, check_range
from lcm.retrieval.indexing import (
    Blob,
    Ranked,
    best_places,
    read_index,
    refuse_known,
    refuse_negative,
    refuse_unequal,
    refuse_unknown,
    write_index,
)
from lcm.retrieval.text_index.words import WORDS, load_stop_words, query_words, split_words, windows

_CJK_WINDOW = 2
_BLOBS = ("lengths", "sizes", "holding", "counts")
"""Of a file: words of each document, documents of each term, which they are, and how often it stands in each."""


@dataclass(frozen=True, slots=True)
class Bm25s:
    """Settings.

    Args:
        k1: how much a second occurrence counts, >= 0; 0 means not at all.
        b: how much a long document must pay, in [0, 1].
        stemmer: a Snowball language, or "none".
        stop_words: "english", "lucene" or "none"; left out of a query that has other words. Documents keep theirs.
    """

    k1: float = 1.2
    b: float = 0.75
    stemmer: str = "english"
    stop_words: str = "english"

    def __post_init__(self) -> None:
        check_range(self, "k1", ge=0)
        check_range(self, "b", ge=0, le=1)
        check_choice(self, stemmer={"none", *Stemmer.algorithms()})
        load_stop_words(self.stop_words)

    def build(self) -> "Bm25sIndex":
        return Bm25sIndex(
            self.k1, self.b, _Terms(self.stemmer, load_stop_words(self.stop_words), stems_of(self.stemmer))
        )


class Terms(Protocol):
    """What of a text an index looks at."""

    @property
    def name(self) -> str:
        """Tells what of documents is looked at."""
        ...

    def of_document(self, text: str) -> list[str]:
        """In order and with repetitions."""
        ...

    def of_query(self, text: str) -> list[str]:
        """Those to add up; one that is given twice counts twice."""
        ...


class Bm25sIndex:
    """Raw BM25 times `factor`, higher is better. Safe to use from several threads."""

    def __init__(self, k1: float, b: float, terms: Terms, factor: float = 1.0) -> None:
        self._factor = factor
        self._cut = terms
        self._lock = threading.Lock()
        self._postings = _Postings(k1, b)
        self._allowed: tuple[Sequence[str], npt.NDArray[np.bool_]] | None = None
        """What was allowed last, and which documents that lets through."""

    def __len__(self) -> int:
        return len(self._postings.numbers)

    def add(self, ids: Sequence[str], texts: Sequence[str]) -> None:
        """Add documents.

        Raises:
            ValueError: if ids and texts differ in number, or an id is there already or given twice;
                nothing is added.
        """
        refuse_unequal(len(ids), len(texts), "texts")
        with self._lock:
            refuse_known(ids, self._postings.numbers)
            for document_id, terms in zip(ids, [self._cut.of_document(text) for text in texts], strict=True):
                self._postings.add(document_id, terms)
            self._allowed = None

    def remove(self, ids: Sequence[str]) -> None:
        """Forget these documents.

        Raises:
            ValueError: if an id is not in the index; nothing is removed.
        """
        with self._lock:
            refuse_unknown(ids, self._postings.numbers)
            self._postings.remove(ids)
            self._allowed = None

    def search(self, queries: Sequence[str], k: int, allowed: Sequence[str] | None = None) -> list[Ranked]:
        refuse_negative(k)
        with self._lock:
            is_visible = None if allowed is None else self._visible(allowed)
            answers = []
            for query in queries:
                scores = self._factor * self._postings.scores(self._cut.of_query(query))
                places = np.flatnonzero(scores > 0 if is_visible is None else (scores > 0) & is_visible)
                places = places[best_places(scores[places], k)]
                answers.append((self._postings.names_of(places), scores[places].tolist()))
            return answers

    def save(self, path: Path) -> None:
        """Write what every document holds, whole or not at all."""
        with self._lock:
            content, blobs = self._postings.packed()
        write_index(path, self._file_settings(), content, blobs)

    def load(self, path: Path) -> None:
        """Hold what a file holds, in the place of what is here.

        Raises:
            StoreError: if the file is missing, damaged, or of other words.
        """
        content, blobs = read_index(path, self._file_settings())
        with self._lock:
            self._postings.unpack(content, blobs)
            self._allowed = None

    def _file_settings(self) -> dict[str, object]:
        """What the postings on disk depend on; how they are scored, and how a query is cut, is free to change."""
        stemmer = importlib.metadata.version("PyStemmer")
        return {"kind": "bm25s", "terms": self._cut.name, "words": WORDS, "stemmer": stemmer}

    def _visible(self, allowed: Sequence[str]) -> npt.NDArray[np.bool_]:
        """A tuple, which nobody can change, is looked up once as long as no document changes."""
        if self._allowed is not None and self._allowed[0] is allowed:
            return self._allowed[1]
        numbers = self._postings.numbers
        is_visible = np.zeros(len(numbers), bool)
        is_visible[[numbers[document_id] for document_id in allowed if document_id in numbers]] = True
        self._allowed = (allowed, is_visible) if isinstance(allowed, tuple) else None
        return is_visible


def stems_of(stemmer: str) -> Callable[[list[str]], list[str]]:
    """What takes words to their stems, in a Snowball language; words as they are for "none"."""
    if stemmer == "none":
        return lambda words: words
    stem: Callable[[list[str]], list[str]] = Stemmer.Stemmer(stemmer).stemWords
    return stem


def pairs_of(runs: Iterable[str]) -> list[str]:
    """Every two neighbours of runs of CJK characters; a character that stands alone is a term itself."""
    return [pair for run in runs for pair in windows(run, _CJK_WINDOW)]


@dataclass(frozen=True, slots=True)
class _Terms:
    """A document's stems and pairs; a query's words without the stop words, each once."""

    name: str
    stop_words: frozenset[str]
    stems: Callable[[list[str]], list[str]]

    def of_document(self, text: str) -> list[str]:
        words, runs = split_words(text)
        return self.stems(words) + pairs_of(runs)

    def of_query(self, text: str) -> list[str]:
        words, runs = split_words(text)
        words = query_words(words, self.stop_words, is_alone=not runs)
        return self.stems(words) + list(dict.fromkeys(pairs_of(runs)))


class _Postings:
    """Which documents hold a term, and how often; documents are numbered in the order of adding."""

    def __init__(self, k1: float, b: float) -> None:
        self._k1, self._b = k1, b
        self.numbers: dict[str, int] = {}
        self._ids: list[str] = []
        self._lengths = array("q")
        self._of: dict[str, tuple[array[int], array[int]]] = {}
        self._norms: npt.NDArray[np.float64] | None = None  # None: to be worked out

    def add(self, document_id: str, terms: Sequence[str]) -> None:
        number = self.numbers[document_id] = len(self._ids)
        self._ids.append(document_id)
        self._lengths.append(len(terms))
        for term, count in Counter(terms).items():
            if term not in self._of:
                self._of[term] = array("q"), array("q")
            holding, counts = self._of[term]
            holding.append(number)
            counts.append(count)
        self._norms = None

    def remove(self, ids: Sequence[str]) -> None:
        """As slow as adding all: nothing is removed in a talk."""
        is_kept = np.ones(len(self._ids), bool)
        is_kept[[self.numbers[document_id] for document_id in ids]] = False
        renumbered = np.cumsum(is_kept) - 1
        kept: dict[str, tuple[array[int], array[int]]] = {}
        for term, (holding, counts) in self._of.items():
            of_kept = is_kept[(documents := _numbers(holding))]
            if of_kept.any():
                left = renumbered[documents[of_kept]], _numbers(counts)[of_kept]
                kept[term] = array("q", left[0].tobytes()), array("q", left[1].tobytes())
        self._of = kept
        self._lengths = array("q", _numbers(self._lengths)[is_kept].tobytes())
        self._ids = [name for name, keep in zip(self._ids, is_kept.tolist(), strict=True) if keep]
        self.numbers = {name: number for number, name in enumerate(self._ids)}
        self._norms = None

    def packed(self) -> tuple[dict[str, list[str]], dict[str, Blob]]:
        """All of it for a file: ids and terms, and the numbers behind them one after another."""
        holding = [_numbers(held) for held, _ in self._of.values()]
        counts = [_numbers(counted) for _, counted in self._of.values()]
        none = np.empty(0, np.int64)
        numbers = {
            "lengths": _numbers(self._lengths),
            "sizes": np.fromiter(map(len, holding), np.int64, len(holding)),
            "holding": np.concatenate([none, *holding]),
            "counts": np.concatenate([none, *counts]),
        }
        return {"ids": self._ids, "terms": list(self._of)}, {name: row.tobytes() for name, row in numbers.items()}

    def unpack(self, content: Mapping[str, list[str]], blobs: Mapping[str, Blob]) -> None:
        lengths, sizes, holding, counts = (np.frombuffer(blobs[name], np.int64) for name in _BLOBS)
        ends = np.cumsum(sizes).tolist()
        self._ids = list(content["ids"])
        self.numbers = {name: number for number, name in enumerate(self._ids)}
        self._lengths = array("q", lengths.tobytes())
        self._of = {
            term: (array("q", holding[start:end].tobytes()), array("q", counts[start:end].tobytes()))
            for term, (start, end) in zip(content["terms"], pairwise([0, *ends]), strict=True)
        }
        self._norms = None

    def names_of(self, places: npt.NDArray[np.int64]) -> list[str]:
        return [self._ids[place] for place in places.tolist()]

    def scores(self, terms: Sequence[str]) -> npt.NDArray[np.float64]:
        """The score of every document, 0 where it holds none of the terms."""
        scores = np.zeros(len(self._ids))
        for term in terms:
            if term in self._of:
                holding, counts = map(_numbers, self._of[term])
                found = len(holding)
                idf = math.log(1 + (len(scores) - found + 0.5) / (found + 0.5))
                scores[holding] += idf * (counts / (self._weighed_lengths()[holding] + counts))
        return scores

    def _weighed_lengths(self) -> npt.NDArray[np.float64]:
        if self._norms is None:
            lengths = _numbers(self._lengths)
            self._norms = self._k1 * ((1 - self._b) + self._b * lengths / lengths.mean())
        return self._norms


def _numbers(held: "array[int]") -> npt.NDArray[np.int64]:
    """A view, to be let go of before the array grows."""
    return np.frombuffer(held, np.int64)
