"""Embed each text once: rows kept on disk, shared by processes, never trusted when damaged."""

import hashlib
import os
import sqlite3
import threading
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Self

import numpy as np
from filelock import FileLock

from lcm.errors import StoreError
from lcm.faults import made_again, reason_of, told
from lcm.files import cache_dir, private
from lcm.protocols.models import AnswersInParts, Embedder, TextKind, Vectors

_LAYOUT = 1
_WRITE_EVERY = 256  # texts: what an interrupted run loses at most
_LOOKUP_SIZE = 500  # keys a statement
_CHECK_BYTES = 4
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


class CachedEmbedder:
    """An embedder that looks first: its rows are those of `embedder`, bit for bit.

    A row's address is the digest of embedder name, kind and text. One SQLite file an embedder name, in `directory`;
    any number of processes and threads may use it at once, and any of them may be killed. A damaged row is computed
    again, a damaged file begun again; both are logged.
    """

    def __init__(self, embedder: Embedder, directory: Path, progress: Callable[[int], None] | None = None) -> None:
        """
        Args:
            directory: made when first needed.
            progress: told how many more texts are done, after each batch.
        """
        self.embedder = embedder
        self.directory = directory
        self.progress = progress
        self.hits = 0
        """Texts that were not computed; with `misses`, all that were asked for."""
        self.misses = 0
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._process_id = 0

    def __repr__(self) -> str:
        return f"CachedEmbedder({self.embedder!r}, {str(self.directory)!r})"

    @property
    def name(self) -> str:
        return self.embedder.name

    @property
    def dim(self) -> int:
        return self.embedder.dim

    def windows(self, texts: Sequence[str]) -> list[list[str]]:
        return self.embedder.windows(texts)

    def embed(self, texts: Sequence[str], kind: TextKind) -> Vectors:
        """Return the rows, from the cache where it has them.

        Raises:
            StoreError: if the cache cannot be read or written, for instance because the disk is full.
        """
        rows = np.empty((len(texts), self.dim), np.float32)
        places: dict[bytes, list[int]] = {}
        prefix = hashlib.sha256(f"{self.name}\n{kind}\n".encode())
        for i, text in enumerate(texts):
            digest = prefix.copy()
            digest.update(text.encode("utf-8", "surrogatepass"))
            places.setdefault(digest.digest(), []).append(i)

        missing = self._fill(rows, places)
        with ExitStack() as held:
            if missing and isinstance(self.embedder, AnswersInParts):  # else another process pays for the same texts
                held.enter_context(FileLock(f"{self.path}.asking.lock"))
                missing = self._fill(rows, {key: places[key] for key in missing})
            with self._lock:
                self.hits += len(texts) - len(missing)
                self.misses += len(missing)
            self._report(len(texts) - sum(len(places[key]) for key in missing))
            for some, computed in self._computed([texts[places[key][0]] for key in missing], kind, len(places)):
                keys = [missing[i] for i in some]
                self._write([(key, _pack(key, row)) for key, row in zip(keys, computed, strict=True)])
                for key, row in zip(keys, computed, strict=True):
                    rows[places[key]] = row
                self._report(sum(len(places[key]) for key in keys))
        return rows

    def _computed(self, missing: Sequence[str], kind: TextKind, asked: int) -> Iterator[tuple[Sequence[int], Vectors]]:
        """The places of some texts and their rows, as they are to be written."""
        if isinstance(self.embedder, AnswersInParts):
            yield from self.embedder.parts(missing, kind, asked - len(missing))
            return
        for start in range(0, len(missing), _WRITE_EVERY):
            some = missing[start : start + _WRITE_EVERY]
            yield range(start, start + len(some)), self.embedder.embed(some, kind)

    @property
    def spent(self) -> Counter[str]:
        """What was spent on rows that have a price, and how many texts were `cached`; empty where none has."""
        if not isinstance(self.embedder, AnswersInParts):
            return Counter()
        return Counter({**self.embedder.spent, "cached": self.hits})

    @property
    def timed(self) -> Embedder:
        """The embedder that live queries are timed with: what is kept takes no part, unless nothing may be asked."""
        is_replay = isinstance(self.embedder, AnswersInParts) and self.embedder.mode == "replay"
        return self if is_replay else self.embedder

    def close(self) -> None:
        """Close the file, not the embedder; the next use opens it again."""
        with self._lock:
            if self._connection is not None and self._process_id == os.getpid():
                self._connection.close()
            self._connection = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[type[Self], tuple[object, ...]]:
        return type(self), (self.embedder, self.directory, self.progress)

    @property
    def path(self) -> Path:
        """The file that holds this embedder's rows."""
        digest = hashlib.sha256(f"{_LAYOUT}\n{self.name}".encode()).hexdigest()
        return self.directory / f"{digest[:16]}.sqlite"

    def _report(self, count: int) -> None:
        if self.progress is not None and count:
            self.progress(count)

    def _fill(self, rows: Vectors, places: dict[bytes, list[int]]) -> list[bytes]:
        """Put what the cache has where it belongs; returns the keys that it has not, in order."""
        keys = list(places)
        missing = dict.fromkeys(keys)
        damaged = 0
        for start in range(0, len(keys), _LOOKUP_SIZE):
            for key, blob in self._read(keys[start : start + _LOOKUP_SIZE]):
                row = _unpack(key, blob, rows.shape[1])
                if row is None:
                    damaged += 1
                else:
                    rows[places[key]] = row
                    del missing[key]
        if damaged:
            made_again("embeddings", f"{damaged} damaged rows in the embedding cache {self.path} are computed again")
        return list(missing)

    def _read(self, keys: list[bytes]) -> list[tuple[bytes, object]]:
        marks = ",".join("?" * len(keys))
        statement = f"SELECT key, vector FROM embedding WHERE key IN ({marks})"  # noqa: S608 - marks only
        return self._run(lambda connection: connection.execute(statement, keys).fetchall())

    def _write(self, entries: list[tuple[bytes, bytes]]) -> None:
        def write(connection: sqlite3.Connection) -> list[tuple[bytes, object]]:
            connection.execute("BEGIN IMMEDIATE")
            with connection:
                connection.executemany("INSERT OR REPLACE INTO embedding VALUES (?, ?)", entries)
            return []

        self._run(write)

    def _run(self, work: Callable[[sqlite3.Connection], list[tuple[bytes, object]]]) -> list[tuple[bytes, object]]:
        with self._lock:
            try:
                try:
                    return work(self._open())
                except sqlite3.DatabaseError as err:
                    if not _is_damage(err):
                        raise
                    self._begin_again()
                    return work(self._open())
            except (sqlite3.Error, OSError) as err:
                self.close()
                reason = reason_of(err, self.path)
                raise StoreError(f"the embedding cache cannot be used: {told(reason, self.path) or err}") from reason

    def _open(self) -> sqlite3.Connection:
        # A connection must not be carried into a forked child.
        if self._connection is None or self._process_id != os.getpid():
            with private():  # what SQLite puts beside the file later has the file's mode
                self.directory.mkdir(parents=True, exist_ok=True)
                with self._first():
                    self._connection, self._process_id = self._connect(), os.getpid()
        return self._connection

    def _first(self) -> FileLock:
        """Held while the file is made: SQLite does not wait for another process that changes the journal mode."""
        return FileLock(f"{self.path}.lock")

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=60, isolation_level=None, check_same_thread=False)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")  # a power cut may lose rows, never damage them
            connection.execute("CREATE TABLE IF NOT EXISTS embedding (key BLOB PRIMARY KEY, vector BLOB NOT NULL)")
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def _begin_again(self) -> None:
        """Remove the file, unless another process has done so already."""
        self.close()
        with private(), self._first():
            if not self._is_sound():
                made_again("embedding cache", f"the embedding cache {self.path} is damaged; it is begun again")
                for suffix in ("-wal", "-shm", ""):
                    Path(f"{self.path}{suffix}").unlink(missing_ok=True)

    def _is_sound(self) -> bool:
        try:
            with closing(self._connect()) as connection:
                return bool(connection.execute("PRAGMA integrity_check(1)").fetchone()[0] == "ok")
        except sqlite3.DatabaseError as err:
            if not _is_damage(err):
                raise
            return False


def _is_damage(err: sqlite3.DatabaseError) -> bool:
    return getattr(err, "sqlite_errorcode", 0) & 0xFF in _DAMAGED  # the rest of the code says where


def _pack(key: bytes, row: Vectors) -> bytes:
    vector = row.astype("<f4").tobytes()
    return vector + zlib.crc32(key + vector).to_bytes(_CHECK_BYTES, "little")


def _unpack(key: bytes, blob: object, dim: int) -> Vectors | None:
    """The row, or None if it is not what was written."""
    if not isinstance(blob, bytes) or len(blob) != 4 * dim + _CHECK_BYTES:
        return None
    vector = blob[:-_CHECK_BYTES]
    if zlib.crc32(key + vector).to_bytes(_CHECK_BYTES, "little") != blob[-_CHECK_BYTES:]:
        return None
    return np.frombuffer(vector, "<f4")


def kept(embedder: Embedder) -> CachedEmbedder:
    """`embedder`, looked up first in the folder where evaluations keep their embeddings; the rows are the same."""
    return CachedEmbedder(embedder, cache_dir() / "embeddings")
