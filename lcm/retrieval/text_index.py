"""Words to raw BM25: the text indexes that a memory may have.

`Fts5` is SQLite's own full-text search, in memory as far as it fits, which grows and shrinks in place. Two tables, each
with its own statistics: `words` holds every document's words, stemmed by Porter; `cjk` the CJK runs of those that have
any, cut into every three characters. A query is the OR of its words and of the windows of its runs. BM25 is a sum over
terms, so the scores of the two tables are added. FTS5 (k1 1.2, b .75) gives a term of more than half of the documents
an IDF of 1e-6 instead of a negative one: scores stay positive, and such a term weighs nothing beside others. Trigrams
cannot find a run of one or two characters, many a Chinese word; these are counted in the texts of `cjk` and scored by
the same formula.

`Bm25s` and `Filtered` keep postings of their own, which grow in place: the bm25s library computes what every term adds
to every document in advance and cannot grow. A message more in 50,000 was all of it again, seconds, before the next
answer. Postings are worked out for the terms of a query, when it is asked.
"""

import importlib.metadata
import math
import sqlite3
import threading
import weakref
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise, repeat
from pathlib import Path
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from lcm.checks import check_range
from lcm.protocols.retrieval import Numbers, Places
from lcm.retrieval.indexing import (
    Ranked,
    best_places,
    bm25_norms,
    bm25_scores,
    read_index,
    refuse_known,
    refuse_negative,
    refuse_unequal,
    refuse_unknown,
    write_index,
)
from lcm.store.sqlite import TEMPORARY, spill
from lcm.text import WORDS, check_stemmer, load_stop_words, pairs, query_words, split_words, stems, windows

_SCHEMA = """
CREATE VIRTUAL TABLE words USING fts5(text, tokenize = 'porter unicode61 remove_diacritics 2');
CREATE VIRTUAL TABLE cjk USING fts5(text, tokenize = 'trigram');
CREATE TABLE allowed (row_id INTEGER PRIMARY KEY);
"""
# The plus keeps SQLite from asking the full-text index once for every allowed row.
_ALLOWED = "AND +rowid IN (SELECT row_id FROM allowed)"
_FILE_SETTINGS = {"kind": "fts5", "tables": _SCHEMA, "words": WORDS, "sqlite": sqlite3.sqlite_version}
_K1, _B, _SMALLEST_IDF = 1.2, 0.75, 1e-6  # fixed in FTS5
_WINDOW = 3  # characters of a trigram
_NO_LIMIT = -1
_NO_ROW = 0  # row ids are counted from 1


@dataclass(frozen=True, slots=True)
class Fts5:
    """Settings.

    Args:
        stop_words: "english", "lucene" or "none"; left out of a query that has other words. Documents keep theirs.
    """

    stop_words: str = "english"

    def __post_init__(self) -> None:
        load_stop_words(self.stop_words)

    def build(self) -> "Fts5Index":
        return Fts5Index(self)


