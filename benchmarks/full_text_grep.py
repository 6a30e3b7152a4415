"""Full-text grep over a long conversation, against FTS5 asked for the same rows."""

import sqlite3
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import corpus
from benchmarks.timing import Comparison, DisagreementError, Target, compared_times, take_turns
from lcm.checks import check_range
from lcm.context.recall.grep import Grep, ReadingSettings, Search, grep
from lcm.protocols.models import TokenEstimator
from lcm.store.search import Order, SearchBounds, match_expression
from lcm.store.store import Store

TARGET = Target("at most", 1.2)

_SNIPPET = "snippet(messages_fts, -1, '', '', '...', 32)"
_ROW = "m.message_id, m.message_key, m.role, m.created_at"
_MATCHING = "FROM messages_fts CROSS JOIN messages m ON m.message_id = messages_fts.rowid WHERE messages_fts MATCH ?"
_BEST = f"SELECT {_ROW}, {_SNIPPET}, messages_fts.rank {_MATCHING} ORDER BY messages_fts.rank LIMIT ?"
_NEWEST = f"SELECT {_ROW} {_MATCHING} ORDER BY m.created_at DESC LIMIT ?"
_CUT = f"SELECT rowid, {_SNIPPET} FROM messages_fts WHERE messages_fts MATCH ? AND rowid BETWEEN ? AND ?"  # noqa: S608

_Rows = list[list[tuple[Any, ...]]]


@dataclass(frozen=True, slots=True)
class FullTextGrep:
    """`grep` in both orders, against the same MATCH and LIMIT by sqlite3, with the same columns and snippets.

    Bare: by relevance one query; by time one for the newest rows and one that cuts the snippets of those between the
    first and the last, which is faster than to cut them while sorting. Ours makes the expressions and names results.
    """

    token_estimator: TokenEstimator
    messages: int
    queries: int
    limit: int

    def __post_init__(self) -> None:
        check_range(self, "messages", "queries", "limit", ge=1)

    def run(self, repeats: int, seed: int) -> list[Comparison]:
        said = corpus.transcript(self.messages, seed)
        asked = [" ".join(query.text.rstrip("?").split()[:2]) for query in corpus.queries(self.queries, seed)]
        bounds = SearchBounds(limit=self.limit)
        with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "store.db") as store:
            store.ingest(said, self.token_estimator)

            def ours(order: Order) -> list[Grep]:
                how = ReadingSettings(self.token_estimator, order=order)
                with store.reading() as connection:
                    searches = [Search(query, "full_text", "messages") for query in asked]
                    return [grep(connection, search, bounds, how, Counter()) for search in searches]

            with closing(sqlite3.connect(Path(folder) / "store.db")) as connection:
                sides: dict[Order, Callable[[], _Rows]] = {
                    "time": lambda: [self._newest(connection, query) for query in asked],
                    "relevance": lambda: [
                        connection.execute(_BEST, (_match(query), self.limit)).fetchall() for query in asked
                    ],
                }
                return [self._compared(order, partial(ours, order), bare, repeats) for order, bare in sides.items()]

    def _compared(
        self, order: Order, ours: Callable[[], list[Grep]], bare: Callable[[], _Rows], repeats: int
    ) -> Comparison:
        rounds = take_turns(lambda: ours, lambda: bare, partial(_check, is_sorted=order == "time"), repeats)
        facts = {"messages": self.messages, "limit": self.limit, "found": sum(found.total for found in ours())}
        return compared_times(f"full-text grep by {order}", "µs a query", 1e6 / self.queries, rounds, TARGET, facts)

    def _newest(self, connection: sqlite3.Connection, query: str) -> list[tuple[Any, ...]]:
        match = _match(query)
        rows = connection.execute(_NEWEST, (match, self.limit)).fetchall()
        if not rows:
            return []
        keys = [key for key, *_ in rows]
        wanted = ", ".join("?" * len(keys))
        cut = f"{_CUT} AND +rowid IN ({wanted})"
        snippets = dict(connection.execute(cut, (match, min(keys), max(keys), *keys)).fetchall())
        return [(*row, snippets[row[0]]) for row in rows]


def _match(query: str) -> str:
    return match_expression(query, keeps_phrases=True)


def _check(ours: list[Grep], bare: _Rows, *, is_sorted: bool) -> None:
    """Both sides must have found as much, and by time the same messages with the same snippets; of equally relevant
    ones at the limit either may be cut."""
    for mine, theirs in zip(ours, bare, strict=True):
        found = [(hit.number, hit.snippet) for hit in mine.messages]
        if len(found) != len(theirs) or (is_sorted and found != [(row[0], row[4]) for row in theirs]):
            raise DisagreementError("grep and the bare queries found different messages")
