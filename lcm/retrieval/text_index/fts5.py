"""SQLite's own full-text search, in memory as far as it fits: grows and shrinks in place.

Two tables, each with its own statistics. `words` holds every document's words, stemmed by Porter; `cjk` the
CJK runs of those that have any, cut into every three characters. A query is the OR of its words and of the
windows of its runs. BM25 is a sum over terms, so the scores of the two tables are added.

FTS5 (k1 1.2, b .75) gives a term of more than half of the documents an IDF of 1e-6 instead of a negative one:
scores stay positive, and such a term weighs nothing beside others. Trigrams cannot find a run of one or two
characters, many a Chinese word; these are counted in the texts of `cjk` and scored by the same formula.
"""

import math
import sqlite3
import threading
import weakref
from collections import defaultdict
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path

import numpy as np

from lcm.retrieval.indexing import (
    Ranked,
    read_index,
    refuse_known,
    refuse_negative,
    refuse_unequal,
    refuse_unknown,
    write_index,
)
from lcm.retrieval.text_index.words import WORDS, load_stop_words, query_words, split_words, windows
from lcm.store.sqlite import TEMPORARY, spill

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