class Fts5Index:
    """FTS5's BM25, negated so that higher is better. Safe to use from several threads."""

    def __init__(self, settings: Fts5) -> None:
        self._stop_words = load_stop_words(settings.stop_words)
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(TEMPORARY, isolation_level=None, check_same_thread=False)
        weakref.finalize(self, self._connection.close)
        spill(self._connection)
        self._connection.executescript(_SCHEMA)
        self._row_ids: dict[str, int] = {}
        self._ids: dict[int, str] = {}
        self._allowed: tuple[str, ...] | None = None  # what the table `allowed` holds the rows of
        self._in_table = np.empty(0, np.int64)  # these rows
        self._next_row_id = 1  # no row id is given twice: they keep the order of adding

    def __len__(self) -> int:
        return len(self._row_ids)

    def add(self, ids: Sequence[str], texts: Sequence[str]) -> None:
        """Add documents.

        Raises:
            ValueError: if ids and texts differ in number, or an id is there already or given twice;
                nothing is added.
        """
        refuse_unequal(len(ids), len(texts), "texts")
        with self._lock:
            refuse_known(ids, self._row_ids)
            row_ids = range(self._next_row_id, self._next_row_id + len(ids))
            self._next_row_id = row_ids.stop
            split = [split_words(text) for text in texts]
            words = [(row_id, " ".join(words)) for row_id, (words, _) in zip(row_ids, split, strict=True)]
            cjk = [(row_id, " ".join(runs)) for row_id, (_, runs) in zip(row_ids, split, strict=True) if runs]
            with self._connection:
                self._connection.execute("BEGIN")
                self._connection.executemany("INSERT INTO words (rowid, text) VALUES (?, ?)", words)
                self._connection.executemany("INSERT INTO cjk (rowid, text) VALUES (?, ?)", cjk)
            self._row_ids.update(zip(ids, row_ids, strict=True))
            self._ids.update(zip(row_ids, ids, strict=True))
            self._allowed = None

    def remove(self, ids: Sequence[str]) -> None:
        """Forget these documents.

        Raises:
            ValueError: if an id is not in the index; nothing is removed.
        """
        with self._lock:
            refuse_unknown(ids, self._row_ids)
            rows = [(self._row_ids[document_id],) for document_id in dict.fromkeys(ids)]
            with self._connection:
                self._connection.execute("BEGIN")
                self._connection.executemany("DELETE FROM words WHERE rowid = ?", rows)
                self._connection.executemany("DELETE FROM cjk WHERE rowid = ?", rows)
            self._allowed = None
            for (row_id,) in rows:
                del self._row_ids[self._ids.pop(row_id)]

    def search(self, queries: Sequence[str], k: int, allowed: Sequence[str] | None = None) -> list[Ranked]:
        refuse_negative(k)
        with self._lock:
            if allowed is not None:
                self._allow(allowed)
            return [self._search(query, k, "" if allowed is None else _ALLOWED) for query in queries]

    def save(self, path: Path) -> None:
        """Write the tables and the ids, whole or not at all."""
        with self._lock:
            self._allow(())
            rows = np.fromiter(self._ids, "<i8", len(self._ids))
            blobs = {"tables": self._connection.serialize(), "row_ids": rows.tobytes()}
            content = {"ids": list(self._row_ids), "next_row_id": self._next_row_id}
        write_index(path, _FILE_SETTINGS, content, blobs)

    def load(self, path: Path) -> None:
        """Hold what a file holds, in the place of what is here.

        Raises:
            StoreError: if the file is missing, damaged, or of other tables or other words.
        """
        content, blobs = read_index(path, _FILE_SETTINGS)
        row_ids: list[int] = np.frombuffer(blobs["row_ids"], "<i8").tolist()
        with self._lock, closing(sqlite3.connect(":memory:")) as saved:
            saved.deserialize(blobs["tables"])
            saved.backup(self._connection)
            self._row_ids = dict(zip(content["ids"], row_ids, strict=True))
            self._ids = dict(zip(row_ids, content["ids"], strict=True))
            self._allowed, self._next_row_id = None, content["next_row_id"]
            self._in_table = np.empty(0, np.int64)  # nothing is allowed in a file

    def _allow(self, ids: Sequence[str]) -> None:
        """Have the rows of these ids in the table `allowed`; a tuple that is given again has filled it already.

        A talk that grows is asked with nearly all of its documents again, a few more and a few less.
        """
        if self._allowed is ids:
            return
        self._allowed = None
        is_wanted = np.zeros(self._next_row_id, np.bool_)
        is_wanted[np.fromiter(map(self._row_ids.get, ids, repeat(_NO_ROW)), np.int64, len(ids))] = True
        is_wanted[_NO_ROW] = False
        is_there = np.zeros(len(is_wanted), np.bool_)
        is_there[self._in_table] = True
        gone, new = np.flatnonzero(is_there & ~is_wanted), np.flatnonzero(is_wanted & ~is_there)
        with self._connection:
            self._connection.execute("BEGIN")
            self._connection.executemany(
                "DELETE FROM allowed WHERE row_id = ?", ((row_id,) for row_id in gone.tolist())
            )
            self._connection.executemany("INSERT INTO allowed VALUES (?)", ((row_id,) for row_id in new.tolist()))
        self._in_table = np.flatnonzero(is_wanted)
        self._allowed = ids if isinstance(ids, tuple) else None

    def _search(self, query: str, k: int, only: str) -> Ranked:
        words, runs = split_words(query)
        words = query_words(words, self._stop_words, is_alone=not runs)
        if not runs:
            rows = self._match("words", words, only, min(k, len(self)))
        else:
            scores: defaultdict[int, float] = defaultdict(float)
            for row_id, score in self._match("words", words, only, _NO_LIMIT):
                scores[row_id] += score
            long_windows = [window for run in runs if len(run) >= _WINDOW for window in windows(run, _WINDOW)]
            for row_id, score in self._match("cjk", list(dict.fromkeys(long_windows)), only, _NO_LIMIT):
                scores[row_id] += score
            for run in dict.fromkeys(run for run in runs if len(run) < _WINDOW):
                for row_id, score in self._count(run, only):
                    scores[row_id] += score
            rows = sorted(scores.items(), key=lambda row: (-row[1], row[0]))[:k]
        return [self._ids[row_id] for row_id, _ in rows], [score for _, score in rows]

    def _match(self, table: str, terms: Sequence[str], only: str, limit: int) -> list[tuple[int, float]]:
        """The rows holding any of the terms, which have no quotes in them, with FTS5's scores."""
        if not terms:
            return []
        return self._connection.execute(
            f"SELECT rowid, -bm25({table}) AS score FROM {table} "  # noqa: S608 (our own constants)
            f"WHERE {table} MATCH ? {only} ORDER BY score DESC, rowid LIMIT ?",
            (" OR ".join(f'"{term}"' for term in terms), limit),
        ).fetchall()

    def _count(self, run: str, only: str) -> list[tuple[int, float]]:
        """The rows holding a run that is too short for trigrams, scored by FTS5's formula."""
        documents, mean_length = self._connection.execute(
            "SELECT count(*), avg(max(length(text) - 2, 0)) FROM cjk"
        ).fetchone()
        found = self._connection.execute("SELECT count(*) FROM cjk WHERE instr(text, ?)", (run,)).fetchone()[0]
        idf = max(math.log((documents - found + 0.5) / (found + 0.5)), _SMALLEST_IDF)
        rows = self._connection.execute(
            f"SELECT rowid, text FROM cjk WHERE instr(text, ?) {only}",  # noqa: S608 (our own constants)
            (run,),
        )
        scored = []
        for row_id, text in rows:
            relative_length = max(len(text) - 2, 0) / mean_length if mean_length else 1.0
            count = text.count(run)
            scored.append((row_id, idf * count * (_K1 + 1) / (count + _K1 * (1 - _B + _B * relative_length))))
        return scored


