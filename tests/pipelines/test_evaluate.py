"""`lcm evaluate`: what a run keeps, that equal runs are equal to the bit, and that haste does no harm."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from eval.dataset.dataset import Dataset
from eval.dataset.sample import Sample
from eval.measures.coverage import with_near_duplicates
from eval.report.run_tables import served_lines
from tests.pipelines.conftest import QUICK, Finished, Lcm
from tests.support.looked_at import CONTROLLED, NO_CONTEXTS

PARQUET = ("run", "documents", "per_query", "measures")
OF_CONTROLS = ("control_run", "control_per_query")
FILES = {
    "SHA256SUMS",
    "config.yaml",
    "environment.json",
    "report.html",
    "summary.json",
    "compression.parquet",
    "decisions.parquet",
    "queries.parquet",
    "summary_quality.parquet",
    *(f"{name}.parquet" for name in (*PARQUET, *OF_CONTROLS)),
}
ROOT = Path(__file__).parents[2]


def refuse(constant: str) -> None:
    raise AssertionError(f"summary.json holds {constant}, which is not JSON")


def strict(folder: Path) -> dict[str, Any]:
    """The summary, read as strict JSON."""
    return json.loads((folder / "summary.json").read_text(), parse_constant=refuse)


def numbers(folder: Path) -> dict[str, Any]:
    """All that must be the same in two equal runs of one state of the code."""
    parquet = {name: (folder / f"{name}.parquet").read_bytes() for name in (*PARQUET, *OF_CONTROLS)}
    return {
        **strict(folder),
        "timing": None,
        "timing_sha256": None,
        "commit": None,
        "sha256": None,  # of the commit too
        "config.yaml": (folder / "config.yaml").read_text(),
        **parquet,
    }


def test_a_run_folder_holds_the_whole_run(evaluated: Finished) -> None:
    folder = evaluated.folder
    assert {path.name for path in folder.iterdir()} == FILES
    summary = strict(folder)
    assert list(summary) == [
        "kind", "definitions", "commit", "dataset", "config_hash", "overrides", "changed", "counts", "served",
        "decisions", "compression", "summary_quality", "incidents", "notes", "flags", "interval",
        "measures", "arms", "categories", "timing", "sha256", "timing_sha256",
    ]  # fmt: skip
    assert set(summary["dataset"]) == {"name", "protocol", "digest"}
    assert set(summary["arms"]) == {"bm25", "dense", "last_n", "random", "oracle", "whole_history"}
    assert set(summary["measures"]["recall@10"]) == {"value", "n", "low", "high"}
    assert set(summary["timing"]) == {"latency_ms", "seconds"}
    assert summary["timing"]["latency_ms"]["total"]["n"] == 3
    environment = json.loads((folder / "environment.json").read_text())
    assert environment["commit"] == summary["commit"]
    assert environment["packages"]["polars"] == pl.__version__


def test_the_parquet_files_hold_what_the_summary_sums_up(evaluated: Finished) -> None:
    folder = evaluated.folder
    run, documents, values, means = (pl.read_parquet(folder / f"{name}.parquet") for name in PARQUET)
    assert run.columns == [
        "arm", "workspace_id", "query_id", "document_id", "rank", "score", "index_tier", "stands_for", "related",
    ]  # fmt: skip
    assert run.group_by("query_id", maintain_order=True).agg(pl.col("rank").min())["rank"].unique().to_list() == [1]
    controls = pl.read_parquet(folder / "control_run.parquet")
    found = {name for each in (run, controls) for name in with_near_duplicates(each)["document_id"]}
    assert found == set(documents["document_id"])
    per_query = values.filter(measure="recall@10")["value"]
    said = strict(folder)["measures"]["recall@10"]
    assert said["n"] == len(per_query) == 91
    assert said["value"] == pytest.approx(sum(per_query) / 91, abs=1e-12)
    assert said["low"] < said["value"] < said["high"]
    kept = means.filter(arm="system", group="all", measure="recall@10")
    assert kept["value"].item() == said["value"]


def test_how_concentrated_answers_are_is_told_of_every_arm(evaluated: Finished) -> None:
    summary, run = strict(evaluated.folder), pl.read_parquet(evaluated.folder / "run.parquet")
    assert list(summary["served"]) == ["system", *summary["arms"]]
    told = summary["served"]["system"]
    of_each = run.group_by("workspace_id", "document_id").len()["len"]
    assert (told["places"], told["documents"], told["k"]) == (len(run), len(of_each), run["rank"].max())
    assert told["top_10_share"] == of_each.top_k(10).sum() / len(run)
    (line,) = served_lines(summary)
    assert line in evaluated.stdout


def test_unjudged_queries_are_counted_and_not_averaged(evaluated: Finished) -> None:
    counts = evaluated.summary["counts"]
    assert (counts["queries"], counts["judged_queries"], counts["unjudged_queries"]) == (102, 91, 11)
    assert evaluated.summary["measures"]["MRR"]["n"] == 91
    assert "91 of 102 queries are judged" in evaluated.stdout


def change_sample(monkeypatch: pytest.MonkeyPatch, change: Callable[[Dataset], Dataset]) -> None:
    load: Callable[[Sample], Dataset] = Sample.load
    monkeypatch.setattr(Sample, "load", lambda self: change(load(self)))


def judged_only(dataset: Dataset, n: int) -> Dataset:
    """The dataset with judgements for its first n judged queries alone."""
    few = dataset.qrels["query_id"].unique(maintain_order=True).head(n)
    return replace(dataset, qrels=dataset.qrels.filter(pl.col("query_id").is_in(few.to_list())))


def by_session_from(dataset: Dataset, n: int) -> Dataset:
    """The dataset with judgements by message for its first n judged queries, for the others by session alone."""
    messages = judged_only(dataset, n)
    session_of = {m.message_id: m.session_id for t in dataset.transcripts for m in t.messages}
    others = dataset.qrels.join(messages.qrels, on="query_id", how="anti")
    sessions = others.select(
        "query_id", pl.col("message_id").replace_strict(session_of).alias("session_id"), "relevance"
    )
    return replace(messages, session_qrels=sessions.unique(maintain_order=True))


def test_one_judgement_makes_no_number_that_is_not_json(lcm: Lcm, monkeypatch: pytest.MonkeyPatch) -> None:
    """One judged query has a mean and no interval."""
    change_sample(monkeypatch, lambda dataset: judged_only(dataset, 1))
    measures = strict(lcm("evaluate", *QUICK, NO_CONTEXTS).folder)["measures"]
    assert measures["MRR"]["n"] == 1
    assert all(entry["low"] is None and entry["high"] is None for entry in measures.values())


def columns(finished: Finished) -> list[str]:
    """Of the table of arms."""
    header = next(line for line in finished.stdout.splitlines() if line.startswith("┃ arm"))
    return [cell.strip() for cell in header.strip("┃").split("┃")]


def test_judgements_of_messages_and_of_sessions_each_have_their_n(lcm: Lcm, monkeypatch: pytest.MonkeyPatch) -> None:
    change_sample(monkeypatch, lambda dataset: by_session_from(dataset, 40))
    finished = lcm("evaluate", *QUICK, NO_CONTEXTS)
    measures = finished.summary["measures"]
    assert (measures["recall@10"]["n"], measures["session.recall@10"]["n"], measures["tokens@10"]["n"]) == (40, 91, 91)
    assert finished.summary["counts"]["judged_queries"] == 91
    (row,) = [line for line in finished.stdout.splitlines() if line.startswith("│ system")]
    cells = [cell.strip() for cell in row.strip("│").split("│")]
    assert cells[:2] == ["system", "40"]  # the n of most of its means
    of_all = ("session.recall@10", "session.recall@5", "tokens@10")
    for name, cell in zip(columns(finished)[2:], cells[2:], strict=True):
        assert cell.endswith(" n=91") == (name in of_all), name


def test_where_only_sessions_are_judged_their_measures_are_shown(lcm: Lcm, monkeypatch: pytest.MonkeyPatch) -> None:
    change_sample(monkeypatch, lambda dataset: by_session_from(dataset, 0))
    shown = columns(lcm("evaluate", *QUICK, NO_CONTEXTS))
    assert shown[:4] == ["arm", "n", "session.recall@10", "session.nDCG@10"]
    assert not {name for name in shown if name.startswith(("recall", "nDCG", "MRR"))}


def forget_half(cache: Path) -> None:
    (path,) = (cache / "embeddings").glob("*.sqlite")
    with closing(sqlite3.connect(path)) as connection, connection:
        before = connection.execute("SELECT count(*) FROM embedding").fetchone()[0]
        connection.execute("DELETE FROM embedding WHERE rowid % 2 = 0")
        after = connection.execute("SELECT count(*) FROM embedding").fetchone()[0]
    assert 0 < after < before


def other_numbers(folder: Path, first: Path) -> set[str]:
    """What differs between two runs that were asked the same, but for the cache that their configurations name."""
    ours, theirs = numbers(folder), numbers(first)
    return {name for name in theirs if name != "config.yaml" and ours[name] != theirs[name]}


def test_equal_runs_are_equal_to_the_bit_whatever_the_cache_holds(
    lcm: Lcm, evaluated: Finished, tmp_path: Path
) -> None:
    """The one that all look at found an empty cache."""
    shutil.copytree(evaluated.place.parent / "cache", tmp_path / "cache")
    forget_half(tmp_path / "cache")
    partly = lcm("evaluate", *CONTROLLED, "report=false", place="partly warm").folder
    assert other_numbers(partly, evaluated.folder) == set()
    without = lcm("evaluate", *CONTROLLED, "report=false", "cache=false", place="none").folder
    assert other_numbers(without, evaluated.folder) == set()


def start(place: Path, *arguments: str) -> subprocess.Popen[str]:
    place.mkdir(exist_ok=True)
    return subprocess.Popen(
        [sys.executable, "-m", "pipelines.cli", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=place,
        env=os.environ | {"LCM_CACHE_DIR": str(place / "cache"), "PYTHONPATH": str(ROOT)},
    )


@pytest.mark.slow
@pytest.mark.xdist_group("mlflow")
def test_two_runs_at_once_share_cache_folder_and_database(tmp_path: Path) -> None:
    quick = [override for override in QUICK if not override.startswith("tracking")]
    both = [start(tmp_path, "evaluate", *quick) for _ in range(2)]
    outputs = [process.communicate(timeout=120) for process in both]
    assert [process.returncode for process in both] == [0, 0], outputs
    for stdout, stderr in outputs:
        steps = ("loading the dataset: ", "replaying: ", "measuring: ", "logging: ")  # told on a busy machine
        assert [line for line in stderr.splitlines() if not line.startswith(steps)] == []
        assert "INFO" not in stdout
        assert stdout.splitlines()[-1].startswith("Logged: MLflow run ")
    first, second = sorted(path.parent for path in (tmp_path / "runs").rglob("summary.json"))
    assert numbers(first) == numbers(second)
    with closing(sqlite3.connect(tmp_path / "mlflow.db")) as connection:
        logged = connection.execute("SELECT run_uuid, status FROM runs").fetchall()
    assert {run_id for run_id, _ in logged} == {
        receipt["run_id"] for folder in (first, second) for receipt in json.loads((folder / "mlflow.json").read_text())
    }
    assert [status for _, status in logged] == ["FINISHED", "FINISHED"]
