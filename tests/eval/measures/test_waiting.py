"""How long turns wait, by arithmetic in sight."""

from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from eval.measures.means import Means
from eval.measures.measure import SystemReading
from eval.measures.sessions import ASYNCHRONOUS, SYNCHRONOUS, WAITING_SCHEMA, Waiting
from lcm.compaction.scheduling import Asynchronous, ReplayedTime
from lcm.compaction.work import NoCompaction
from lcm.errors import DatasetError
from lcm.memory.system import System
from tests.eval.measures.test_survival import dataset, folding
from tests.support.experiments import outcome
from tests.support.workspaces import LINES, transcript

CALL_S = 2.5
"""Of the summarizer: a turn, of a minute in these transcripts, is set to a second."""
WHOLE = SystemReading(folding(), dataset())
TALK = [f"{line}. {line}, as I said before" for line in LINES * 3]


def scheduled(hard_tokens: int = 10_000, **time: Any) -> System:
    replayed = ReplayedTime(**{"seconds_a_turn": 1.0, "seconds_per_call": CALL_S} | time)
    instant = replace(replayed, input_tokens_per_second=float("inf"), output_tokens_per_second=float("inf"))
    return replace(folding(), scheduling=Asynchronous(hard_tokens, 1.0, replayed=instant))


def measured(system: System) -> pl.DataFrame:
    return Waiting().rows(SystemReading(system, dataset(transcript(TALK))))


def values(system: System, arm: str) -> dict[str, float | None]:
    section = Waiting().section(measured(system), Means())
    assert section is not None
    return {name: entry["value"] for name, entry in section[arm].items()}


def test_a_synchronous_turn_waits_for_every_call_and_an_asynchronous_one_for_none() -> None:
    rows = measured(scheduled())
    waited = rows.filter(pl.col("arm") == SYNCHRONOUS, pl.col("is_compacted"))["waited_seconds"]
    assert len(waited) > 2
    assert all(seconds >= CALL_S and seconds % CALL_S == 0 for seconds in waited)
    assert not rows.filter(arm=ASYNCHRONOUS)["waited_seconds"].sum()
    assert values(scheduled(), ASYNCHRONOUS)["compacted"] > 1
    assert Waiting().notes(rows, WHOLE) == []


def test_percentiles_are_over_turns() -> None:
    rows = pl.DataFrame(
        [(SYNCHRONOUS, "c", turn, float(turn), 100 * turn, turn > 9, 0, turn == 10) for turn in range(11)],
        schema=WAITING_SCHEMA,
        orient="row",
    )
    section = Waiting().section(rows, Means())
    assert section is not None
    told = {name: entry["value"] for name, entry in section[SYNCHRONOUS].items()}
    assert told == {
        "mean": 5.0,
        "p50": 5.0,
        "p95": 9.5,
        "p99": pytest.approx(9.9),
        "max": 10.0,
        "share": 10 / 11,
        "context_tokens": 1000.0,
        "compacted": 1.0,
        "dropped": 0.0,
        "unfinished": 1.0,
    }


def test_a_lower_hard_threshold_waits_more_and_lets_contexts_grow_less() -> None:
    rows = measured(scheduled(hard_tokens=70))
    free, held = values(scheduled(), ASYNCHRONOUS), values(scheduled(hard_tokens=70), ASYNCHRONOUS)
    assert free["share"] == 0 < held["share"]
    assert held["context_tokens"] < free["context_tokens"]
    assert measured(scheduled(hard_tokens=70)).equals(rows)


def test_notes_say_why_nothing_waited_or_that_the_background_was_never_ready() -> None:
    system = scheduled()
    never = replace(system, compaction=replace(system.compaction, leaf_chunk_tokens=100_000))  # type: ignore[type-var]
    (note,) = Waiting().notes(measured(never), WHOLE)
    assert "none made a summary due" in note
    (note,) = Waiting().notes(measured(scheduled(seconds_a_turn=0.0)), WHOLE)
    assert note.startswith("waiting: of 1 plans in the background none was ready before its talk ended: ")
    assert values(scheduled(seconds_per_call=1e6), ASYNCHRONOUS)["unfinished"] == 1


@pytest.mark.parametrize("system", [folding(), replace(scheduled(), compaction=NoCompaction())])
def test_where_nothing_is_scheduled_nothing_is_measured(system: System) -> None:
    assert not Waiting().is_measured(system, dataset())
    assert measured(system).is_empty()
    assert Waiting().section(measured(system), Means()) is None


def test_alone_it_is_refused_where_nothing_is_scheduled() -> None:
    with pytest.raises(DatasetError, match=r"^measures=waiting needs scheduling=asynchronous"):
        outcome(dataset(), folding(), measures={"waiting": Waiting()})
