"""Each comparison: both sides answer alike, and a side that does not is found out."""

import math
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from eval.benchmark import embedding, ingest
from eval.benchmark.embedding import Embedding
from eval.benchmark.ingest import Ingest
from eval.benchmark.ranking_share import RankingShare
from eval.benchmark.search import check_scores
from eval.benchmark.text_search import Bm25sSearch, Fts5Search
from eval.benchmark.timing import Comparison, DisagreementError
from eval.benchmark.vector_search import ExactSearch, HnswSearch
from eval.stopwatch import Stopwatch
from lcm.protocols.retrieval import Batch
from lcm.retrieval.decay.none import NoDecay
from lcm.retrieval.decay.weibull import Weibull
from lcm.retrieval.embedder.hashing import Hashing
from lcm.retrieval.embedder.onnx import Onnx
from lcm.retrieval.ranking.pipeline import Ranking
from lcm.retrieval.ranking.stages.decay_boost import DecayBoost
from lcm.retrieval.ranking.stages.diversity import Diversity
from lcm.retrieval.ranking.stages.importance_weight import ImportanceWeight
from lcm.retrieval.ranking.stages.length_normalization import LengthNormalization
from lcm.retrieval.ranking.stages.limit import Limit
from lcm.retrieval.ranking.stages.min_score import MinScore
from lcm.retrieval.ranking.stages.noise_filter import NoiseFilter
from lcm.retrieval.ranking.stages.not_expired import NotExpired
from lcm.retrieval.ranking.stages.recency_boost import RecencyBoost
from lcm.retrieval.ranking.stages.time_decay import TimeDecay
from lcm.retrieval.reranker.cosine import Cosine
from lcm.retrieval.text_index.bm25s import Bm25s
from lcm.retrieval.text_index.fts5 import Fts5
from lcm.retrieval.vector_index.hnsw import Hnsw
from lcm.store.store import Store
from lcm.token_estimator.utf16_units import Utf16Units
from tests.support.models import BuildModel
from tests.support.numpy_twins import stages as numpy_stages
from tests.support.numpy_twins.fused import fused
from tests.support.numpy_twins.post_fusion import DiversityWalk, OneByOne, PostFusion
from tests.support.workspaces import system, transcript

INGEST = Ingest(Utf16Units(), messages=60, transaction_sizes=[1, 25])
HNSW = HnswSearch(Hnsw(ef=8, exact_below=0), documents=200, queries=20, k=3, dim=16)
EXACT = ExactSearch(documents=200, queries=20, k=3, dim=16)
FTS5 = Fts5Search(Fts5(), documents=60, queries=10, k=5)
BM25S = Bm25sSearch(Bm25s(), documents=60, queries=10, k=5)
SHARE = RankingShare(system(), messages=40, queries=5)
STAGES = {
    "min_score": MinScore(),
    "not_expired": NotExpired(),
    "reranker": Cosine(window=35),
    "recency_boost": RecencyBoost(),
    "importance_weight": ImportanceWeight(),
    "length_normalization": LengthNormalization(),
    "time_decay": TimeDecay(),
    "decay": DecayBoost(Weibull(recency_lifts=True)),
    "hard_min_score": MinScore(0.35),
    "noise_filter": NoiseFilter(),
    "diversity": Diversity(),
    "limit": Limit(12),
}
POST_FUSION = PostFusion(STAGES, documents=400, queries=30, candidates=40, dim=16)
ONE_BY_ONE = OneByOne(STAGES, documents=400, queries=6, candidates=40, dim=16)
DIVERSITY = DiversityWalk(Diversity(), documents=400, queries=7, candidates=60, dim=16, batch_sizes=[1, 5])


def figures(comparison: Comparison) -> list[float]:
    return [comparison.ours, comparison.bare, comparison.ratio, comparison.ratio_low, comparison.ratio_high]


@pytest.mark.full
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
        (POST_FUSION, ["post-fusion"]),
        (replace(POST_FUSION, stages={**STAGES, "time_decay": None, "reranker": None}), ["post-fusion"]),
        (ONE_BY_ONE, ["post-fusion, one by one"]),
        (DIVERSITY, ["diversity, 1 a batch", "diversity, 5 a batch"]),
    ],
)
def test_a_comparison_agrees_and_gives_finite_ratios(choice: Any, names: list[str]) -> None:
    found = choice.run(2, 0)
    assert [comparison.name for comparison in found] == names
    for comparison in found:
        assert all(math.isfinite(figure) and figure > 0 for figure in figures(comparison))
        assert comparison.ratio == comparison.ours / comparison.bare
        assert comparison.ratio_low <= comparison.ratio_high
        assert len(comparison.rounds.ours) == len(comparison.rounds.bare) == 2


