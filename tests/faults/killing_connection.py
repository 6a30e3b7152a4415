"""A connection that knows how many statements it has run, and kills its process at a chosen one."""

import os
import signal
import sqlite3
from collections.abc import Callable, Iterable, Iterator


class KillingConnection:
    """Counts statements, each row of `executemany` as one; sends SIGKILL to itself before or after the n-th.

    `tell` hears of each commit what is in the store since, of the kill where it struck.
    """

    def __init__(
        self, connection: sqlite3.Connection, tell: Callable[[str], None], at: int = 0, *, after: bool = False
    ) -> None:
        connection.execute("PRAGMA cache_size = 10")  # so that pages reach the file before the commit
        self._connection = connection
        self._tell = tell
        self._at = at
        self._after = after
        self.flags: list[bool] = []
        """Of each statement so far: whether a transaction was open."""

    def __getattr__(self, name: str):
        return getattr(self._connection, name)

    def execute(self, sql: str, values: Iterable = ()) -> sqlite3.Cursor:
        is_chosen = self._counted(sql)
        if is_chosen and not self._after:
            self._die(sql)
        cursor = self._connection.execute(sql, values)
        if is_chosen:
            self._die(sql)
        if sql == "COMMIT":
            messages, summaries = (
                self._connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
                for table in ("messages", "summaries")
            )
            self._tell(f"committed {messages} {summaries}")
        return cursor

    def executemany(self, sql: str, rows: Iterable) -> sqlite3.Cursor:
        return self._connection.executemany(sql, self._rows(sql, rows))

    def _rows(self, sql: str, rows: Iterable) -> Iterator:
        for row in rows:
            if self._counted(sql):
                self._die(sql)
            yield row

    def _counted(self, sql: str) -> bool:
        self.flags.append(self._connection.in_transaction)
        return len(self.flags) == self._at

    def _die(self, sql: str) -> None:
        where = "inside" if self._connection.in_transaction else "outside"
        self._tell(f"killed {where} {sql.split(maxsplit=1)[0].upper()}")
        os.kill(os.getpid(), signal.SIGKILL)
