"""Each comparison: both sides answer alike, and a side that does not is found out."""

import math
import time
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest

from benchmarks import embedding, ingest
from benchmarks.embedding import Embedding
from benchmarks.ingest import Ingest
from benchmarks.ranking_share import RankingShare
from benchmarks.search import check_scores
from benchmarks.text_search import Bm25sSearch, Fts5Search
from benchmarks.timing import DisagreementError
from benchmarks.vector_search import ExactSearch, HnswSearch
from eval.stopwatch import Stopwatch
from lcm.protocols.retrieval import Batch
from lcm.retrieval.embedder.hashing import Hashing
from lcm.retrieval.embedder.onnx import Onnx
from lcm.retrieval.ranking.pipeline import Ranking
from lcm.retrieval.text_index import Bm25s, Fts5
from lcm.retrieval.vector_index.hnsw import Hnsw
from lcm.token_estimator import Utf16Units
from tests.support.models import BuildModel
from tests.support.workspaces import system

pytestmark = pytest.mark.usefixtures("no_full_collections")

INGEST = Ingest(Utf16Units(), messages=60, transaction_sizes=[1, 25])
HNSW = HnswSearch(Hnsw(ef=8, exact_below=0), documents=200, queries=20, k=3, dim=16)
EXACT = ExactSearch(documents=200, queries=20, k=3, dim=16)
FTS5 = Fts5Search(Fts5(), documents=60, queries=10, k=5)
BM25S = Bm25sSearch(Bm25s(), documents=60, queries=10, k=5)
SHARE = RankingShare(system(), messages=40, queries=5)


@pytest.mark.parametrize(
    ("choice", "names"),
    [
        (INGEST, ["ingest, 1 a transaction", "ingest, 25 a transaction"]),
        (HNSW, ["hnsw search"]),
        (EXACT, ["exact search"]),
        (FTS5, ["fts5 search"]),
        (replace(FTS5, index=Fts5(stop_words="none")), ["fts5 search"]),
        (BM25S, ["bm25s search"]),
        (replace(BM25S, index=Bm25s(k1=0.9, b=0.4, stemmer="none", stop_words="none")), ["bm25s search"]),
        (SHARE, ["ranking, of an uncached run"]),
    ],
)
def test_a_comparison_agrees_and_gives_finite_ratios(choice: Any, names: list[str]) -> None:
    found = choice.run(1, 0)
    assert [comparison.name for comparison in found] == names
    for one in found:
        figures = [one.ours, one.bare, one.ratio, one.ratio_low, one.ratio_high]
        assert all(math.isfinite(figure) and figure > 0 for figure in figures)
        assert one.ratio == one.ours / one.bare
        assert one.ratio_low <= one.ratio_high
        assert len(one.rounds.ours) == len(one.rounds.bare) == 1


@pytest.mark.parametrize("settings", [{}, {"pooling": "cls", "layer_norm": True, "truncate_dim": 8}])
def test_the_bare_session_gives_the_embedders_vectors(build_model: BuildModel, settings: dict[str, Any]) -> None:
    embedder = Onnx(str(build_model()), max_tokens=64, overlap_tokens=8, document_prefix="a: ", **settings)
    (found,) = Embedding(embedder, texts=6).run(1, 0)
    assert found.facts["texts"] > 6  # letters are tokens there: texts have several windows
    assert found.facts["max_tokens"] <= 64
    assert found.ratio == found.ours / found.bare


def test_what_has_no_bare_side_cannot_be_compared() -> None:
    with pytest.raises(ValueError, match=r"^embedder must run an ONNX model .* comparisons.embedding=null"):
        Embedding(Hashing(), texts=6)  # type: ignore[arg-type]


def test_recall_is_against_exact_search() -> None:
    (found,) = replace(HNSW, index=Hnsw(ef=25, exact_below=0)).run(1, 0)
    assert found.facts["recall"] == 1.0
    (found,) = replace(HNSW, index=Hnsw(m=2, ef_construction=1, ef=6, exact_below=0)).run(1, 0)
    assert 0 < found.facts["recall"] < 1.0


