"""The SQLite file of a workspace: opened, locked, written as transactions, copied."""

import hashlib
import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from filelock import FileLock

from lcm.errors import StoreError
from lcm.store.connection import TEMPORARY, connect, transaction
from lcm.store.migrations import migrate

_LOCKS = 64
"""Lock files of a store: conversations that share one wait for each other without need, but seldom."""


class StoreFile:
    """A workspace's file as a whole, whatever it holds."""

    def __init__(self, path: Path | str = ":memory:", opened_at: datetime | None = None) -> None:
        """Open or create the file and bring its schema up to date.

        Args:
            path: a file, ":memory:", or "" for a temporary file of this process.
            opened_at: dates the migrations that this opening applies; None reads the clock.

        Raises:
            StoreError: if the path cannot be opened as a SQLite database.
            MigrationError: if the file is newer than this program, or a migration failed.
        """
        self._locks = None if str(path) in (":memory:", TEMPORARY) else Path(f"{path}-locks")
        with ExitStack() as closed_on_error:
            self._connection = closed_on_error.enter_context(closing(connect(path)))
            migrate(self._connection, opened_at or datetime.now(UTC))
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

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction, and the connection for the functions of `lcm.store` that work inside it."""
        with transaction(self._connection):
            yield self._connection

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Lend the connection for several reads of one state; it must not be written through."""
        with transaction(self._connection, "DEFERRED"):
            yield self._connection

    @classmethod
    def copied_from(cls, path: Path) -> Self:
        """A store in this process alone that holds what a file holds.

        Raises:
            StoreError: if there is no such file, or it is no SQLite database.
        """
        store = cls(TEMPORARY)
        try:
            with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as original:
                original.backup(store._connection)
        except sqlite3.Error as error:
            store.close()
            raise StoreError(f"cannot copy the store {str(path)!r}: {error}") from error
        migrate(store._connection, datetime.now(UTC))
        return store

    def copy_to(self, path: Path) -> None:
        """Write all that is here into a new file."""
        with closing(sqlite3.connect(path)) as copy:
            self._connection.backup(copy)

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
        self._locks.mkdir(exist_ok=True)
        number = hashlib.sha256(conversation_id.encode("utf-8", "surrogatepass")).digest()[0] % _LOCKS
        return FileLock(self._locks / f"{number}.lock")

    def written_elsewhere(self) -> int:
        """A number that changes whenever another connection has written to the file, and at no write of this one."""
        version: tuple[int] = self._connection.execute("PRAGMA data_version").fetchone()
        return version[0]
