"""What is particular to the graph; the laws are in the conformance suite."""

import dataclasses
import itertools
import logging
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from lcm.errors import StoreError
from lcm.protocols.models import Vectors
from lcm.retrieval.vector_index.exact import Exact, ExactIndex
from lcm.retrieval.vector_index.hnsw import Hnsw, HnswIndex
from tests.lcm.refusals import assert_refused

DIM = 8
ALWAYS_GRAPH = Hnsw(ef=20, exact_below=0)


def unit(count: int, seed: int) -> Vectors:
    vectors = np.random.default_rng(seed).standard_normal((count, DIM)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def names(count: int, prefix: str = "d") -> list[str]:
    return [f"{prefix}{number}" for number in range(count)]


def both_with(count: int) -> tuple[HnswIndex, ExactIndex]:
    """The same vectors in a graph and in an exact index."""
    index, oracle = ALWAYS_GRAPH.build(DIM, incidents=Counter()), Exact().build(DIM, incidents=Counter())
    for built in (index, oracle):
        built.add(names(count), unit(count, 0))
    return index, oracle


def test_settings_out_of_range_are_refused() -> None:
    assert_refused(Hnsw, "be in [2, 10000]", m=[1, 10_001])
    assert_refused(Hnsw, "be >= 1", ef_construction=0, ef=0, ef_a_result=0)
    assert_refused(Hnsw, "be in [0, 4294967296)", seed=[-1, 2**32])
    assert_refused(Hnsw, "be >= 0", exact_below=-1)
    assert_refused(Hnsw, "be in (0, 1]", largest_share=[0.0, 1.5])


def test_exact_below_0_means_that_the_graph_always_answers_and_a_filter_costs_no_recall() -> None:
    index, oracle = both_with(1500)
    queries = unit(60, 1)
    for k, allowed in itertools.product((1, 10, 150), (None, names(1500)[::2], names(1500)[::10])):
        found = index.answers(queries, k, allowed)
        assert {(one.is_by_graph, one.width) for one in found} == {(True, DIM)}
        truth = oracle.search(queries, k, allowed)
        hits = sum(len(set(one.ids).intersection(best)) for one, (best, _) in zip(found, truth, strict=True))
        assert hits >= 0.95 * sum(len(best) for best, _ in truth)


@pytest.mark.parametrize(
    ("change", "by_graph"),
    [
        ({}, True),
        ({"exact_below": 750}, True),  # of 1,500 half are allowed
        ({"exact_below": 751}, False),
        ({"largest_share": 0.05}, False),  # 20 candidates, and as many that are not allowed: 40 of 750
        ({"largest_share": 0.06}, True),
        ({"largest_share": 0.06, "ef_a_result": 30}, False),
        ({"largest_share": 0.06, "ef_a_result": 30, "exact_below": 0}, True),
    ],
)
def test_the_settings_decide_whether_the_graph_is_asked(change: dict[str, float], by_graph: bool) -> None:
    settings = dataclasses.replace(Hnsw(ef=20, exact_below=100, largest_share=0.1), **change)
    index = settings.build(DIM, incidents=Counter())
    index.add(names(1500), unit(1500, 0))
    assert {one.is_by_graph for one in index.answers(unit(5, 1), 5, names(1500)[::2])} == {by_graph}


def test_crossing_exact_below_builds_the_graph_once_and_removal_drops_it() -> None:
    index = Hnsw(exact_below=100).build(DIM, incidents=Counter())
    index.add(names(99), unit(99, 0))
    assert index._graph.size == 0
    index.add(["one", "two"], unit(2, 1))
    assert index._graph.size == 101
    for gone, left, size in ((names(50), 51, 101), (["one"], 50, 0)):
        index.remove(gone)
        assert len(index.search(unit(1, 2), 60)[0][0]) == len(index) == left
        assert index._graph.size == size


def test_ef_and_exact_below_may_change_between_saving_and_loading_but_not_what_shapes_the_graph(tmp_path: Path) -> None:
    saved = ALWAYS_GRAPH.build(DIM, incidents=Counter())
    saved.add(names(1000), unit(1000, 0))
    saved.save(tmp_path / "index")
    for change in ({"ef": 400}, {"exact_below": 10}):
        dataclasses.replace(ALWAYS_GRAPH, **change).build(DIM, incidents=Counter()).load(tmp_path / "index")
    for change in ({"m": 8}, {"ef_construction": 50}, {"seed": 1}):
        with pytest.raises(StoreError, match=r"was written with .* expected .*; rebuild it"):
            dataclasses.replace(ALWAYS_GRAPH, **change).build(DIM, incidents=Counter()).load(tmp_path / "index")


def test_a_graph_torn_apart_is_noted_and_every_vector_looked_at(caplog: pytest.LogCaptureFixture) -> None:
    class Torn:
        def set_ef(self, ef: int) -> None:
            pass

        def knn_query(self, queries: Vectors, k: int) -> None:
            raise RuntimeError("Cannot return the results in a contiguous 2D array")

    index, oracle = both_with(1000)
    index._graph._graph = Torn()
    with caplog.at_level(logging.INFO):
        assert index.search(unit(3, 1), 5) == oracle.search(unit(3, 1), 5)
    assert "looking at all" in caplog.text


def test_adding_and_searching_in_several_threads_is_safe() -> None:
    index = ALWAYS_GRAPH.build(DIM, incidents=Counter())
    index.add(names(500), unit(500, 0))

    def search(_: int) -> bool:
        return all(len(index.search(unit(4, number), 5)[0][0]) == 5 for number in range(100))

    with ThreadPoolExecutor(3) as threads:
        searches = threads.map(search, range(3))
        for number in range(30):
            index.add(names(50, f"t{number}-"), unit(50, number))
            index.remove(names(20, f"t{number}-"))
        assert all(searches)
    assert len(index) == 500 + 30 * 30


def test_an_index_saved_without_a_graph_can_be_searched_by_one(tmp_path: Path) -> None:
    saved, loaded = (Hnsw(exact_below=below).build(DIM, incidents=Counter()) for below in (10_000, 100))
    saved.add(names(900), unit(900, 5))
    saved.save(tmp_path / "index")
    loaded.load(tmp_path / "index")
    assert [ids[0] for ids, _ in loaded.search(unit(900, 5)[:20], 1)] == names(20)
