"""How long turns wait for compaction, as the system schedules it and as synchronous compaction would have them wait.

Each conversation is taken in turn by turn, alone, once for each of two arms: `asynchronous`, with the system's own
thresholds, and `synchronous`, where every turn waits. Time is that which `scheduling.replayed` simulates, so that every
run gives the same numbers. Over all turns of all conversations:

- `mean`, `p50`, `p95`, `p99`, `max`: seconds that a turn waited; `share`: of the turns that waited at all;
- `context_tokens`: of the largest context; `compacted`: how many times what was planned was written;
- `dropped`: plans that came to nothing; `unfinished`: those that had not ended when the conversation did.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import polars as pl

from eval.dataset.dataset import Dataset
from eval.measures.means import Entry, Means
from eval.measures.measure import Measure, SystemReading
from eval.replay.per_turn import turns
from lcm.compaction.scheduling import Asynchronous
from lcm.memory.memory import Memory
from lcm.memory.system import System
from lcm.protocols.contract import contract_of
from lcm.records.conversation import Transcript

SYNCHRONOUS, ASYNCHRONOUS = "synchronous", "asynchronous"
WAITING_SCHEMA: dict[str, pl.DataType] = {
    "arm": pl.String(),
    "conversation_id": pl.String(),
    "turn": pl.Int64(),
    "waited_seconds": pl.Float64(),
    "context_tokens": pl.Int64(),
    "is_compacted": pl.Boolean(),
    "dropped": pl.Int64(),
    "unfinished": pl.Int64(),
}
"""A row a turn: how long it waited, the context that it found, and what became of plans at it. `unfinished` counts
those under way after it, of the last turn of a conversation."""
_PERCENTILES = (50, 95, 99)
_DROPPED = "background compaction"
"""Begins the name of each incident of that kind."""


@dataclass(frozen=True, slots=True)
class Waiting(Measure):
    """Tells how long turns wait for compaction, with and without the background, where scheduling is asynchronous."""

    subject = "system"
    needs: ClassVar[str] = "scheduling=asynchronous and a compaction, as compaction=lossless"

    def is_measured(self, system: System, dataset: Dataset) -> bool:
        return not (contract_of(system.scheduling).is_off or contract_of(system.compaction).is_off)

    def rows(self, reading: SystemReading) -> pl.DataFrame:
        """Take in every conversation twice: rows of `WAITING_SCHEMA`; none where it is not measured."""
        system = reading.system
        if not isinstance(system.scheduling, Asynchronous) or contract_of(system.compaction).is_off:
            return pl.DataFrame(schema=WAITING_SCHEMA)
        arms = {
            SYNCHRONOUS: replace(system, scheduling=replace(system.scheduling, hard_threshold=0.0)),
            ASYNCHRONOUS: system,
        }
        rows = [
            (arm, *row)
            for arm, one in arms.items()
            for transcript in reading.dataset.transcripts
            for row in _turns(one, transcript, reading.incidents)
        ]
        return pl.DataFrame(rows, schema=WAITING_SCHEMA, orient="row")

    def section(self, rows: pl.DataFrame, means: Means) -> dict[str, dict[str, Entry]] | None:
        """Arm -> what was waited for -> entry; `n` is the number of turns."""
        if rows.is_empty():
            return None
        return {
            arm: {name: {"value": value, "n": len(own), "low": None, "high": None} for name, value in _told(own)}
            for arm in (SYNCHRONOUS, ASYNCHRONOUS)
            if not (own := rows.filter(arm=arm)).is_empty()
        }

    def notes(self, rows: pl.DataFrame, reading: SystemReading) -> list[str]:
        """Where nothing ever waited, or nothing was ready in time, no number tells what the background is worth."""
        behind = rows.filter(arm=ASYNCHRONOUS)
        if rows["waited_seconds"].max() and not behind["is_compacted"].any():
            plans = behind.select((pl.col("unfinished") + pl.col("dropped")).sum()).item()
            remedy = "messages without dates take no time; set scheduling.replayed.seconds_a_turn"
            return [f"waiting: of {plans:,} plans in the background none was ready before its talk ended: {remedy}"]
        if rows.is_empty() or rows["waited_seconds"].max():
            return []
        why = "none made a summary due (the soft threshold is the trigger of compaction)"
        return [f"waiting: no turn waited, in the background or not: {why}, or scheduling.replayed takes no time"]


def _turns(system: System, transcript: Transcript, incidents: Counter[str]) -> Iterator[tuple[object, ...]]:
    name, said = transcript.conversation_id, list(turns(transcript.messages))
    if not system.session.writes(name, name):
        return
    with Memory.open(system, "") as memory:
        dropped = 0
        for number, turn in enumerate(said, 1):
            report = memory.take_turn(name, turn)
            unfinished = len(memory.settle()) if number == len(said) else 0
            before, dropped = dropped, sum(n for what, n in memory.incidents.items() if what.startswith(_DROPPED))
            done = report.is_compacted, dropped - before, unfinished
            yield name, number, report.waited_seconds, report.tokens_before, *done
        incidents.update(memory.incidents)


def _told(rows: pl.DataFrame) -> Iterator[tuple[str, float]]:
    waited = rows["waited_seconds"].to_numpy()
    yield "mean", float(waited.mean())
    for q in _PERCENTILES:
        yield f"p{q}", float(np.percentile(waited, q))
    yield "max", float(waited.max())
    yield "share", float((waited > 0).mean())
    yield "context_tokens", float(rows["context_tokens"].to_numpy().max())
    yield "compacted", float(rows["is_compacted"].sum())
    for name in ("dropped", "unfinished"):
        yield name, float(rows[name].sum())
