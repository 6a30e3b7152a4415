"""A dataset, an embedder, a stage and a measure can be added from outside: one module and one YAML each, nothing else.

`tests/extension` is such an addition; docs/extending.md explains it.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from mlflow.tracking import MlflowClient

ADDED = ("dataset=my_dataset", "embedder=my_embedder", "ranking=my_ranking")
QUIET = ("tracking=none", "measures.latency.queries=0", "cache=false", "measures.retrieval.names=[recall@1]")


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Path:
    """The addition, in a folder that has nothing to do with the checkout."""
    return shutil.copytree(root / "tests" / "extension", tmp_path_factory.mktemp("outside") / "extension")


def lcm(outside: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`lcm` in that folder, which is on Python's path as the project itself is."""
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(outside), str(Path(__file__).parent.parent)]),
        "LCM_DATASETS_DIR": str(outside / "data"),
        "COLUMNS": "400",
    }
    command = [sys.executable, "-m", "pipelines.cli", *arguments]
    return subprocess.run(command, cwd=outside, env=environment, capture_output=True, text=True, timeout=120)


def evaluate(outside: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return lcm(outside, "evaluate", "trust=[mypkg]", f"hydra.searchpath=[file://{outside}/conf]", *QUIET, *arguments)


def summary(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "summary.json").read_text())


def recall(measures: dict[str, Any]) -> float:
    """A mean over the three questions: the key, the anagram, the name."""
    return measures["recall@1"]["value"]


@pytest.mark.full
def test_what_is_added_is_what_is_measured(outside: Path, tmp_path: Path) -> None:
    done = evaluate(outside, *ADDED, f"hydra.run.dir={tmp_path}/run")
    assert done.returncode == 0, done.stderr
    found = summary(tmp_path / "run")
    assert found["dataset"]["name"] == "my_dataset"
    assert (found["counts"]["documents"], found["counts"]["queries"]) == (4, 3)
    # Letters find the anagram, which shares no word with its question; words find the other two.
    assert recall(found["arms"]["dense"]) == 3 / 3
    assert recall(found["arms"]["bm25"]) == 2 / 3
    # The stage leaves out the name: `Bo: Rex` has two tokens.
    assert recall(found["measures"]) == 2 / 3


@pytest.mark.full
def test_a_setting_of_an_added_stage_can_be_changed(outside: Path, tmp_path: Path) -> None:
    done = evaluate(outside, *ADDED, "ranking.stages.long_enough.min_tokens=2", f"hydra.run.dir={tmp_path}/run")
    assert done.returncode == 0, done.stderr
    assert recall(summary(tmp_path / "run")["measures"]) == 3 / 3


@pytest.mark.full
def test_a_multirun_takes_what_is_added(outside: Path, tmp_path: Path) -> None:
    added = ("dataset=my_dataset", "embedder=my_embedder", "ranking=my_ranking,hybrid")
    done = evaluate(outside, "-m", *added, f"hydra.sweep.dir={tmp_path}/sweep")
    assert done.returncode == 0, done.stderr
    points = summary(tmp_path / "sweep")["points"]
    measured = [recall(summary(tmp_path / "sweep" / point["folder"])["measures"]) for point in points]
    assert measured == [2 / 3, 3 / 3]


@pytest.mark.full
def test_a_misspelt_key_of_what_is_added_is_explained(outside: Path) -> None:
    done = evaluate(outside, *ADDED, "embedder.alphabt=xyz")
    assert done.returncode == 2
    assert done.stderr.startswith("lcm: embedder.alphabt: no such key; did you mean embedder.alphabet")


@pytest.mark.full
def test_a_choice_that_is_not_there_is_told_what_is(outside: Path) -> None:
    done = evaluate(outside, "ranking=mine")
    assert done.returncode == 2
    assert "my_ranking" in done.stderr.partition("choose one of: ")[2]


