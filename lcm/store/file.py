"""The SQLite file of a workspace: opened, locked, written as transactions, copied."""

import hashlib
import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from filelock import FileLock

from lcm.clock import InstantError
from lcm.errors import StoreError
from lcm.faults import StoreFaultError, told
from lcm.files import open_to, private
from lcm.store.connection import TEMPORARY, connect, transaction, without_log
from lcm.store.migrations import migrate, require_current

_LOCKS = 64
"""Lock files of a store: conversations that share one wait for each other without need, but seldom."""
_UNREADABLE = (json.JSONDecodeError, UnicodeError, InstantError)
"""What reading a damaged row raises."""


class StoreFile:
    """A workspace's file as a whole, whatever it holds."""

    def __init__(
        self, path: Path | str = ":memory:", opened_at: datetime | None = None, *, may_write: bool = True
    ) -> None:
        """Open or create the file and bring its schema up to date.

        Args:
            path: a file, ":memory:", or "" for a temporary file of this process.
            opened_at: dates the migrations that this opening applies; None reads the clock.
            may_write: False: nothing of a file that is there is ever written, and one of an older schema is refused.

        Raises:
            StoreError: if the path cannot be opened as a SQLite database.
            MigrationError: if the file is newer than this program, or a migration failed.
        """
        self._path = path
        self._locks = None if str(path) in (":memory:", TEMPORARY) else Path(f"{path}-locks")
        if self._locks is not None:
            _refuse_emptied(Path(path))
        with ExitStack() as closed_on_error:
            self._connection = closed_on_error.enter_context(closing(connect(path)))
            if may_write:
                migrate(self._connection, opened_at or datetime.now(UTC))
            else:
                require_current(self._connection)
                self._connection.execute("PRAGMA query_only = ON")
            closed_on_error.pop_all()

    def close(self) -> None:
        """Close the file; closing again does nothing."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def transaction(self) -> AbstractContextManager[None]:
        """Make several writes one: all of them happen, or none; one that fails inside undoes only itself."""
        return transaction(self._connection)

    def bulk(self) -> AbstractContextManager[None]:
        """Write much in few transactions, with no log beside the file that grows as it does."""
        return nullcontext() if self._locks is None else without_log(self._connection)

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction, and the connection for the functions of `lcm.store` that work inside it."""
        try:
            with transaction(self._connection):
                yield self._connection
        except _UNREADABLE as error:
            raise self._damaged(error) from error

    def _damaged(self, error: Exception) -> StoreError:
        return StoreError(
            f"the store {self._path} is damaged: a row is not as it was written ({error}); `lcm doctor {self._path}` "
            "tells which"
        )

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Lend the connection for several reads of one state; it must not be written through.

        Raises:
            StoreError: if a row is not as it was written: no JSON, or no instant, where there must be one.
        """
        try:
            with transaction(self._connection, "DEFERRED"):
                yield self._connection
        except _UNREADABLE as error:
            raise self._damaged(error) from error

    @classmethod
    def copied_from(cls, path: Path) -> Self:
        """A store in this process alone that holds what a file holds.

        Raises:
            StoreError: if there is no such file, or it is no SQLite database.
        """
        store = cls(TEMPORARY)
        try:
            with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True)) as original:
                original.backup(store._connection)
        except sqlite3.Error as error:
            store.close()
            raise StoreError(f"cannot copy the store {told(error, path) or f'{path}: {error}'}") from error
        migrate(store._connection, datetime.now(UTC))
        return store

    @private()
    def copy_to(self, path: Path) -> None:
        """Write all that is here into a new file.

        Raises:
            StoreError: if it cannot be written, for instance because the disk is full.
        """
        try:
            with closing(sqlite3.connect(path)) as copy:
                self._connection.backup(copy)
        except sqlite3.Error as error:
            raise StoreFaultError(f"cannot copy to {told(error, path) or f'{path}: {error}'}") from error

    @property
    def changes(self) -> int:
        """A count that rises whenever something is written through this object."""
        return self._connection.total_changes

    def serialised(self, conversation_id: str) -> AbstractContextManager[object]:
        """Let nobody else work on the conversation meanwhile, in whichever thread or process.

        For work that reads, asks a model and then writes; each write is a transaction besides. Whoever holds one
        conversation must not ask for another.
        """
        if self._locks is None:
            return nullcontext()
        with private():
            self._locks.mkdir(exist_ok=True)
        number = hashlib.sha256(conversation_id.encode("utf-8", "surrogatepass")).digest()[0] % _LOCKS
        return FileLock(self._locks / f"{number}.lock", mode=open_to(0o666))

    def written_elsewhere(self) -> int:
        """A number that changes whenever another connection has written to the file, and at no write of this one."""
        version: tuple[int] = self._connection.execute("PRAGMA data_version").fetchone()
        return version[0]


def _refuse_emptied(path: Path) -> None:
    """Refuse a file without a byte beside which lies what belongs to a store: it was one, and is no new one.

    A log that was not written back into its store yet may hold the only copy, and SQLite would remove it.
    """
    try:
        if path.exists() and path.stat().st_size:
            return
        log = path.with_name(f"{path.name}-wal")
        beside = [log] if log.is_file() and log.stat().st_size else []
        if path.exists():
            ours = re.compile(rf"{re.escape(path.name)}(-locks|\.[0-9a-f]{{16}}\.(vectors(\.\d+)?|words))")
            beside += [one for one in path.parent.iterdir() if ours.fullmatch(one.name)]
        if path.exists() and path.stat().st_size:  # another process has just made it
            return
    except OSError as error:
        raise StoreError(f"cannot open the store {told(error, path)}") from error
    if beside:
        names = ", ".join(sorted(one.name for one in beside))
        is_what = "is empty" if path.exists() else "is gone"
        raise StoreError(
            f"the store {path} {is_what}, but of one there lies beside it: {names}; restore a copy of the store, or "
            "remove those to begin anew"
        )
