"""Which documents have faded: worked cases."""

from dataclasses import replace
from datetime import timedelta

import polars as pl

from eval.measures.means import Means
from eval.measures.measure import MemoryReading, SystemReading
from eval.measures.memory import STALENESS_SCHEMA, Staleness
from lcm.memory.memory import Memory
from lcm.protocols.retrieval import Decay
from lcm.records.query import Query
from lcm.retrieval.decay import NoDecay, Weibull
from tests.eval.tiny import tiny
from tests.support.workspaces import minute, system, transcript


def read(decay: Decay, years: float) -> pl.DataFrame:
    memory = Memory.open(system())
    memory.ingest(transcript())
    asked = [Query("q", "where is it", minute(60) + timedelta(days=365 * years))]
    return Staleness(decay).rows(MemoryReading(memory, asked, pl.DataFrame(), {}, tiny()))


def test_a_document_is_stale_once_it_is_weaker_than_the_threshold() -> None:
    decay = Weibull(intrinsic_weight=0.2)
    fresh, faded = read(decay, 0), read(decay, 10)
    assert fresh.schema == faded.schema == STALENESS_SCHEMA
    assert len(fresh) == len(faded) > 0
    assert not fresh["is_stale"].any()
    assert faded["is_stale"].all()
    assert faded["strength"].is_sorted()
    assert not read(replace(decay, stale_threshold=0.0), 10)["is_stale"].any()


def test_the_list_is_summed_up_and_told() -> None:
    rows = pl.DataFrame({"document_id": ["a", "b", "c"], "strength": [0.1, 0.2, 0.9], "is_stale": [True, True, False]})
    measure = Staleness(Weibull())
    assert measure.section(rows, Means()) == {"documents": 3, "stale": 2, "share": 2 / 3}
    assert measure.notes(rows, SystemReading(system(), tiny())) == [
        "2 of 3 documents are stale: weaker than decay.stale_threshold"
    ]
    assert measure.section(rows.clear(), Means()) == {"documents": 0, "stale": 0, "share": 0.0}


def test_a_decay_that_knows_nothing_stale_lists_nothing_and_says_so() -> None:
    rows = read(NoDecay(), 10)
    assert rows.is_empty()
    (note,) = Staleness(NoDecay()).notes(rows, SystemReading(system(), tiny()))
    assert note == "the decay calls no document stale: choose decay=weibull, or leave measures.staleness out"
