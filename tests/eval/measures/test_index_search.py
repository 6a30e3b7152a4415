"""Who answered the searches of a run: counted beside the calls that reach hnswlib, and held against exact search."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import hnswlib
import numpy as np
import polars as pl
import pytest

from eval.experiment.outcome import Outcome
from eval.measures.latency import SEARCH_SCHEMA, IndexSearch, Latency
from eval.measures.measure import SystemReading
from eval.replay.workspace_replay import Bulk
from lcm.protocols.retrieval import VectorIndexChoice
from lcm.retrieval.embedder.hashing import Hashing
from lcm.retrieval.source.indexes import Dense
from lcm.retrieval.vector_index.exact import Exact
from lcm.retrieval.vector_index.hnsw import Hnsw, HnswIndex
from lcm.retrieval.vector_index.hnsw_tiers import HnswTiers
from tests.eval.tiny import tiny
from tests.support import experiments
from tests.support.workspaces import queries, ranking, system, transcript

WORDS = ("kettle", "goat", "river", "meeting", "kitchen", "wall", "tea", "yellow", "thursday", "migration", "sister")
TALKS = 3
LINES = 120
ALWAYS = Hnsw(exact_below=0)
TIERS = HnswTiers(
    (64, 128, None), (-9.0, -9.0), candidates=90, candidates_share=1, tiers_from=0, flat_below=0, exact_below=0
)


@pytest.fixture
def graph_queries(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many queries each call to hnswlib had."""
    calls: list[int] = []

    class Counting(hnswlib.Index):  # type: ignore[misc]
        def knn_query(self, data: np.ndarray, *arguments: Any, **named: Any) -> Any:
            calls.append(len(data))
            return super().knn_query(data, *arguments, **named)

    monkeypatch.setattr(hnswlib, "Index", Counting)
    return calls


def outcome(choice: VectorIndexChoice, pool_size: int = 10, **measures: object) -> Outcome:
    """Of three conversations in one haystack, each asked twice in its course and once at its end."""
    rng = np.random.default_rng(0)
    talks, asked = [], []
    for talk in range(TALKS):
        lines = [" ".join(rng.choice(WORDS, 5)) for _ in range(LINES)]
        talks.append(transcript(lines, f"talk {talk}", f"workspace {talk}"))
        for number, query in enumerate(queries([" ".join(rng.choice(WORDS, 3)) for _ in range(3)])):
            said = talks[-1].messages[40 * number + 30].created_at + timedelta(seconds=9)
            at = query.asked_at if number == 2 else said
            name = f"{query.query_id} of {talk}"
            asked.append(replace(query, query_id=name, workspace_id=f"workspace {talk}", asked_at=at))
    replay = Bulk(haystack="pooled")
    dataset = replay.laid_out(tiny(talks, asked, ((one.query_id, "talk 0:1") for one in asked)), dict)
    tried = system(vector_index=choice, embedder=Hashing(), ranking=replace(ranking(), source=Dense(pool_size)))
    return experiments.outcome(dataset, tried, replay=replay, measures={"index_search": IndexSearch(), **measures})


@pytest.mark.parametrize(("choice", "ways"), [(ALWAYS, {"graph_384"}), (TIERS, {"graph_64"})])
def test_a_pooled_run_asks_the_graph_and_counts_its_queries(
    choice: VectorIndexChoice, ways: set[str], graph_queries: list[int]
) -> None:
    found = outcome(choice)
    told = found.sections["index_search"]
    assert {name for name, one in told.items() if isinstance(one, dict)} == ways
    assert told["searches"] == told["graph"] == 3 * TALKS
    assert told["scan"] == 0
    assert sum(graph_queries) == 2 * told["graph"]  # by the run, and by the measure
    assert told["recall"] >= 0.9
    name, width = next(iter(ways)).split("_")
    assert any(f"answered 9 searches: 9 by the {name} of {width} numbers" in flag for flag in found.flags)


def test_threshold_and_share_decide_and_a_note_says_why_no_graph_was_asked(graph_queries: list[int]) -> None:
    found = outcome(Hnsw())
    assert graph_queries == []
    told = found.sections["index_search"]
    assert (told["graph"], told["scan"], told["recall"]) == (0, 9, 1)
    assert any("no graph was asked: vector_index.exact_below" in flag for flag in found.flags)
    settings = Hnsw(exact_below=50, ef=20)
    for share, asked in ((0.9, 9), (0.05, 0)):
        assert outcome(replace(settings, largest_share=share)).sections["index_search"]["graph"] == asked


def test_recall_is_the_share_of_what_exact_search_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = HnswIndex.answers

    def without_the_first(*given: Any) -> Any:
        return [one._replace(ids=one.ids[1:], cosines=one.cosines[1:]) for one in answers(*given)]

    monkeypatch.setattr(HnswIndex, "answers", without_the_first)
    told = outcome(Hnsw(), pool_size=20).sections["index_search"]
    assert told["recall"] == pytest.approx(19 / 20)
    assert told["recall@10"] == pytest.approx(9 / 10)
    for recall, note in ((0.25, " (recall 0.250 of exact)"), (0.0, " (recall 0.000 of exact)"), (None, "")):
        rows = pl.DataFrame([("graph_64", 10, recall, recall)], SEARCH_SCHEMA, orient="row")
        (found,) = IndexSearch().notes(rows, SystemReading(system(), tiny()))
        assert found == f"the vector index answered 1 searches: 1 by the graph of 64 numbers{note}"


def test_live_queries_are_timed_beside_exact_search_and_by_way() -> None:
    told = outcome(TIERS, latency=Latency(queries=5)).timing["latency"]
    assert told["dense_exact"]["n"] == told["dense_graph_64"]["n"] == 5
    assert told["dense"]["p50_ms"] == told["dense_graph_64"]["p50_ms"] > 0
    assert told["dense_exact_graph_64"] == told["dense_exact"]
    exact = outcome(Exact(), latency=Latency(queries=5))
    assert "dense_exact" not in exact.timing["latency"]
    assert "index_search" not in {**exact.sections, **exact.frames}
    assert not any("vector index" in flag for flag in exact.flags)
