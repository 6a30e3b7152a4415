"""A small batch: two conversations in files, with a compaction that does something after nearly every turn.

As a program: forks children that work on it, each killed at a statement of its connection.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from operator import attrgetter
from pathlib import Path
from typing import Any

import lcm.store.store
from benchmarks.corpus import native_messages
from eval.batch.replay import ReplayParts, Triggers
from eval.batch.report import read_rows
from eval.batch.shard_work import ShardProgress, ShardWork, SourceReport
from eval.batch.sources import Shard, TranscriptSource, digest_of
from lcm.compaction.lossless.lossless import Lossless
from lcm.compaction.summarizer.chain import Truncate
from lcm.memory.session import MessagePreparer, SessionRules
from lcm.store.doctor import DoctorCheck, scan
from lcm.store.sqlite import connect
from lcm.store.store import Store
from lcm.token_estimator import Utf16Units
from tests.faults.forking import Tell, serve
from tests.faults.killing_connection import KillingConnection

FILES, MESSAGES = 2, 18


def parts() -> ReplayParts:
    compaction = Lossless(
        summarizer=Truncate(max_units=120, aggressive_max_units=60),
        token_estimator=Utf16Units(),
        budget_tokens=400,
        context_threshold=0.3,
        fresh_tail_count=3,
        leaf_chunk_tokens=150,
        min_leaf_tokens=0,
        leaf_min_fanout=2,
        condensed_min_fanout=2,
        incremental_max_depth=-1,
        leaf_target_tokens=60,
        condensed_target_tokens=50,
        sweep_deadline_seconds=None,
    )
    return ReplayParts(compaction, MessagePreparer(SessionRules(), Utf16Units(), attrgetter("content")))


def write_files(folder: Path) -> Shard:
    for number in range(FILES):
        messages = zip(range(MESSAGES), native_messages(number, 120), strict=False)
        lines = [
            json.dumps({**native, "timestamp": f"2026-01-05T09:{minute:02}:0{number}Z"}) for minute, native in messages
        ]
        (folder / f"talk{number}.jsonl").write_text("\n".join(lines) + "\n")
    return written(folder)


def written(folder: Path) -> Shard:
    """The shard of files that are there."""
    paths = sorted(folder.glob("talk*.jsonl"))
    return Shard(0, tuple(TranscriptSource(path, path.stem, digest_of(path), path.stat().st_size) for path in paths))


def work(
    into: Path, shard: Shard, triggers: Triggers, make: Callable[[], ReplayParts] = parts
) -> list[ShardProgress | SourceReport]:
    return list(ShardWork(into, make, triggers)(shard))


def outcome(into: Path, shard: Shard) -> dict[str, Any]:
    """All that a batch is for; neither row ids nor clocks."""
    with Store(into / f"{shard.name}.db") as store:
        found: dict[str, Any] = {
            name: (
                store.messages(name),
                store.context(name),
                sorted(store.summaries(name), key=lambda summary: summary.summary_id),
                store.events(name),
                [row for row in store.compactions().rows() if row[0] == name],
            )
            for name in sorted(store.conversations()["conversation_id"])
        }
        found["done"] = [store.is_done(source.digest) for source in shard.sources]
    rows = read_rows([into / f"{shard.name}.jsonl"]).drop("seconds").sort("conversation_id")
    found["report"] = _plain(rows.rows())
    return found


def failures(path: Path) -> list[DoctorCheck]:
    """What the doctor finds wrong in a store."""
    with closing(connect(path)) as connection:
        return [check for check in scan(connection) if check.status == "fail"]


def _plain(rows: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return [tuple(tuple(cell) if isinstance(cell, list) else cell for cell in row) for row in rows]


def killed(asked: Mapping[str, Any], tell: Tell) -> None:
    """In a child: work on the batch until the statement `at`; 0 = to its end."""
    made: list[KillingConnection] = []

    def connected(path: Path) -> KillingConnection:
        made.append(KillingConnection(connect(path), tell, asked["at"], after=asked["after"]))
        return made[-1]

    lcm.store.store.connect = connected
    work(Path(asked["into"]), written(Path(asked["files"])), asked["triggers"])
    tell("finished " + "".join(str(int(flag)) for flag in made[0].flags))


if __name__ == "__main__":
    serve(killed)
