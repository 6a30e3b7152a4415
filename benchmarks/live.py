"""What a live memory costs as it grows: asked one query at a time, told one message at a time, opened anew."""

import os
import resource
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import cycle
from multiprocessing import get_context
from pathlib import Path
from typing import TypeVar

import numpy as np

from benchmarks import corpus
from benchmarks.growth import Curve
from eval.executor import begin_worker
from eval.experiment.experiment import Progress
from lcm.checks import check_range
from lcm.memory.memory import Memory
from lcm.memory.system import System
from lcm.protocols.models import Vectors
from lcm.records.conversation import Message, Transcript
from lcm.records.query import Query
from lcm.text import load_stop_words, query_words, split_words
from pipelines.config import building
from pipelines.config.composition import composed

Seconds = Mapping[tuple[str, str], float]
"""By family and unit; MiB, where that is the unit."""
_Measured = TypeVar("_Measured")

_BARE = "numpy and FTS5"
_WARM = 5  # queries before those that are timed
_P95 = 0.95
_STATUS = Path("/proc/self/status")


@dataclass(frozen=True, slots=True)
class LiveMemory:
    """Every system at every size, and the libraries below them.

    A memory takes in a transcript and is closed; a second process, which never had the transcript, opens it and asks
    `queries`, one at a time, embedding included; then `turns` messages come, each with a query behind it. Beside the
    queries stands the product of one vector with all, in float32, its `k` best by `argpartition`, and the MATCH of the
    same words by FTS5.
    """

    systems: Mapping[str, Sequence[str] | None]
    """Name -> what to choose for it; null leaves it out."""
    choices: Sequence[str]
    """What to choose for every system besides."""
    sizes: Sequence[int]
    """Messages."""
    queries: int
    turns: int
    k: int
    dim: int

    def __post_init__(self) -> None:
        if not self.sizes or min(self.sizes) < 2 or len(set(self.sizes)) < len(self.sizes):
            raise ValueError(f"sizes must be different numbers of messages >= 2, got {list(self.sizes)}")
        check_range(self, "queries", "turns", "k", "dim", ge=1)

    def run(self, seed: int, progress: Progress) -> list[Curve]:
        """Curves of each family, a system after the other."""
        sizes = sorted(self.sizes)
        points: dict[str, Callable[[int], Seconds]] = {_BARE: partial(bare, self, seed)}
        for name, chosen in self.systems.items():
            if chosen is not None:
                points[name] = partial(grown, self, seed, (*chosen, *self.choices))
        values: dict[tuple[str, str, str], list[float]] = {}
        for done, (size, name) in enumerate((size, name) for size in sizes for name in points):
            progress("live memories", done, len(sizes) * len(points))
            for (family, unit), value in points[name](size).items():
                values.setdefault((family, unit, name), []).append(value)
        progress("live memories", len(sizes) * len(points), len(sizes) * len(points))
        return [
            Curve(family, f"{family}, {name}", tuple(sizes), tuple(found), unit)
            for (family, unit, name), found in sorted(values.items(), key=lambda one: one[0][0])
        ]


