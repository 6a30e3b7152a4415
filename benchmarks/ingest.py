"""Messages into the store, against the same rows put into the same tables with nothing but sqlite3."""

import sqlite3
import tempfile
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from benchmarks import corpus
from benchmarks.timing import Comparison, DisagreementError, Target, compared_rates, take_turns
from lcm.checks import check_range
from lcm.protocols.models import TokenEstimator
from lcm.records.conversation import Transcript
from lcm.store.sqlite import connect
from lcm.store.store import Store

TARGET = Target("at least", 0.5)

_KEYS = {
    "conversations": "conversation_id",
    "messages": "conversation_id",
    "message_parts": "(SELECT conversation_id FROM messages m WHERE m.message_id = message_parts.message_id)",
    "context_items": "conversation_id",
}
"""The tables that an ingest fills, those referred to first, and how to tell the conversation of a row."""

_Inserts = list[tuple[str, list[tuple[Any, ...]]]]
"""Statements, each with its rows: one transaction."""
_Written = tuple[Store | sqlite3.Connection, Path]


@dataclass(frozen=True, slots=True)
class Ingest:
    """`Store.ingest` against `executemany` of rows that are encoded already.

    Both write new files, with the same schema, triggers, pragmas and transactions. A transaction takes in one
    conversation, of as many messages as `transaction_sizes` says.
    """

    token_estimator: TokenEstimator
    messages: int
    transaction_sizes: Sequence[int]

    def __post_init__(self) -> None:
        check_range(self, "messages", ge=1)
        if not self.transaction_sizes or min(self.transaction_sizes) < 1:
            raise ValueError(f"transaction_sizes must name sizes >= 1, got {list(self.transaction_sizes)}")

    def run(self, repeats: int, seed: int) -> list[Comparison]:
        with tempfile.TemporaryDirectory() as folder:
            return [self._compared(Path(folder), size, repeats, seed) for size in self.transaction_sizes]

    def _compared(self, folder: Path, size: int, repeats: int, seed: int) -> Comparison:
        transcripts = conversations(self.messages, size, seed)
        files = (folder / f"{size}-{number}.db" for number in count())

        def ours() -> Callable[[], _Written]:
            file = next(files)
            store = Store(file)

            def work() -> _Written:
                for transcript in transcripts:
                    store.ingest(transcript, self.token_estimator)
                return store, file

            return work

        store, file = ours()()
        store.close()
        transactions = encoded(file)

        def bare() -> Callable[[], _Written]:
            file = next(files)
            Store(file).close()
            connection = connect(file)

            def work() -> _Written:
                for inserts in transactions:
                    connection.execute("BEGIN IMMEDIATE")
                    for statement, rows in inserts:
                        connection.executemany(statement, rows)
                    connection.execute("COMMIT")
                return connection, file

            return work

        rounds = take_turns(ours, bare, _check, repeats)
        name = f"ingest, {size} a transaction"
        return compared_rates(name, "messages/s", self.messages, rounds, TARGET)


def conversations(messages: int, size: int, seed: int) -> list[Transcript]:
    """So many messages in conversations of `size`; the last one may be shorter."""
    whole = corpus.transcript(messages, seed)
    return [
        Transcript(f"{whole.conversation_id} {start}", whole.messages[start : start + size])
        for start in range(0, messages, size)
    ]


def encoded(file: Path) -> list[_Inserts]:
    """What makes the rows of a store anew, one transaction a conversation; columns that hold nothing are left out."""
    transactions: dict[int, _Inserts] = {}
    with closing(sqlite3.connect(file)) as connection:
        for table, conversation in _KEYS.items():
            columns = [name for _, name, *_ in connection.execute(f"PRAGMA table_info({table})")]  # but generated ones
            everything = connection.execute(f"SELECT {', '.join(columns)} FROM {table}")  # noqa: S608 - our own tables
            filled = [
                column
                for column, values in zip(columns, zip(*everything, strict=True), strict=True)
                if any(value is not None for value in values)
            ]
            statement = f"INSERT INTO {table} ({', '.join(filled)}) VALUES ({', '.join('?' * len(filled))})"  # noqa: S608
            read = f"SELECT {conversation}, {', '.join(filled)} FROM {table} ORDER BY rowid"  # noqa: S608
            for key, *row in connection.execute(read):
                inserts = transactions.setdefault(key, [])
                if not inserts or inserts[-1][0] != statement:
                    inserts.append((statement, []))
                inserts[-1][1].append(tuple(row))
    return list(transactions.values())


def contents(file: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of a store's tables, and where each term stands in the full-text indexes, whose segments differ with
    how many rows a statement has; the dates of its migrations are its own."""
    with closing(sqlite3.connect(file)) as connection:
        schema = dict(connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'table'"))
        indexes = [name for name, sql in schema.items() if "USING fts5" in (sql or "")]
        for name in indexes:
            connection.execute(f"CREATE VIRTUAL TABLE temp.{name}_terms USING fts5vocab(main, {name}, instance)")
        segments = {f"{name}_{part}" for name in indexes for part in ("data", "idx")}
        tables = [*sorted(schema.keys() - segments - {"schema_migrations"}), *(f"{name}_terms" for name in indexes)]
        return {table: sorted(connection.execute(f"SELECT * FROM {table}"), key=repr) for table in tables}  # noqa: S608


def _check(ours: _Written, bare: _Written) -> None:
    """Compare the files, and let go of them."""
    for opened, _ in (ours, bare):
        opened.close()
    mine, theirs = contents(ours[1]), contents(bare[1])
    differing = [table for table in mine if mine[table] != theirs.get(table)]
    if differing:
        raise DisagreementError(f"Store.ingest and the raw inserts left other rows in: {', '.join(differing)}")
    for _, file in (ours, bare):
        file.unlink()
