"""A connection that breaks at a chosen statement."""

import sqlite3
from collections.abc import Callable, Iterable, Iterator


class InjectedError(Exception):
    """What a broken statement raises."""


def raise_injected() -> None:
    raise InjectedError


class FaultyConnection:
    """Counts statements, each row of `executemany` as one, and calls `break_down` around the n-th."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        at: int,
        break_down: Callable[[], None] = raise_injected,
        after: bool = False,
    ) -> None:
        self._connection = connection
        self._at = at
        self._break_down = break_down
        self._after = after
        self.statements = 0

    def __getattr__(self, name: str):
        return getattr(self._connection, name)

    def execute(self, sql: str, values: Iterable = ()) -> sqlite3.Cursor:
        self.statements += 1
        is_chosen = self.statements == self._at
        if is_chosen and not self._after:
            self._break_down()
        cursor = self._connection.execute(sql, values)
        if is_chosen and self._after:
            self._break_down()
        return cursor

    def executemany(self, sql: str, rows: Iterable) -> sqlite3.Cursor:
        return self._connection.executemany(sql, self._counted(rows))

    def _counted(self, rows: Iterable) -> Iterator:
        for row in rows:
            self.statements += 1
            if self.statements == self._at:
                self._break_down()
            yield row
