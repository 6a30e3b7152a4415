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

GROWTH = Growth(
    token_estimator=Utf16Units(),
    exact=Exact(),
    hnsw=Hnsw(),
    fts5=Fts5(),
    bm25s=Bm25s(),
    ranking=ranking(),
    sizes=[100, 50],
    queries=5,
    k=3,
    dim=16,
)


@pytest.mark.full
def test_every_operation_has_a_point_at_every_size() -> None:
    heard: list[tuple[str, int, int]] = []
    curves = GROWTH.run(2, 0, lambda *what: heard.append(what))
    assert {(curve.family, curve.operation) for curve in curves} == {
        ("store", "ingest"),
        ("store", "append one message"),
        ("store", "add_documents"),
        ("store", "documents"),
        ("index", "exact add"),
        ("index", "hnsw add"),
        ("index", "fts5 add"),
        ("index", "bm25s add"),
        ("dense search", "exact search"),
        ("dense search", "hnsw search"),
        ("lexical search", "fts5 search"),
        ("lexical search", "bm25s search"),
        ("ranking", "rank, behind the source"),
    }
    for curve in curves:
        assert curve.sizes == (50, 100)
        assert len(curve.seconds) == 2
        assert min(curve.seconds) > 0
    assert heard == [("growth", 0, 2), ("growth", 1, 2), ("growth", 2, 2)]


@pytest.mark.parametrize("exponent", [0, 0.5, 1, 2])
def test_the_exponent_is_that_of_a_power_law(exponent: float) -> None:
    sizes = (10, 100, 1000)
    curve = Curve("store", "ingest", sizes, tuple(3 * size**exponent for size in sizes))
    assert curve.exponent == pytest.approx(exponent, abs=1e-9)


def test_one_size_has_no_exponent() -> None:
    assert Curve("store", "ingest", (10,), (1.0,)).exponent is None


@pytest.mark.parametrize("sizes", [[], [1], [50, 50]])
def test_sizes_must_be_different_and_large_enough(sizes: list[int]) -> None:
    with pytest.raises(ValueError, match=r"^sizes must be different numbers of documents >= 2, got "):
        replace(GROWTH, sizes=sizes)
