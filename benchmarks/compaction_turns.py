"""Compaction by clusters as a conversation grows: against the same summaries made in memory and written bare."""

import math
import shutil
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks import corpus
from benchmarks.ingest import contents
from benchmarks.timing import Comparison, DisagreementError, Target, compared_times, take_turns
from lcm.compaction.clustering import Clustering
from lcm.compaction.guidance.protected import NoGuidance
from lcm.compaction.summarizer.extractive import Centroid
from lcm.compaction.window import StoredWindow
from lcm.compaction.work import run
from lcm.store.sqlite import connect
from lcm.store.store import Store

TARGET = Target("at most", 3.0)
_CHARACTERS = 100  # of a turn: the median of what people say to each other


@dataclass(frozen=True, slots=True)
class CompactionTurns:
    """`Clustering.compact` of a whole conversation, at each size, against its bare work.

    Bare: the turns of each cluster are embedded by the same embedder, those nearest to their mean are joined, the
    summary is held against the mean, and its rows are put in the place of its turns by sqlite3, a transaction each.
    Ours reads the turns from the store, says what kind of harm a summary does and what its maker was shown, besides.
    """

    compaction: Clustering
    sizes: Sequence[int]

    def __post_init__(self) -> None:
        least = 2 * self.compaction.target_cluster_size
        if not self.sizes or min(self.sizes) < least or len(set(self.sizes)) < len(self.sizes):
            raise ValueError(f"sizes must be different numbers of messages >= {least}, got {list(self.sizes)}")
        if not isinstance(self.compaction.summarizer, Centroid) or not isinstance(self.compaction.guidance, NoGuidance):
            raise ValueError("compaction must have the summarizer centroid and guidance none: the bare side has these")

    def run(self, repeats: int, seed: int) -> list[Comparison]:
        with tempfile.TemporaryDirectory() as folder:
            return [self._compared(Path(folder), size, repeats, seed) for size in sorted(self.sizes)]

    def _compared(self, folder: Path, size: int, repeats: int, seed: int) -> Comparison:
        said = corpus.transcript(size, seed, median_characters=_CHARACTERS)
        original = folder / f"{size}.db"
        with Store(original) as store:
            store.ingest(said, self.compaction.token_estimator)
        files = (folder / f"{size}-{number}.db" for number in count())

        def copied() -> Path:
            return Path(shutil.copy(original, next(files)))

        def ours() -> Callable[[], Path]:
            file = copied()

            def work() -> Path:
                with Store(file) as store:
                    window, now = StoredWindow(store, said.conversation_id), store.last_said(said.conversation_id)
                    incidents: Counter[str] = Counter()
                    run(self.compaction.compact(window, now, incidents=incidents), self._centroid, incidents=incidents)
                return file

            return work

        made = ours()()
        clusters = _written(made)
        made.unlink()
        texts = {message.message_id: message.content.strip() for message in said.messages}

        def bare() -> Callable[[], Path]:
            file = copied()

            def work() -> Path:
                with closing(connect(file)) as connection:
                    for cluster in clusters:
                        self._fold(connection, cluster, [texts[one] for one in cluster.message_ids])
                return file

            return work

        rounds = take_turns(ours, bare, _check, repeats)
        facts = {"summaries": len(clusters)}
        name = f"cluster compaction, {size:,} messages"
        return compared_times(name, "µs a message", 1e6 / size, rounds, TARGET, facts)

    @property
    def _centroid(self) -> Centroid:
        assert isinstance(self.compaction.summarizer, Centroid)
        return self.compaction.summarizer

    def _fold(self, connection: sqlite3.Connection, cluster: "_WrittenCluster", turns: Sequence[str]) -> None:
        vectors = self._centroid.embedder.embed(turns, "document")
        mean = vectors.mean(axis=0)
        count = math.ceil(len(turns) * self.compaction.first_density)
        best = sorted(np.argsort(-(vectors @ mean), kind="stable")[:count].tolist())
        text = " ".join(turns[place] for place in best)
        summary = self._centroid.embedder.embed([text], "document")[0]
        _ = summary @ mean, np.maximum(vectors @ summary, 0).mean()
        if text != cluster.content:
            raise DisagreementError("the compaction and the bare selection gave different summaries")
        connection.execute("BEGIN IMMEDIATE")
        for statement, rows in cluster.changes:
            connection.executemany(statement, rows)
        connection.execute("COMMIT")


class _WrittenCluster(NamedTuple):
    """One summary as compaction left it in a store, and what writes it."""

    content: str
    message_ids: tuple[str, ...]
    changes: list[tuple[str, list[tuple[Any, ...]]]]


def _written(file: Path) -> list[_WrittenCluster]:
    clusters = []
    with closing(sqlite3.connect(file)) as connection:
        connection.row_factory = sqlite3.Row
        for summary in connection.execute("SELECT * FROM summaries ORDER BY rowid").fetchall():
            key = (summary["summary_id"],)
            edges = connection.execute("SELECT * FROM summary_messages WHERE summary_id = ? ORDER BY ordinal", key)
            sources = [tuple(row) for row in edges]
            (item,) = connection.execute("SELECT * FROM context_items WHERE summary_id = ?", key)
            (made,) = connection.execute("SELECT * FROM compaction_events WHERE summary_id = ?", key)
            noted = connection.execute(
                "SELECT * FROM compaction_events WHERE event_id = ?", (made["event_id"] + 1,)
            ).fetchone()
            ids = connection.execute(
                """
                SELECT message_key FROM summary_messages JOIN messages USING (message_id)
                WHERE summary_id = ? ORDER BY ordinal
                """,
                key,
            )
            gone = [(message,) for _, message, _ in sources]
            changes = [
                _insert("summaries", [summary]),
                _insert("summary_messages", sources),
                ("DELETE FROM context_items WHERE message_id = ?", gone),
                _insert("context_items", [item]),
                _insert("compaction_events", [made, noted]),
            ]
            clusters.append(_WrittenCluster(summary["content"], tuple(one for (one,) in ids), changes))
    return clusters


def _insert(table: str, rows: Sequence[Sequence[Any]]) -> tuple[str, list[tuple[Any, ...]]]:
    marks = ", ".join("?" * len(rows[0]))
    return f"INSERT INTO {table} VALUES ({marks})", [tuple(row) for row in rows]  # noqa: S608 (our own tables)


def _check(ours: Path, bare: Path) -> None:
    """Compare the files, and let go of them."""
    mine, theirs = contents(ours), contents(bare)
    if differing := [table for table in mine if mine[table] != theirs.get(table)]:
        raise DisagreementError(f"compaction and the bare inserts left other rows in: {', '.join(differing)}")
    ours.unlink()
    bare.unlink()
