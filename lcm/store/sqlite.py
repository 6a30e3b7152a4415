"""How the store uses SQLite: a connection set up in one way, its transactions, the SQL that all tables share, and rows
as frames."""

import functools
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import wraps
from pathlib import Path
from typing import Any, Literal, ParamSpec, TypeVar

import polars as pl

from lcm.encoding import INSTANT_FORMAT
from lcm.errors import StoreError
from lcm.faults import StoreFaultError, reason_of, told
from lcm.files import private

P = ParamSpec("P")
R = TypeVar("R")

BUSY_TIMEOUT_MS = 60_000
"""How long a writer waits for another process's transaction."""
LOG_BYTES = 64 * 2**20
"""What of the write-ahead log is left on disk once it has been taken into the file."""
TEMPORARY = ""
"""The path of a temporary database."""
TEMPORARY_KIB = 128 * 1024
"""Of a temporary database in memory; the rest is in a file, where SQLite puts such (`SQLITE_TMPDIR`)."""


def _told(method: Callable[P, R]) -> Callable[P, R]:
    """A method of a cursor that says which file is damaged, or which disk is full."""

    @wraps(method)
    def telling(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(*args, **kwargs)
        except sqlite3.DatabaseError as error:
            path = getattr(args[0].connection, "path", None) or TEMPORARY  # type: ignore[attr-defined]  # the cursor
            reason = reason_of(error, path)
            line = told(reason, path or "the temporary store")
            if line is None:
                raise
            fault = StoreFaultError(line)
            fault.sqlite_errorcode = getattr(error, "sqlite_errorcode", 0)
            raise fault from reason

    return telling


class StoreCursor(sqlite3.Cursor):
    """A cursor of a `StoreConnection`."""

    execute = _told(sqlite3.Cursor.execute)
    executemany = _told(sqlite3.Cursor.executemany)
    fetchone = _told(sqlite3.Cursor.fetchone)
    fetchmany = _told(sqlite3.Cursor.fetchmany)
    fetchall = _told(sqlite3.Cursor.fetchall)
    __next__ = _told(sqlite3.Cursor.__next__)  # type: ignore[arg-type]  # as of any iterator


class StoreConnection(sqlite3.Connection):
    """A connection whose complaints of a damaged file, a full disk and the like are `StoreFaultError`s."""

    path: Path | str = TEMPORARY

    def cursor(self, factory: Any = None) -> StoreCursor:  # type: ignore[override]
        return super().cursor(factory or StoreCursor)

    def execute(self, sql: str, parameters: Any = ()) -> StoreCursor:
        return self.cursor().execute(sql, parameters)

    def executemany(self, sql: str, parameters: Any) -> StoreCursor:
        return self.cursor().executemany(sql, parameters)


@private()
def connect(path: Path | str) -> sqlite3.Connection:
    """Open or create the database; its folder is created too. An empty path is a temporary file that nobody else sees:
    in memory until it is large, and gone when it is closed.

    Raises:
        StoreError: if the path cannot be opened or is not a SQLite database.
    """
    in_memory, is_temporary = str(path) == ":memory:", not str(path)
    try:
        if not (in_memory or is_temporary):
            Path(path).parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(
            path, timeout=BUSY_TIMEOUT_MS / 1000, isolation_level=None, factory=StoreConnection
        )
        connection.path = path
    except (OSError, sqlite3.Error) as err:
        reason = reason_of(err, path)
        raise StoreError(f"cannot open the store {told(reason, path) or f'{path}: {err}'}") from reason
    try:
        if is_temporary:
            spill(connection)
        elif not in_memory:
            _use_write_ahead_log(connection)
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"PRAGMA journal_size_limit = {LOG_BYTES}")
        # REPLACE then fires the delete triggers that keep the full-text tables in step.
        connection.execute("PRAGMA recursive_triggers = ON")
    except sqlite3.Error as err:
        connection.close()
        if isinstance(err, StoreError):
            raise
        raise StoreError(f"cannot use {str(path)!r} as a store: {err}") from err
    return connection


def spill(connection: sqlite3.Connection) -> None:
    """Let a temporary database leave memory when it is large; nobody needs it after a crash."""
    connection.execute(f"PRAGMA cache_size = -{TEMPORARY_KIB}")
    connection.execute("PRAGMA journal_mode = MEMORY")


@contextmanager
def without_log(connection: sqlite3.Connection) -> Iterator[None]:
    """Let long transactions write into the file itself.

    The write-ahead log holds a transaction whole until it ends, however large; the rollback journal holds what the
    pages were that it changes, and nothing of those that it adds. Where others have the file open, who may be reading,
    the log stays; who opens it meanwhile waits for the transaction's end.
    """
    with suppress(sqlite3.OperationalError):
        connection.execute("PRAGMA busy_timeout = 0")
        connection.execute("PRAGMA journal_mode = TRUNCATE")
    connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")
    connection.execute("PRAGMA synchronous = FULL")
    try:
        yield
    finally:
        connection.execute("PRAGMA synchronous = NORMAL")
        with suppress(sqlite3.OperationalError):  # somebody reads: whoever opens the file next switches it back
            _use_write_ahead_log(connection)


@contextmanager
def transaction(connection: sqlite3.Connection, mode: Literal["IMMEDIATE", "DEFERRED"] = "IMMEDIATE") -> Iterator[None]:
    """Commit the body whole, or roll it back whole on any exception; inside another one, commit with that one.

    IMMEDIATE takes the write lock at once: two processes run one after the other, and what the body reads
    stays true until it commits. DEFERRED gives several reads one snapshot.

    Raises:
        StoreError: if another process holds the write lock for longer than the busy timeout.
    """
    with _nested(connection) if connection.in_transaction else _outermost(connection, mode):
        yield


