"""BM25 as Lucene computes it, by the bm25s library: every score a sum of a few columns computed in advance.

Terms are the stems of the words and, of a run of CJK characters, every two neighbours; a character that stands
alone is a term itself. The columns are computed again at the first search after a change (bm25s cannot grow), so
this index suits documents that are added at once; `fts5` grows in place.

Source: the lucene method of bm25s 0.3: idf = ln(1 + (N - n + .5) / (n + .5)), weight = idf * f / (f + k1 (1 - b + b
length / mean length)).
"""

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import bm25s
import numpy as np
import numpy.typing as npt
import Stemmer

from lcm.checks import check_choice, check_range
from lcm.retrieval.indexing import Ranked, best, refuse_known, refuse_negative, refuse_unequal, refuse_unknown
from lcm.retrieval.text_index.words import load_stop_words, query_words, split_words, windows

_CJK_WINDOW = 2


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
        return Bm25sIndex(self.k1, self.b, _Terms(load_stop_words(self.stop_words), stems_of(self.stemmer)))


class Terms(Protocol):
    """What of a text an index looks at."""

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
        self._terms: dict[str, list[str]] = {}  # by id, in the order of adding
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
            terms = [self._cut.of_document(text) for text in texts]
            self._terms.update(zip(ids, terms, strict=True))
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
            if self._columns is None:
                self._columns = _Columns(self._k1, self._b, self._terms)
            ids = self._columns.ids
            is_visible = np.ones(len(ids), bool)
            if allowed is not None:
                visible = set(allowed)
                is_visible = np.fromiter((document_id in visible for document_id in ids), bool, len(ids))
            answers = []
            for query in queries:
                scores = self._factor * self._columns.scores(self._cut.of_query(query))
                places = np.flatnonzero((scores > 0) & is_visible)
                answers.append(best([ids[place] for place in places.tolist()], scores[places], k))
            return answers


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

    def __init__(self, k1: float, b: float, terms: dict[str, list[str]]) -> None:
        self.ids = list(terms)
        self._numbers: dict[str, int] = {}
        numbered = [
            [self._numbers.setdefault(term, len(self._numbers)) for term in document] for document in terms.values()
        ]
        self._library = bm25s.BM25(k1=k1, b=b, method="lucene", dtype="float64")
        if self._numbers:
            self._library.index((numbered, dict(self._numbers)), show_progress=False)

    def scores(self, terms: Sequence[str]) -> npt.NDArray[np.float64]:
        """The score of every document, 0 where it holds none of the terms."""
        numbers = [self._numbers[term] for term in terms if term in self._numbers]
        if not numbers:
            return np.zeros(len(self.ids))
        scores: npt.NDArray[np.float64] = self._library.get_scores_from_ids(numbers)
        return scores