@pytest.mark.parametrize("settings", [{}, {"pooling": "cls", "layer_norm": True, "truncate_dim": 8}])
def test_the_bare_session_gives_the_embedders_vectors(build_model: BuildModel, settings: dict[str, Any]) -> None:
    embedder = Onnx(str(build_model()), max_tokens=64, overlap_tokens=8, document_prefix="a: ", **settings)
    (found,) = Embedding(embedder, texts=6).run(1, 0)
    assert found.facts["texts"] > 6  # letters are tokens there: texts have several windows
    assert found.facts["max_tokens"] <= 64
    assert found.ratio == found.ours / found.bare


def test_an_embedder_without_a_model_cannot_be_compared_with_its_bare_session() -> None:
    with pytest.raises(ValueError, match=r"^embedder must run an ONNX model .* comparisons.embedding=null"):
        Embedding(Hashing(), texts=6)  # type: ignore[arg-type]


def test_recall_is_against_exact_search() -> None:
    (found,) = replace(HNSW, index=Hnsw(ef=25, exact_below=0)).run(1, 0)
    assert found.facts["recall"] == 1.0
    (found,) = replace(HNSW, index=Hnsw(m=2, ef_construction=1, ef=6, exact_below=0)).run(1, 0)
    assert 0 < found.facts["recall"] < 1.0


def test_the_raw_rows_are_those_of_the_store(tmp_path: Path) -> None:
    with Store(tmp_path / "a.db") as store:
        store.ingest(transcript(name="first"), Utf16Units())
        store.ingest(transcript(("one", "two"), name="second"), Utf16Units())
    first, second = ingest.encoded(tmp_path / "a.db")
    counts = [[(statement.split()[2], len(rows)) for statement, rows in inserts] for inserts in (first, second)]
    tables = ("conversations", "messages", "message_parts", "context_items")
    assert counts == [list(zip(tables, sizes, strict=True)) for sizes in ((1, 8, 8, 8), (1, 2, 2, 2))]
    assert "tool_call_id" not in " ".join(statement for statement, _ in first)  # no row has one


def test_rows_that_are_missing_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded = ingest.encoded
    monkeypatch.setattr(ingest, "encoded", lambda file: encoded(file)[:-1])
    with pytest.raises(DisagreementError, match=r"left other rows in: .*messages"):
        INGEST.run(1, 0)


def test_other_cosines_are_found_out() -> None:
    ours = [(["a", "b"], [0.9, 0.8])]
    check_scores(ours, list(np.array([[0.9, 0.8]], np.float32)), 1e-5)
    for wrong in ([[0.9, 0.79]], [[0.9]]):
        with pytest.raises(DisagreementError):
            check_scores(ours, list(np.array(wrong, np.float32)), 1e-5)


def test_other_scores_are_found_out() -> None:
    ours = [(["a", "b"], [3.0, 2.0]), ([], [])]
    check_scores(ours, [[3.0, 2.0], []], 1e-9)
    for wrong in ([[3.0, 1.0], []], [[3.0], []], [[3.0, 2.0]]):
        with pytest.raises(DisagreementError):
            check_scores(ours, wrong, 1e-9)


def test_every_stage_after_fusion_finds_work() -> None:
    """A stage that changed nothing would be compared with nothing."""
    made = fused(documents=400, queries=30, candidates=40, dim=16, seed=0)
    frame = made.frame
    for name, stage in STAGES.items():
        after = stage(frame, made.batch)
        assert not after.select("document_id", "score").equals(frame.select("document_id", "score")), name
        frame = after


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"limit": Limit(11)}, "different orders"),
        ({"diversity": Diversity(0.99)}, "different orders"),
        ({"noise_filter": NoiseFilter(denials=False)}, "different orders"),
        ({"decay": DecayBoost(Weibull())}, "different"),
        ({"importance_weight": ImportanceWeight(0.7 + 1e-7)}, "different scores"),
    ],
)
def test_a_loop_of_other_stages_is_found_out(
    monkeypatch: pytest.MonkeyPatch, wrong: dict[str, Any], words: str
) -> None:
    rank = numpy_stages.rank
    monkeypatch.setattr(numpy_stages, "rank", lambda rows, _: rank(rows, list((STAGES | wrong).values())))
    with pytest.raises(DisagreementError, match=words):
        POST_FUSION.run(1, 0)