def grown(settings: LiveMemory, seed: int, choices: Sequence[str], size: int) -> Seconds:
    """One system at one size: a process takes the transcript in, and another one opens what that left behind."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "memory.db"
        ingest, rest = _in_another_process(partial(_take_in, settings, seed, choices, size, path))
        use = _in_another_process(partial(_ask, settings, seed, choices, rest, path))
    return {**ingest, **use}


def _take_in(
    settings: LiveMemory, seed: int, choices: Sequence[str], size: int, path: Path
) -> tuple[Seconds, Transcript]:
    """Ingest the transcript; returns with it what is said behind it."""
    transcript = corpus.transcript(size + settings.turns, seed)
    first, rest = (replace(transcript, messages=transcript.messages[part]) for part in (slice(size), slice(size, None)))
    with Memory.open(_system(choices), path) as memory:
        ingest_s = _timed(lambda: memory.ingest(first))
    return {("ingest", "s"): ingest_s, ("peak of ingest", "MiB"): _peak_mb()}, rest


def _ask(settings: LiveMemory, seed: int, choices: Sequence[str], rest: Transcript, path: Path) -> Seconds:
    """Open the memory, ask it, tell it what comes next."""
    system, queries = _system(choices), _asked(rest, settings.queries + _WARM, seed)
    started = time.perf_counter()
    with Memory.open(system, path) as memory:
        reopen_s = time.perf_counter() - started
        first_s = _timed(lambda: memory.rank(queries[:1]))
        asked = [_timed(partial(memory.rank, [query])) for query in queries][_WARM:]
        turns, behind = [], []
        for message, query in zip(rest.messages, cycle(queries), strict=False):
            turns.append(_timed(partial(_tell, memory, rest.conversation_id, message)))
            behind.append(_timed(partial(memory.rank, [query])))
        peak_mb = _peak_mb()
    return {
        ("live query, p50", "s"): statistics.median(asked),
        ("live query, p95", "s"): _p95(asked),
        ("first query", "s"): first_s,
        ("query behind a turn, p50", "s"): statistics.median(behind),
        ("turn, p50", "s"): statistics.median(turns),
        ("reopening", "s"): reopen_s,
        ("peak of memory", "MiB"): peak_mb,
    }


def _system(choices: Sequence[str]) -> System:
    """The memory of some choices of `lcm evaluate` (`system=hybrid`)."""
    system = building.build(composed(choices), "memory")
    assert isinstance(system, System)
    return system


def bare(settings: LiveMemory, seed: int, size: int) -> Seconds:
    """A query by numpy and SQLite alone, in a process of its own."""
    return _in_another_process(partial(_ask_bare, settings, seed, size))


def _ask_bare(settings: LiveMemory, seed: int, size: int) -> Seconds:
    texts = [message.content for message in corpus.transcript(size, seed).messages]
    rows = corpus.unit_vectors(size, settings.dim, seed)
    queries = corpus.queries(settings.queries + _WARM, seed)
    vectors = corpus.unit_vectors(len(queries), settings.dim, seed + 1)
    stop_words = load_stop_words("english")
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.execute(
            "CREATE VIRTUAL TABLE words USING fts5(text, tokenize = 'porter unicode61 remove_diacritics 2')"
        )
        connection.execute("BEGIN")
        connection.executemany("INSERT INTO words (rowid, text) VALUES (?, ?)", enumerate(texts, start=1))
        connection.execute("COMMIT")

        def answer(query: Query, vector: Vectors) -> None:
            cosines = rows @ vector
            nearest = np.argpartition(-cosines, min(settings.k, size - 1))[: settings.k]
            nearest[np.argsort(-cosines[nearest])].tolist()
            words = query_words(split_words(query.text)[0], stop_words, is_alone=True)
            connection.execute(
                "SELECT rowid, -bm25(words) AS score FROM words WHERE words MATCH ? ORDER BY score DESC LIMIT ?",
                (" OR ".join(f'"{word}"' for word in words), settings.k),
            ).fetchall()

        asked = [_timed(partial(answer, *pair)) for pair in zip(queries, vectors, strict=True)][_WARM:]
    return {("live query, p50", "s"): statistics.median(asked), ("live query, p95", "s"): _p95(asked)}


def _asked(transcript: Transcript, number: int, seed: int) -> list[Query]:
    """Questions of the conversation, from its last session."""
    last = transcript.messages[-1].session_id
    name = transcript.conversation_id
    return [replace(query, conversation_id=name, session_id=last) for query in corpus.queries(number, seed)]


def _tell(memory: Memory, conversation_id: str, message: Message) -> None:
    memory.take_turn(conversation_id, [message])
    memory.catch_up()


def _timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _p95(seconds: Sequence[float]) -> float:
    return float(np.quantile(seconds, _P95))


def _in_another_process(work: Callable[[], _Measured]) -> _Measured:
    """So that no work finds warm what another has left, and each has a peak of its own."""
    with ProcessPoolExecutor(
        1, mp_context=get_context("spawn"), initializer=begin_worker, initargs=(os.getpid(),)
    ) as beside:
        return beside.submit(work).result()


def _peak_mb() -> float:
    """Resident memory of this process at most; what its parent held when it began it does not count on Linux."""
    if _STATUS.exists():
        lines = dict(line.split(":", 1) for line in _STATUS.read_text().splitlines() if ":" in line)
        return int(lines["VmHWM"].split()[0]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