def test_rows_that_are_missing_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded = ingest.encoded
    monkeypatch.setattr(ingest, "encoded", lambda file: encoded(file)[:-1])
    with pytest.raises(DisagreementError, match=r"left other rows in: .*messages"):
        INGEST.run(1, 0)


def test_other_scores_are_found_out() -> None:
    ours, cosines = [(["a", "b"], [3.0, 2.0]), ([], [])], [(["a", "b"], [0.9, 0.8])]
    check_scores(ours, [[3.0, 2.0], []], 1e-9)
    check_scores(cosines, list(np.array([[0.9, 0.8]], np.float32)), 1e-5)
    for mine, wrong, tolerance in (
        *((ours, wrong, 1e-9) for wrong in ([[3.0, 1.0], []], [[3.0], []], [[3.0, 2.0]])),
        *((cosines, list(np.array(wrong, np.float32)), 1e-5) for wrong in ([[0.9, 0.79]], [[0.9]])),
    ):
        with pytest.raises(DisagreementError):
            check_scores(mine, wrong, tolerance)


def test_other_vectors_and_another_ranking_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = np.array([[0.6, 0.8]], np.float32)
    bare = [np.array([[0.0, 1.0], [1.2, 0.6]], np.float32)]  # their mean points to (.6, .8)
    embedding._check(ours, bare, Onnx("somewhere"))
    with pytest.raises(DisagreementError):
        embedding._check(ours, bare, Onnx("somewhere", pooling="cls"))
    rank = Ranking.rank
    monkeypatch.setattr(
        Ranking, "rank", lambda self, batch: rank(self, batch).head(3 if isinstance(self.source, Stopwatch) else 4)
    )
    with pytest.raises(DisagreementError):
        SHARE.run(1, 0)


class Slow:
    """A part that takes so many seconds longer whenever it is used: the source, a stage, or the embedder."""

    def __init__(self, part: Any, seconds: float) -> None:
        self._part = part
        self._seconds = seconds

    def __getattr__(self, name: str) -> Any:
        if name in ("candidates", "embed", "windows"):
            time.sleep(self._seconds)
        return getattr(self._part, name)

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        time.sleep(self._seconds)
        answer: pl.DataFrame = self._part(frame, batch)
        return answer


def test_ranking_is_the_stages_and_neither_source_nor_embedding() -> None:
    """The other parts take a few milliseconds here; a noisy machine may take more, and so the fakes take long."""
    parts = system()
    stages = {**parts.ranking.stages, "limit": Slow(parts.ranking.stages["limit"], 0.1)}
    slow = system(ranking=Ranking(Slow(parts.ranking.source, 0.4), stages), embedder=Slow(parts.embedder, 0.1))
    (found,) = RankingShare(slow, messages=8, queries=2).run(1, 0)
    assert 0.1 <= found.ours < 0.4
    # Windows and vectors of the documents and vectors of the queries: 0.3 s that are in the run, not in the share.
    assert found.ours <= found.bare - 0.4 - 0.3
    assert found.ratio == found.ours / found.bare
    assert 1 > found.facts["share_without_embedding"] >= found.ours / (found.bare - 0.3) > found.ratio


@pytest.mark.parametrize(
    ("choice", "change", "message"),
    [
        (INGEST, {"messages": 0}, "messages must be >= 1, got 0"),
        (INGEST, {"transaction_sizes": [5, 0]}, r"transaction_sizes must name sizes >= 1, got \[5, 0\]"),
        (HNSW, {"index": Hnsw()}, "documents must be >= 5000 for the graph to be asked, got 200"),
        (EXACT, {"k": 201}, r"k must be <= documents \(200\), got 201"),
        (BM25S, {"documents": 0}, "documents must be >= 1, got 0"),
        (SHARE, {"queries": 0}, "queries must be >= 1, got 0"),
    ],
)
def test_sizes_out_of_range_are_refused(choice: Any, change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        replace(choice, **change)
