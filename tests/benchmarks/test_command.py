"""`python -m benchmarks`: everything is measured and kept, mistakes are one line, a missed target is told."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from benchmarks import vector_search
from benchmarks.__main__ import BAD_INPUT, composed, main
from benchmarks.timing import DisagreementError, Target
from tests.support.models import BuildModel

pytestmark = pytest.mark.usefixtures("no_full_collections")

SIZES: dict[str, dict[str, float]] = {
    "ingest": {"messages": 60},
    "embedding": {"texts": 3},
    "hnsw_search": {"documents": 100, "queries": 5, "k": 2, "dim": 16},
    "exact_search": {"documents": 100, "queries": 5, "dim": 16},
    "fts5_search": {"documents": 50, "queries": 5, "k": 5},
    "bm25s_search": {"documents": 50, "queries": 5, "k": 5},
    "ranking_share": {"messages": 30, "queries": 5},
    "cascade": {"documents": 250, "queries": 5, "k": 2, "dim": 80},
    "compaction_turns": {},
    "context_assembly": {"messages": 80, "budget_tokens": 3000},
    "full_text_grep": {"messages": 200, "queries": 5, "limit": 10},
}


def sized(sizes: dict[str, dict[str, float]]) -> list[str]:
    return [f"comparisons.{name}.{key}={value}" for name, ones in sizes.items() for key, value in ones.items()]


TINY = (
    *("repeats=1", "sizes=[50,100]", "hnsw.ef=8", "hnsw.exact_below=0", "transcript_mb=0.1", *sized(SIZES)),
    *("comparisons.ingest.transaction_sizes=[1,50]", "comparisons.compaction_turns.sizes=[60,100]"),
    *("growth.queries=5", "growth.k=3", "growth.dim=16"),
    *("live.sizes=[20,40]", "live.queries=3", "live.turns=2", "live.dim=16"),
    *(f"live.systems.{name}=null" for name in ("unified", "neighbours", "lancedb_pro", "lossless_claw")),
)
NOTHING = (
    *("embedder=hashing", "growth=null", "live=null", "memory=null"),
    *(f"comparisons.{name}=null" for name in SIZES),
)


def only(name: str) -> list[str]:
    """One tiny comparison and nothing else."""
    return [*TINY, *(override for override in NOTHING if override != f"comparisons.{name}=null")]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that a benchmark is asked from."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def figures(place: Path) -> dict[str, Any]:
    (file,) = place.rglob("benchmark.json")
    return json.loads(file.read_text())


@pytest.mark.full
def test_every_comparison_curve_and_peak_is_measured_and_kept(
    place: Path, build_model: BuildModel, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*TINY, "embedder=onnx", f"embedder.directory={build_model()}"]) == 0
    said, found = capsys.readouterr().out, figures(place)
    assert [entry["name"] for entry in found["comparisons"]] == [
        *("ingest, 1 a transaction", "ingest, 50 a transaction", "embedding", "hnsw search", "exact search"),
        *("fts5 search", "bm25s search", "ranking, of an uncached run", "cascade"),
        *("cluster compaction, 60 messages", "cluster compaction, 100 messages", "context assembly"),
        *("full-text grep by time", "full-text grep by relevance"),
    ]
    for entry in found["comparisons"]:
        assert entry["ratio"] == entry["ours"] / entry["bare"]
        assert math.isfinite(entry["ratio"])
        assert entry["name"].split(",")[0] in said
    assert [tuple(entry["sizes"]) for entry in found["growth"]] == 13 * [(50, 100)] + 20 * [(20, 40)]
    assert {entry["unit"] for entry in found["growth"]} == {"s", "MiB"}
    small, wanted = found["memory"]
    assert (small["transcript_bytes"] >> 14, wanted["transcript_bytes"] >> 14) == (4, 6)
    assert 20 < small["peak_mb"] < 2000
    assert found["environment"]["packages"]["numpy"]
    assert found["config"]["sizes"] == [50, 100]
    (folder,) = (place / "runs").glob("*/*")
    assert {path.name for path in folder.iterdir()} == {"benchmark.json", "benchmark.png"}
    assert str(folder.relative_to(place)) in said


def test_every_comparison_can_be_left_out_and_a_folder_that_holds_a_benchmark_is_not_written_to(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert set(composed([]).comparisons) == set(SIZES)
    assert main([*NOTHING, "to=here"]) == 0
    found = figures(place / "here")
    assert (found["comparisons"], found["growth"], found["memory"]) == ([], [], [])
    assert main([*NOTHING, "to=here"]) == BAD_INPUT
    assert "here holds a benchmark already: name another folder" in capsys.readouterr().err


@pytest.mark.parametrize(("limit", "strict", "code"), [(0, "false", 0), (0, "true", 1), (1e9, "true", 0)])
def test_a_missed_target_is_told_and_only_strictness_makes_it_a_failure(
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    limit: float,
    strict: str,
    code: int,
) -> None:
    monkeypatch.setattr(vector_search, "TARGET", Target("at most", limit))
    assert main([*only("hnsw_search"), f"strict={strict}"]) == code
    missed = ["hnsw search"] if limit == 0 else []
    assert figures(place)["missed"] == missed
    assert ("missed: hnsw search" in capsys.readouterr().out) == bool(missed)


def test_sides_that_disagree_are_a_defect(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_search, "_TOLERANCE", -1.0)
    with pytest.raises(DisagreementError, match="the index and the bare search gave different scores"):
        main(only("hnsw_search"))
    assert not list(place.rglob("benchmark.json"))


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("repeat=3", "repeat"),
        ("repeats=0", "repeats must be >= 1, got 0"),
        ("seed=-1", "seed must be >= 0, got -1"),
        ("sizes=[1]", "sizes must be different numbers of documents >= 2, got [1]"),
        ("live.sizes=[20,20]", "sizes must be different numbers of messages >= 2, got [20, 20]"),
        ("transcript_mb=0", "transcript_mb must be > 0, got 0"),
        ("comparisons.ingest.messages=0", "messages must be >= 1, got 0"),
        ("embedder=hashing", "embedder must run an ONNX model"),
    ],
)
def test_a_mistake_is_told_before_anything_is_measured(
    place: Path, capsys: pytest.CaptureFixture[str], override: str, told: str
) -> None:
    assert main([override]) == BAD_INPUT
    assert told in capsys.readouterr().err
    assert not list(place.iterdir())
