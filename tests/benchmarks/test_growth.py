"""Growth curves: the slope of a line through their points, and the sizes that they need."""

from dataclasses import replace

import pytest

from benchmarks.growth import Curve, Growth
from lcm.retrieval.text_index import Bm25s, Fts5
from lcm.retrieval.vector_index.exact import Exact
from lcm.retrieval.vector_index.hnsw import Hnsw
from lcm.token_estimator import Utf16Units
from tests.support.workspaces import ranking

GROWTH = Growth(Utf16Units(), Exact(), Hnsw(), Fts5(), Bm25s(), ranking(), sizes=[100, 50], queries=5, k=3, dim=16)


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