@contextmanager
def _outermost(connection: sqlite3.Connection, mode: str) -> Iterator[None]:
    try:
        try:
            connection.execute(f"BEGIN {mode}")
        except sqlite3.OperationalError as err:
            raise StoreError(f"cannot begin a transaction: {err}; retry once the store's other user is done") from err
        yield
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


@contextmanager
def _nested(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("SAVEPOINT nested")
    is_whole = False
    try:
        yield
        is_whole = True
    finally:
        if connection.in_transaction:  # some errors, such as a full disk, end the outermost one themselves
            if not is_whole:
                connection.execute("ROLLBACK TO nested")
            connection.execute("RELEASE nested")


def _use_write_ahead_log(connection: sqlite3.Connection) -> None:
    """Switch to WAL, which lasts in the file.

    The switch fails at once, without the busy timeout, while another process is switching the same new file.
    An empty transaction does wait for that process; afterwards the file is in WAL and nothing is left to do.
    """
    try:
        connection.execute("PRAGMA journal_mode = WAL")
    except sqlite3.OperationalError:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("COMMIT")
        connection.execute("PRAGMA journal_mode = WAL")


INSTANT = pl.Datetime("ms", "UTC")
LISTED = "IN (SELECT value FROM json_each(?))"
"""What follows a column that is one of the values of a list, which is given as JSON text: numbers, or ids of ours."""
_AT_ONCE = 1 << 12
"""Rows that are held as rows at a time: they take ten times as much memory as in a frame."""
_IDS_AT_ONCE = 500


def listed(ids: Sequence[str]) -> Iterator[tuple[str, Sequence[str]]]:
    """Ids of others, some at a time, each time behind what follows a column that is one of them.

    Not as JSON text: an id may hold a NUL, where SQLite takes a text out of JSON to end.
    """
    for start in range(0, len(ids), _IDS_AT_ONCE):
        some = ids[start : start + _IDS_AT_ONCE]
        yield f"IN ({', '.join('?' * len(some))})", some


def value(connection: sqlite3.Connection, sql: str, *parameters: object) -> Any:
    """What stands first in the first row that a query finds; None where it finds none."""
    row = connection.execute(sql, parameters).fetchone()
    return None if row is None else row[0]


def column(connection: sqlite3.Connection, sql: str, *parameters: object) -> list[Any]:
    """What stands first in each row that a query finds."""
    return [one for one, *_ in connection.execute(sql, parameters)]


def insertion(table: str, columns: Collection[str], rows: int = 1) -> str:
    """The statement that puts rows, of a value a column, into a table."""
    row = f"({', '.join('?' * len(columns))})"
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES {', '.join([row] * rows)}"  # noqa: S608 (our own constants)


def add_row(connection: sqlite3.Connection, table: str, row: Mapping[str, object]) -> int:
    """Put one row into a table, inside the caller's transaction; gives its row id."""
    return int(connection.execute(insertion(table, row), tuple(row.values())).lastrowid or 0)


def selected(names: Iterable[str], others: Mapping[str, str], table: str) -> str:
    """What a query selects: columns of a table, but for those that are SQL of their own."""
    return ", ".join(others.get(name, f"{table}.{name}") for name in names)


def frame(cursor: sqlite3.Cursor, schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """Read every row; the query's columns are the schema's, in order.

    Instants arrive as their text form and lists as JSON text.

    Raises:
        StoreError: naming a column with a value that it does not take.
    """
    parts = [_part(cursor, schema)]
    while len(parts[-1]) == _AT_ONCE:
        parts.append(_part(cursor, schema))
    return pl.concat(parts, rechunk=True) if len(parts) > 1 else parts[0]


def _part(cursor: sqlite3.Cursor, schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """The next rows."""
    columns = list(zip(*cursor.fetchmany(_AT_ONCE), strict=True)) or [()] * len(schema)
    try:
        return _decoded(dict(zip(schema, columns, strict=True)), schema)
    except (TypeError, pl.exceptions.PolarsError):
        for (name, kind), values in zip(schema.items(), columns, strict=True):
            try:
                _decoded({name: values}, {name: kind})
            except (TypeError, pl.exceptions.PolarsError) as error:
                store = getattr(cursor.connection, "path", None) or "the store"
                raise StoreError(
                    f"{store} holds a {name} that is no {kind}, damaged or written by another program: mend or delete "
                    "that row"
                ) from error
        raise


def _decoded(columns: Mapping[str, Sequence[object]], schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
    stored = [pl.Series(name, values, _stored(schema[name])) for name, values in columns.items()]
    return pl.DataFrame(stored).with_columns(_decodings(tuple(schema.items())))


def _stored(kind: pl.DataType) -> pl.DataType:
    if kind == INSTANT or isinstance(kind, pl.List):
        return pl.String()
    return pl.Int64() if kind == pl.Boolean else kind


@functools.lru_cache(maxsize=64)
def _decodings(schema: tuple[tuple[str, pl.DataType], ...]) -> list[pl.Expr]:
    """What becomes of the columns that are stored as something else."""
    return [_decoding(pl.col(name), kind) for name, kind in schema if kind != _stored(kind)]


def _decoding(stored: pl.Expr, kind: pl.DataType) -> pl.Expr:
    if kind == INSTANT:
        return stored.str.to_datetime(INSTANT_FORMAT, time_unit="ms", time_zone="UTC")
    return stored.cast(pl.Boolean) if kind == pl.Boolean else stored.str.json_decode(kind)