@pytest.mark.full
def test_an_added_measure_is_seen_wherever_measures_are(outside: Path, tmp_path: Path) -> None:
    """In the table, the summary, the values by query, MLflow, a comparison and a study, with nothing else edited."""
    added = ("dataset=my_dataset", "embedder=my_embedder", "measures=[default,my_measure]")
    search = f"hydra.searchpath=[file://{outside}/conf]"
    quiet = ("measures.latency.queries=0", "cache=false", "means.resamples=5", "arms=none")
    database = f"sqlite:///{tmp_path}/mlflow.db"
    folder = tmp_path / "run"
    done = lcm(
        outside,
        "evaluate",
        "trust=[mypkg]",
        search,
        *added,
        *quiet,
        f"tracking.uri={database}",
        f"hydra.run.dir={folder}",
    )
    assert done.returncode == 0, done.stderr
    assert "sessions@2" in done.stdout
    entry = summary(folder)["measures"]["sessions@2"]
    assert (entry["n"], 1 <= entry["value"] <= 2) == (3, True)
    values = pl.read_parquet(folder / "per_query.parquet").filter(measure="sessions@2")
    assert values["value"].mean() == entry["value"]
    (run,) = MlflowClient(database).search_runs(["1"])
    assert run.data.metrics["sessions_at_2"] == entry["value"]

    limits = "regress.measures={sessions@2: {tolerance: 0.1, detectable: 0.5}}"
    into = tmp_path / "compared"
    done = lcm(outside, "regress", str(folder), str(folder), limits, "tracking=none", f"into={into}")
    assert done.returncode == 0, done.stderr
    (row,) = pl.read_parquet(into / "verdict.parquet").filter(measure="sessions@2").iter_rows(named=True)
    assert (row["n"], row["baseline"], row["gate"]) == (3, entry["value"], "fine")

    study = ("study.trials=2", "study.objectives=[{measure: sessions@2, direction: maximize}]", "space=fusion")
    done = lcm(
        outside,
        "tune",
        "trust=[mypkg]",
        search,
        *added,
        *study,
        *quiet,
        "tracking=none",
        f"hydra.run.dir={tmp_path}/study",
    )
    assert done.returncode == 0, done.stderr
    assert pl.read_parquet(tmp_path / "study" / "study.parquet")["sessions@2"].len() == 2


@pytest.mark.full
def test_an_added_measure_of_time_changes_nothing_but_its_section(outside: Path, tmp_path: Path) -> None:
    """Beside latency: in the table and under `timing`, in no hash and no comparison, and as an objective."""
    search, added = f"hydra.searchpath=[file://{outside}/conf]", ("dataset=my_dataset", "embedder=my_embedder")
    quiet = ("measures.latency.queries=0", "cache=false", "means.resamples=5", "arms=none", "tracking=none")
    timed = "measures=[default,my_timing]"
    done = lcm(outside, "evaluate", "trust=[mypkg]", search, *added, timed, *quiet, f"hydra.run.dir={tmp_path}/timed")
    assert done.returncode == 0, done.stderr
    assert "my_timing, ms" in done.stdout
    lcm(outside, "evaluate", "trust=[mypkg]", search, *added, *quiet, f"hydra.run.dir={tmp_path}/plain")
    ours, plain = summary(tmp_path / "timed"), summary(tmp_path / "plain")
    assert ours["config_hash"] == plain["config_hash"]
    assert ours["timing"]["my_timing_ms"]["embed_one"]["p50_ms"] > 0
    limits = "regress.measures={recall@5: {tolerance: 0.1, detectable: 0.5}}"
    done = lcm(outside, "regress", "trust=[mypkg]", f"{tmp_path}/timed", f"{tmp_path}/plain", limits, "tracking=none")
    assert done.returncode == 0, done.stderr

    objective = "study.objectives=[{measure: my_timing/embed_one_p50_ms, direction: minimize}]"
    study = ("study.trials=2", objective, "space=fusion", f"hydra.run.dir={tmp_path}/study")
    done = lcm(outside, "tune", "trust=[mypkg]", search, *added, timed, "measures.my_timing.queries=0", *quiet, *study)
    assert "set measures.my_timing.queries=100" in done.stderr
    done = lcm(outside, "tune", "trust=[mypkg]", search, *added, timed, *quiet, *study)
    assert done.returncode == 0, done.stderr
    assert pl.read_parquet(tmp_path / "study" / "study.parquet")["my_timing/embed_one_p50_ms"].min() > 0  # type: ignore[operator]
