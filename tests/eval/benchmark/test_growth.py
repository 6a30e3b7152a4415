"""Growth curves: every operation at every size, and the slope of a line through them."""

from dataclasses import replace

import pytest

from eval.benchmark.growth import Curve, Growth
from lcm.retrieval.text_index.bm25s import Bm25s
from lcm.retrieval.text_index.fts5 import Fts5
from lcm.retrieval.vector_index.exact import Exact
from lcm.retrieval.vector_index.hnsw import Hnsw
from lcm.token_estimator.utf16_units import Utf16Units
from tests.support.workspaces import ranking

GROWTH = Growth(Utf16Units(), Exact(), Hnsw(), Fts5(), Bm25s(), ranking(), sizes=[100, 50], queries=5, k=3, dim=16)


@pytest.mark.full
def test_every_operation_has_a_point_at_every_size() -> None:
    heard: list[tuple[str, int, int]] = []
    curves = GROWTH.run(1, 0, lambda *what: heard.append(what))
    expected = {
        "store": ["ingest", "append one message", "add_documents", "documents"],
        "index": ["exact add", "hnsw add", "fts5 add", "bm25s add"],
        "dense search": ["exact search", "hnsw search"],
        "lexical search": ["fts5 search", "bm25s search"],
        "ranking": ["rank, behind the source"],
    }
    assert {(one.family, one.operation) for one in curves} == {
        (family, operation) for family, operations in expected.items() for operation in operations
    }
    assert {curve.sizes for curve in curves} == {(50, 100)}
    assert all(len(curve.seconds) == 2 and min(curve.seconds) > 0 for curve in curves)
    assert heard == [("growth", 0, 2), ("growth", 1, 2), ("growth", 2, 2)]


def test_the_exponent_is_that_of_a_power_law_and_one_size_has_none() -> None:
    sizes = (10, 100, 1000)
    for exponent in (0, 0.5, 1, 2):
        curve = Curve("store", "ingest", sizes, tuple(3 * size**exponent for size in sizes))
        assert curve.exponent == pytest.approx(exponent, abs=1e-9)
    assert Curve("store", "ingest", (10,), (1.0,)).exponent is None


@pytest.mark.parametrize("sizes", [[], [1], [50, 50]])
def test_sizes_must_be_different_and_large_enough(sizes: list[int]) -> None:
    with pytest.raises(ValueError, match=r"^sizes must be different numbers of documents >= 2, got "):
        replace(GROWTH, sizes=sizes)