def test_a_walk_with_another_threshold_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    walk = numpy_stages.walk
    monkeypatch.setattr(numpy_stages, "walk", lambda vectors, _: walk(vectors, 0.99))
    with pytest.raises(DisagreementError, match="different orders"):
        DIVERSITY.run(1, 0)


def test_a_query_that_ranks_otherwise_alone_is_found_out() -> None:
    def touchy(frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        return frame.head(30)  # of all rows, not of each query's

    with pytest.raises(DisagreementError, match="at once and one by one"):
        replace(ONE_BY_ONE, stages={"touchy": touchy}).run(1, 0)


def test_the_time_of_a_query_alone_is_among_the_facts() -> None:
    (found,) = ONE_BY_ONE.run(2, 0)
    whole_ms = [1000 / rate for rate in found.rounds.bare]
    assert 0 < found.facts["p50_ms"] <= found.facts["p95_ms"]
    assert found.facts["p50_ms"] <= sum(whole_ms)  # of two rounds: no median is above twice the mean


@pytest.mark.parametrize("stage", [DecayBoost(NoDecay()), Ranking(system().ranking.source)])
def test_what_has_no_twin_in_numpy_cannot_be_compared(stage: Any) -> None:
    with pytest.raises(ValueError, match=r"^stages must come after fusion, a decay be Weibull's, .* got "):
        replace(POST_FUSION, stages={"other": stage})


def test_other_vectors_are_found_out() -> None:
    ours = np.array([[0.6, 0.8]], np.float32)
    bare = [np.array([[0.0, 1.0], [1.2, 0.6]], np.float32)]  # their mean points to (.6, .8)
    embedding._check(ours, bare, Onnx("somewhere"))
    with pytest.raises(DisagreementError):
        embedding._check(ours, bare, Onnx("somewhere", pooling="cls"))


def test_another_ranking_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
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


def slow_share(source: float, stage: float, embedder: float) -> Comparison:
    parts = system()
    stages = {**parts.ranking.stages, "limit": Slow(parts.ranking.stages["limit"], stage)}
    slow = system(ranking=Ranking(Slow(parts.ranking.source, source), stages), embedder=Slow(parts.embedder, embedder))
    (found,) = RankingShare(slow, messages=8, queries=2).run(1, 0)
    return found


def test_ranking_is_the_stages_and_not_the_source() -> None:
    """The other parts take a few milliseconds here; a noisy machine may take more, and so the fakes take long."""
    found = slow_share(source=0.4, stage=0.1, embedder=0)
    assert 0.1 <= found.ours < 0.4
    assert found.bare >= 0.5
    assert found.ours <= found.bare - 0.4
    assert found.ratio == found.ours / found.bare


def test_the_share_without_embedding_leaves_out_windows_and_vectors() -> None:
    found = slow_share(source=0, stage=0.1, embedder=0.1)
    # Windows and vectors of the documents and vectors of the queries: 0.3 s that are in the run, not in the share.
    assert found.bare >= 0.4
    assert found.facts["share_without_embedding"] >= found.ours / (found.bare - 0.3) > found.ratio
    assert found.facts["share_without_embedding"] < 1


@pytest.mark.parametrize(
    ("choice", "change", "message"),
    [
        (INGEST, {"messages": 0}, "messages must be >= 1, got 0"),
        (INGEST, {"transaction_sizes": [5, 0]}, r"transaction_sizes must name sizes >= 1, got \[5, 0\]"),
        (HNSW, {"documents": 63}, "documents must be >= 64 for the graph to be asked, got 63"),
        (HNSW, {"index": Hnsw()}, "documents must be >= 5000 for the graph to be asked, got 200"),
        (EXACT, {"k": 201}, r"k must be <= documents \(200\), got 201"),
        (EXACT, {"queries": 0}, "queries must be >= 1, got 0"),
        (FTS5, {"k": 61}, r"k must be <= documents \(60\), got 61"),
        (BM25S, {"documents": 0}, "documents must be >= 1, got 0"),
        (SHARE, {"queries": 0}, "queries must be >= 1, got 0"),
        (POST_FUSION, {"candidates": 0}, "candidates must be >= 1, got 0"),
        (POST_FUSION, {"documents": 39}, r"candidates must be <= documents, whole pairs of them \(38\), got 40"),
        (ONE_BY_ONE, {"dim": 0}, "dim must be >= 1, got 0"),
        (DIVERSITY, {"batch_sizes": [3, 0]}, r"batch_sizes must name sizes >= 1, got \[3, 0\]"),
    ],
)
def test_sizes_out_of_range_are_refused(choice: Any, change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        replace(choice, **change)