_BLOBS = ("lengths", "sizes", "holding", "counts")
"""Of a file: terms of each document, documents of each term, which they are, and how often it stands in each."""


@dataclass(frozen=True, slots=True)
class Bm25s:
    """Settings. Terms are the stems of words, and of a run of CJK characters every two neighbours.

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
        check_stemmer(self)
        load_stop_words(self.stop_words)

    def build(self) -> "Bm25sIndex":
        return Bm25sIndex(self)

    factor: ClassVar[float] = 1.0
    """Of the raw score."""

    @property
    def terms(self) -> str:
        """Tells what of documents is looked at."""
        return self.stemmer

    def of_document(self, text: str) -> list[str]:
        """Its terms, in order and with repetitions."""
        words, runs = split_words(text)
        return stems(words, self.stemmer) + pairs(runs)

    def of_query(self, text: str) -> list[str]:
        """The terms to add up; stems that several words share count as often."""
        words, runs = split_words(text)
        words = query_words(words, load_stop_words(self.stop_words), is_alone=not runs)
        return stems(words, self.stemmer) + list(dict.fromkeys(pairs(runs)))


@dataclass(frozen=True, slots=True)
class Filtered:
    """Settings of BM25 over the words that pass a chain of filters, as LanceDB's full-text index has it.

    LanceDB's chain in its own order: words of letters and digits, no very long ones, lower case, stems, and then no
    stop words, neither in documents nor in queries; so stop words do not make a document long, and a query of nothing
    else finds nothing. A stem counts once in a query, however often it is there. Runs of CJK characters are cut into
    every two neighbours: LanceDB takes a whole run as one word, which no query finds.

    Args:
        k1: how much a second occurrence counts, >= 0; 0 means not at all.
        b: how much a long document must pay, in [0, 1].
        stemmer: a Snowball language, or "none".
        stop_words: "english", "lucene" or "none"; no part of documents and queries.
        max_token_length: bytes of UTF-8; a word as long, or longer, is no part either.

    Source: LanceDB 0.26, `Index.fts()` without options: base tokenizer "simple", max_token_length 40, lower_case, stem,
    remove_stop_words, ascii_folding; its BM25 is that of `Bm25s` times k1 + 1, with k1 1.2 and b 0.75.
    """

    k1: float = 1.2
    b: float = 0.75
    stemmer: str = "english"
    stop_words: str = "lucene"
    max_token_length: int = 40

    def __post_init__(self) -> None:
        check_range(self, "k1", ge=0)
        check_range(self, "b", ge=0, le=1)
        check_range(self, "max_token_length", ge=2)
        check_stemmer(self)
        load_stop_words(self.stop_words)

    def build(self) -> "Bm25sIndex":
        return Bm25sIndex(self)

    @property
    def factor(self) -> float:
        return self.k1 + 1

    @property
    def terms(self) -> str:
        return f"{self.stemmer}, without {self.stop_words} stop words, shorter than {self.max_token_length}"

    def of_document(self, text: str) -> list[str]:
        words, runs = split_words(text)
        short = [word for word in words if len(word.encode()) < self.max_token_length]
        left_out = load_stop_words(self.stop_words)
        return [stem for stem in stems(short, self.stemmer) if stem not in left_out] + pairs(runs)

    def of_query(self, text: str) -> list[str]:
        return list(dict.fromkeys(self.of_document(text)))


class Bm25sIndex:
    """Raw BM25, higher is better, over postings: which documents hold a term, and how often. Safe to use from several
    threads."""

    def __init__(self, settings: Bm25s | Filtered) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._numbers: dict[str, int] = {}
        self._ids: list[str] = []
        """By their numbers, in the order of adding."""
        self._lengths = array("q")
        self._held: dict[str, tuple[array[int], array[int]]] = {}
        self._norms: Numbers | None = None
        self._allowed: tuple[Sequence[str], npt.NDArray[np.bool_]] | None = None
        """What was allowed last, and which documents that lets through."""

    def __len__(self) -> int:
        return len(self._ids)

    def add(self, ids: Sequence[str], texts: Sequence[str]) -> None:
        """Add documents.

        Raises:
            ValueError: if ids and texts differ in number, or an id is there already or given twice;
                nothing is added.
        """
        refuse_unequal(len(ids), len(texts), "texts")
        with self._lock:
            refuse_known(ids, self._numbers)
            self._forget()
            for document_id, terms in zip(ids, [self._settings.of_document(text) for text in texts], strict=True):
                number = self._numbers[document_id] = len(self._ids)
                self._ids.append(document_id)
                self._lengths.append(len(terms))
                for term, count in Counter(terms).items():
                    if term not in self._held:
                        self._held[term] = array("q"), array("q")
                    holding, counts = self._held[term]
                    holding.append(number)
                    counts.append(count)

    def remove(self, ids: Sequence[str]) -> None:
        """Forget these documents: as slow as adding all, for nothing is removed in a talk.

        Raises:
            ValueError: if an id is not in the index; nothing is removed.
        """
        with self._lock:
            refuse_unknown(ids, self._numbers)
            is_kept = np.ones(len(self._ids), bool)
            is_kept[[self._numbers[document_id] for document_id in ids]] = False
            renumbered = np.cumsum(is_kept) - 1
            kept = {}
            for term, (holding, counts) in self._held.items():
                of_kept = is_kept[_view(holding)]
                if of_kept.any():
                    kept[term] = _array(renumbered[_view(holding)[of_kept]]), _array(_view(counts)[of_kept])
            ids = [self._ids[number] for number in np.flatnonzero(is_kept).tolist()]
            self._hold(ids, _view(self._lengths)[is_kept], kept)

    def search(self, queries: Sequence[str], k: int, allowed: Sequence[str] | None = None) -> list[Ranked]:
        refuse_negative(k)
        with self._lock:
            is_visible = None if allowed is None else self._visible(allowed)
            if self._norms is None:
                self._norms = bm25_norms(_view(self._lengths), self._settings.k1, self._settings.b)
            answers = []
            for query in queries:
                scores = self._settings.factor * bm25_scores(self._postings(query), self._norms)
                places = np.flatnonzero(scores > 0 if is_visible is None else (scores > 0) & is_visible)
                places = places[best_places(scores[places], k)]
                answers.append(([self._ids[place] for place in places.tolist()], scores[places].tolist()))
            return answers

    def _postings(self, query: str) -> Iterator[tuple[Places, Places]]:
        for term in self._settings.of_query(query):
            if term in self._held:
                holding, counts = self._held[term]
                yield _view(holding), _view(counts)

    def save(self, path: Path) -> None:
        """Write what every document holds, whole or not at all."""
        with self._lock:
            none = np.empty(0, np.int64)
            holding, counts = ([_view(one[side]) for one in self._held.values()] for side in (0, 1))
            sizes = np.array(list(map(len, holding)), np.int64)
            rows = (_view(self._lengths), sizes, np.concatenate([none, *holding]), np.concatenate([none, *counts]))
            content = {"ids": list(self._ids), "terms": list(self._held)}
        write_index(
            path, self._file_settings(), content, {n: row.tobytes() for n, row in zip(_BLOBS, rows, strict=True)}
        )

    def load(self, path: Path) -> None:
        """Hold what a file holds, in the place of what is here.

        Raises:
            StoreError: if the file is missing, damaged, or of other words.
        """
        content, blobs = read_index(path, self._file_settings())
        lengths, sizes, holding, counts = (np.frombuffer(blobs[name], np.int64) for name in _BLOBS)
        spans = pairwise([0, *np.cumsum(sizes).tolist()])
        held = {
            term: (_array(holding[start:end]), _array(counts[start:end]))
            for term, (start, end) in zip(content["terms"], spans, strict=True)
        }
        with self._lock:
            self._hold(content["ids"], lengths, held)

    def _file_settings(self) -> dict[str, object]:
        """What the postings on disk depend on; how they are scored, and how a query is cut, is free to change."""
        stemmer = importlib.metadata.version("PyStemmer")
        return {"kind": "bm25s", "terms": self._settings.terms, "words": WORDS, "stemmer": stemmer}

    def _hold(self, ids: Sequence[str], lengths: Places, held: dict[str, tuple["array[int]", "array[int]"]]) -> None:
        self._ids, self._lengths, self._held = list(ids), _array(lengths), held
        self._numbers = {name: number for number, name in enumerate(ids)}
        self._forget()

    def _forget(self) -> None:
        """Forget what was worked out of other documents."""
        self._norms = self._allowed = None

    def _visible(self, allowed: Sequence[str]) -> npt.NDArray[np.bool_]:
        """A tuple, which nobody can change, is looked up once as long as no document changes."""
        if self._allowed is not None and self._allowed[0] is allowed:
            return self._allowed[1]
        is_visible = np.zeros(len(self._ids), bool)
        is_visible[[self._numbers[document_id] for document_id in allowed if document_id in self._numbers]] = True
        self._allowed = (allowed, is_visible) if isinstance(allowed, tuple) else None
        return is_visible


def _view(held: "array[int]") -> Places:
    """To be let go of before the array grows."""
    return np.frombuffer(held, np.int64)


def _array(numbers: Places) -> "array[int]":
    return array("q", numbers.tobytes())
