"""`lcm benchmark`: everything is measured and kept, mistakes are one line, a missed target is told."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from eval.benchmark import vector_search
from eval.benchmark.timing import Target
from pipelines import benchmark
from pipelines.cli import BAD_INPUT, INTERNAL_ERROR, PIPELINES
from pipelines.config import composition
from tests.conftest import ROOT
from tests.lcm.retrieval.embedder.conftest import BuildModel, build_model  # noqa: F401 - a fixture
from tests.pipelines.conftest import Lcm

TINY = (
    "repeats=1",
    "sizes=[50,100]",
    "hnsw.ef=8",
    "hnsw.exact_below=0",
    "comparisons.ingest.messages=60",
    "comparisons.ingest.transaction_sizes=[1,50]",
    "comparisons.embedding.texts=3",
    "comparisons.hnsw_search.documents=100",
    "comparisons.hnsw_search.queries=5",
    "comparisons.hnsw_search.k=2",
    "comparisons.hnsw_search.dim=16",
    "comparisons.exact_search.documents=100",
    "comparisons.exact_search.queries=5",
    "comparisons.exact_search.dim=16",
    "comparisons.fts5_search.documents=50",
    "comparisons.fts5_search.queries=5",
    "comparisons.fts5_search.k=5",
    "comparisons.bm25s_search.documents=50",
    "comparisons.bm25s_search.queries=5",
    "comparisons.bm25s_search.k=5",
    "comparisons.ranking_share.messages=30",
    "comparisons.ranking_share.queries=5",
    "comparisons.cascade.documents=250",
    "comparisons.cascade.queries=5",
    "comparisons.cascade.k=2",
    "comparisons.cascade.dim=80",
    "comparisons.compaction_turns.sizes=[60,100]",
    "comparisons.context_assembly.messages=80",
    "comparisons.context_assembly.budget_tokens=3000",
    "comparisons.full_text_grep.messages=200",
    "comparisons.full_text_grep.queries=5",
    "comparisons.full_text_grep.limit=10",
    "growth.queries=5",
    "growth.k=3",
    "growth.dim=16",
    "live.sizes=[20,40]",
    "live.queries=3",
    "live.turns=2",
    "live.dim=16",
    *(f"live.systems.{name}=null" for name in ("unified", "neighbours", "lancedb_pro", "lossless_claw")),
    "transcript_mb=0.1",
)
NAMES = (
    "ingest",
    "embedding",
    "hnsw_search",
    "exact_search",
    "fts5_search",
    "bm25s_search",
    "ranking_share",
    "cascade",
    "compaction_turns",
    "context_assembly",
    "full_text_grep",
)
IN_NUMPY = ("--config-dir", f"{ROOT}/tests/support/numpy_twins/conf", "+formulas=numpy")
TINY_IN_NUMPY = (
    "comparisons.post_fusion.documents=100",
    "comparisons.post_fusion.queries=5",
    "comparisons.post_fusion.dim=16",
    "comparisons.one_by_one.documents=100",
    "comparisons.one_by_one.queries=5",
    "comparisons.one_by_one.dim=16",
    "comparisons.diversity.documents=100",
    "comparisons.diversity.queries=5",
    "comparisons.diversity.candidates=20",
    "comparisons.diversity.dim=16",
    "comparisons.gating.texts=12",
    "comparisons.two_pass.documents=100",
    "comparisons.two_pass.queries=5",
    "comparisons.two_pass.candidates=20",
)
NOTHING = (
    *("embedder=hashing", "growth=null", "live=null", "memory=null"),
    *(f"comparisons.{name}=null" for name in NAMES),
)


def only(name: str) -> list[str]:
    """One tiny comparison and nothing else."""
    return [*TINY, *(override for override in NOTHING if override != f"comparisons.{name}=null")]


def figures(place: Path) -> dict[str, Any]:
    (file,) = place.rglob("benchmark.json")
    return json.loads(file.read_text())


@pytest.mark.full
def test_every_comparison_curve_and_peak_is_measured_and_kept(
    lcm: Lcm,
    build_model: BuildModel,  # noqa: F811
) -> None:
    finished = lcm("benchmark", *TINY, "embedder=onnx", f"embedder.directory={build_model()}")
    assert finished.code == 0, finished.stderr
    found = figures(finished.place)
    assert [entry["name"] for entry in found["comparisons"]] == [
        "ingest, 1 a transaction",
        "ingest, 50 a transaction",
        "embedding",
        "hnsw search",
        "exact search",
        "fts5 search",
        "bm25s search",
        "ranking, of an uncached run",
        "cascade",
        "cluster compaction, 60 messages",
        "cluster compaction, 100 messages",
        "context assembly",
        "full-text grep by time",
        "full-text grep by relevance",
    ]
    for entry in found["comparisons"]:
        assert entry["ratio"] == entry["ours"] / entry["bare"]
        assert math.isfinite(entry["ratio"])
        assert entry["name"] in finished.stdout
    assert [tuple(entry["sizes"]) for entry in found["growth"]] == 13 * [(50, 100)] + 20 * [(20, 40)]
    assert {entry["unit"] for entry in found["growth"]} == {"s", "MiB"}
    small, wanted = found["memory"]
    assert (small["transcript_bytes"] >> 14, wanted["transcript_bytes"] >> 14) == (4, 6)
    assert 20 < small["peak_mb"] < 2000
    assert found["environment"]["packages"]["numpy"]
    assert found["config"]["sizes"] == [50, 100]
    (folder,) = (finished.place / "runs").glob("*/*")
    assert {path.name for path in folder.iterdir()} == {"benchmark.json", "benchmark.png", "config.yaml"}
    assert str(folder.relative_to(finished.place)) in finished.stdout


@pytest.mark.full
def test_formulas_in_numpy_are_compared_by_a_choice_from_outside(lcm: Lcm) -> None:
    finished = lcm("benchmark", *NOTHING, *IN_NUMPY, *TINY_IN_NUMPY)
    assert finished.code == 0, finished.stderr
    assert [entry["name"] for entry in figures(finished.place)["comparisons"]] == [
        "post-fusion",
        "post-fusion, one by one",
        "diversity, 1 a batch",
        "diversity, 100 a batch",
        "gating",
        "two-pass",
        "two-pass, without words",
    ]


def test_every_comparison_can_be_left_out(lcm: Lcm) -> None:
    assert set(composition.composed([], "benchmark")["comparisons"]) == set(NAMES)
    finished = lcm("benchmark", *NOTHING)
    assert finished.code == 0, finished.stderr
    found = figures(finished.place)
    assert (found["comparisons"], found["growth"], found["memory"]) == ([], [], [])


@pytest.mark.full
@pytest.mark.parametrize(("limit", "strict", "code"), [(0, "false", 0), (0, "true", 1), (1e9, "true", 0)])
def test_a_missed_target_is_told_and_only_strictness_makes_it_a_failure(
    lcm: Lcm, monkeypatch: pytest.MonkeyPatch, limit: float, strict: str, code: int
) -> None:
    monkeypatch.setattr(vector_search, "TARGET", Target("at most", limit))
    finished = lcm("benchmark", *only("hnsw_search"), f"strict={strict}")
    assert finished.code == code
    missed = ["hnsw search"] if limit == 0 else []
    assert figures(finished.place)["missed"] == missed
    assert ("missed: hnsw search" in finished.stdout) == bool(missed)


def test_sides_that_disagree_are_a_defect(lcm: Lcm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_search, "_TOLERANCE", -1.0)
    finished = lcm("benchmark", *only("hnsw_search"))
    assert finished.code == INTERNAL_ERROR
    assert "the index and the bare search gave different scores" in finished.stderr
    assert not list(finished.place.rglob("benchmark.json"))


def test_a_number_of_a_stage_is_tuned_for_both_sides(lcm: Lcm) -> None:
    tuned = ("lancedb_pro.stages.limit.n=3", "weibull.recency_lifts=true", "lancedb_pro.stages.recency_boost=null")
    others = [f"comparisons.{name}=null" for name in ("one_by_one", "diversity", "gating", "two_pass")]
    finished = lcm("benchmark", *NOTHING, *IN_NUMPY, *TINY_IN_NUMPY, *others, *tuned)
    assert finished.code == 0, finished.stderr
    (entry,) = figures(finished.place)["comparisons"]
    assert 2 < entry["facts"]["returned"] <= 3


def test_a_folder_that_holds_a_benchmark_is_not_written_to(lcm: Lcm) -> None:
    named = "hydra.run.dir=here"
    assert lcm("benchmark", *NOTHING, named).code == 0
    finished = lcm("benchmark", *NOTHING, named)
    assert finished.code == BAD_INPUT
    assert "here holds a benchmark already: name another folder" in finished.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--bogus"], ["'--bogus'", "lcm benchmark --help"]),
        (["-m", "repeats=1,2"], ["one run at a time", "leave -m out"]),
        (["repeat=3"], ["repeat: no such key", "did you mean repeats?"]),
        (["dataset=sample"], ["dataset: no such key", "`lcm benchmark --cfg job` shows every key"]),
        (["dataset=sample", "arms=none"], ["no such key"]),
        (["--cfg", "job", "bogus=1"], ["bogus: no such key", "`lcm benchmark --cfg job` shows every key"]),
        (["embedder=minlm"], ["embedder=minlm", "choose one of: hashing, minilm,"]),
        (["repeats=0"], ["repeats must be >= 1, got 0"]),
        (["repeats=abc"], ["repeats must be a whole number, got 'abc'"]),
        (["seed=-1"], ["seed must be >= 0, got -1"]),
        (["sizes=5"], ["sizes must be a list, each a whole number, got 5"]),
        (["sizes=[1]"], ["sizes must be different numbers of documents >= 2, got [1]"]),
        (["live.sizes=[20,20]"], ["live.sizes must be different numbers of messages >= 2, got [20, 20]"]),
        (["transcript_mb=0"], ["transcript_mb must be > 0, got 0"]),
        (["strict=maybe"], ["strict must be true or false, got 'maybe'"]),
        (["hnsw.ef=0"], ["hnsw.ef must be >= 1, got 0"]),
        (["comparisons.ingest.messages=0"], ["comparisons.ingest.messages must be >= 1, got 0"]),
        (["embedder=hashing"], ["embedder must run an ONNX model", "comparisons.embedding=null"]),
    ],
)
def test_a_mistake_is_one_line_with_key_value_and_remedy(
    lcm: Lcm, arguments: Sequence[str], words: Sequence[str]
) -> None:
    finished = lcm("benchmark", *arguments)
    assert finished.code == BAD_INPUT
    assert finished.stderr.count("\n") == 1, finished.stderr
    assert finished.stdout == ""
    for word in words:
        assert word in finished.stderr
    assert [path for path in finished.place.rglob("*") if path.is_file()] == []


def test_help_names_the_keys(lcm: Lcm) -> None:
    finished = lcm("benchmark", "--help")
    assert finished.code == 0
    for word in ("lcm benchmark [KEY=VALUE ...]", "repeats=3", "transcript_mb", "strict=true", "growth=null"):
        assert word in finished.stdout
    assert "benchmark" in PIPELINES


def test_the_ingest_whose_memory_is_watched_is_that_of_the_command_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    commands: list[list[str]] = []
    monkeypatch.setattr(benchmark, "peak_of", lambda command, folder: (commands.append(command), (1.0, 2.0))[1])
    assert benchmark.peak_of_ingest(tmp_path / "talk.jsonl") == (1.0, 2.0)
    assert commands[0][1:] == ["-m", "pipelines.cli", "ingest", str(tmp_path / "talk.jsonl"), "into=workspace.db"]
