"""BM25 as Lucene computes it, by the bm25s library: every score a sum of a few columns computed in advance.

Terms are the stems of the words and, of a run of CJK characters, every two neighbours; a character that stands
alone is a term itself. The columns are computed again at the first search after a change (bm25s cannot grow), so
this index suits documents that are added at once; `fts5` grows in place.

Source: the lucene method of bm25s 0.3: idf = ln(1 + (N - n + .5) / (n + .5)), weight = idf * f / (f + k1 (1 - b + b
length / mean length)).
"""

import importlib.metadata
import logging
import threading
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Protocol

import bm25s
import numpy as np
import numpy.typing as npt
import Stemmer

from lcm.checks import check_choice, check_range
from lcm.retrieval.indexing import Ranked, best, refuse_known, refuse_negative, refuse_unequal, refuse_unknown
from lcm.retrieval.saved_file import Blob, read_index, write_index
from lcm.retrieval.text_index.words import WORDS, load_stop_words, query_words, split_words, windows

_CJK_WINDOW = 2
_BLOBS = {"data": "<f8", "indices": "<i4", "indptr": "<i8"}
"""The columns as the library has them, and how they are written."""


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
        logging.getLogger("bm25s").setLevel(logging.WARNING)  # the library sets DEBUG, whatever the program wants
        self._k1, self._b, self._factor = k1, b, factor
        self._cut = terms
        self._lock = threading.Lock()
        self._numbers: dict[str, int] = {}  # of terms
        self._terms: dict[str, array[int]] = {}  # their numbers, by id, in the order of adding
        self._columns: _Columns | None = None  # None: to be computed

    def __len__(self) -> int:
        return len(self._terms)

    def add(self, ids: Sequence[str], texts: Sequence[str]) -> None:
        """Add documents.

        Raises:
            ValueError: if ids and texts differ in number, or an id is there already or given twice;
                nothing is added.
        """
        refuse_unequal(len(ids), len(texts), "texts")
        with self._lock:
            refuse_known(ids, self._terms)
            self._terms.update(zip(ids, map(self._numbered, texts), strict=True))
            self._columns = None

    def remove(self, ids: Sequence[str]) -> None:
        """Forget these documents.

        Raises:
            ValueError: if an id is not in the index; nothing is removed.
        """
        with self._lock:
            refuse_unknown(ids, self._terms)
            for document_id in dict.fromkeys(ids):
                del self._terms[document_id]
            self._columns = None

    def search(self, queries: Sequence[str], k: int, allowed: Sequence[str] | None = None) -> list[Ranked]:
        refuse_negative(k)
        with self._lock:
            columns = self._settled()
            ids = columns.ids
            is_visible = np.ones(len(ids), bool)
            if allowed is not None:
                visible = set(allowed)
                is_visible = np.fromiter((document_id in visible for document_id in ids), bool, len(ids))
            answers = []
            for query in queries:
                terms = [self._numbers[term] for term in self._cut.of_query(query) if term in self._numbers]
                scores = self._factor * columns.scores(terms)
                places = np.flatnonzero((scores > 0) & is_visible)
                answers.append(best([ids[place] for place in places.tolist()], scores[places], k))
            return answers

    def save(self, path: Path) -> None:
        """Write the terms of every document and the columns, whole or not at all."""
        with self._lock:
            columns = self._settled()
            content = {"ids": columns.ids, "terms": list(self._numbers)}
            blobs = {
                "numbers": b"".join(terms.tobytes() for terms in self._terms.values()),
                "lengths": np.fromiter(map(len, self._terms.values()), np.int64, len(self._terms)).tobytes(),
                **columns.blobs(),
            }
        write_index(path, self._file_settings(), content, blobs)

    def load(self, path: Path) -> None:
        """Hold what a file holds, in the place of what is here.

        Raises:
            StoreError: if the file is missing, damaged, or of other settings or other words.
        """
        content, blobs = read_index(path, self._file_settings())
        numbers = np.frombuffer(blobs["numbers"], np.int32)
        ends = np.cumsum(np.frombuffer(blobs["lengths"], np.int64)).tolist()
        with self._lock:
            self._numbers = {term: number for number, term in enumerate(content["terms"])}
            terms = (array("i", numbers[start:end].tobytes()) for start, end in pairwise([0, *ends]))
            self._terms = dict(zip(content["ids"], terms, strict=True))
            self._columns = _Columns.restored(content["ids"], self._k1, self._b, blobs)

    def _file_settings(self) -> dict[str, object]:
        """What the columns on disk depend on; how a query is cut is free to change."""
        return {
            "kind": "bm25s",
            "k1": self._k1,
            "b": self._b,
            "terms": self._cut.name,
            "words": WORDS,
            "bm25s": importlib.metadata.version("bm25s"),
            "stemmer": importlib.metadata.version("PyStemmer"),
        }

    def _numbered(self, text: str) -> "array[int]":
        return array("i", [self._numbers.setdefault(t, len(self._numbers)) for t in self._cut.of_document(text)])

    def _settled(self) -> "_Columns":
        if self._columns is None:
            self._columns = _Columns.computed(self._k1, self._b, self._terms, self._numbers)
        return self._columns


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


class _Columns:
    """What every term adds to the score of every document."""

    def __init__(self, ids: Sequence[str], k1: float, b: float) -> None:
        self.ids = ids
        self._library = bm25s.BM25(k1=k1, b=b, method="lucene", dtype="float64")
        self._library.nonoccurrence_array = None  # of other methods than lucene
        self._library.scores = {
            "data": np.empty(0), "indices": np.empty(0, np.int32), "indptr": np.zeros(1, np.int64), "num_docs": len(ids)
        }  # fmt: skip

    @classmethod
    def computed(cls, k1: float, b: float, terms: Mapping[str, "array[int]"], numbers: Mapping[str, int]) -> "_Columns":
        columns = cls(list(terms), k1, b)
        if any(terms.values()):
            columns._library.index((list(terms.values()), dict(numbers)), show_progress=False)
        return columns

    @classmethod
    def restored(cls, ids: Sequence[str], k1: float, b: float, blobs: Mapping[str, Blob]) -> "_Columns":
        columns = cls(ids, k1, b)
        for name, kind in _BLOBS.items():
            columns._library.scores[name] = np.frombuffer(blobs[name], kind)
        return columns

    def blobs(self) -> dict[str, Blob]:
        return {name: self._library.scores[name].astype(kind).tobytes() for name, kind in _BLOBS.items()}

    def scores(self, numbers: Sequence[int]) -> npt.NDArray[np.float64]:
        """The score of every document, 0 where it holds none of the terms, which are those that it was made with."""
        known = [number for number in numbers if number < len(self._library.scores["indptr"]) - 1]
        if not known:
            return np.zeros(len(self.ids))
        scores: npt.NDArray[np.float64] = self._library.get_scores_from_ids(known)
        return scores
