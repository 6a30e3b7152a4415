"""Datasets, embedders, decays, stages and measures can be added from outside: one module and one YAML each.

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
FEW = ("measures.latency.queries=0", "cache=false", "means.resamples=5", "arms=none")
QUIET = ("tracking=none", "measures.latency.queries=0", "cache=false", "measures.retrieval.names=[recall@1]")


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Path:
    """The addition, in a folder that has nothing to do with the checkout."""
    return shutil.copytree(root / "tests" / "extension", tmp_path_factory.mktemp("outside") / "extension")


def lcm(outside: Path, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    """`lcm` in that folder, which is on Python's path as the project itself is; it ends with that exit code."""
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(outside), str(Path(__file__).parent.parent)]),
        "LCM_DATASETS_DIR": str(outside / "data"),
        "COLUMNS": "400",
    }
    added = ("trust=[mypkg]", f"hydra.searchpath=[file://{outside}/conf]") if arguments[0] != "regress" else ()
    command = [sys.executable, "-m", "pipelines.cli", arguments[0], *added, *arguments[1:]]
    done = subprocess.run(command, cwd=outside, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == code, done.stderr
    return done


def summary(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "summary.json").read_text())


def recall(measures: dict[str, Any]) -> float:
    """A mean over the three questions: the key, the anagram, the name."""
    return measures["recall@1"]["value"]


@pytest.mark.slow
def test_what_is_added_is_what_is_measured(outside: Path, tmp_path: Path) -> None:
    """With a setting of the added stage as written and changed, as two points beside a choice of ours."""
    added = ("dataset=my_dataset", "embedder=my_embedder", "ranking=my_ranking,hybrid")
    lcm(outside, "evaluate", "-m", *added, *QUIET, f"hydra.sweep.dir={tmp_path}/sweep")
    first, ours = [summary(tmp_path / "sweep" / one["folder"]) for one in summary(tmp_path / "sweep")["points"]]
    assert first["dataset"]["name"] == "my_dataset"
    assert (first["counts"]["documents"], first["counts"]["queries"]) == (4, 3)
    # Letters find the anagram, which shares no word with its question; words find the other two.
    assert recall(first["arms"]["dense"]) == 3 / 3
    assert recall(first["arms"]["bm25"]) == 2 / 3
    # The stage leaves out the name: `Bo: Rex` has two tokens.
    assert (recall(first["measures"]), recall(ours["measures"])) == (2 / 3, 3 / 3)
    lcm(outside, "evaluate", *ADDED, *QUIET, "ranking.stages.long_enough.min_tokens=2", f"hydra.run.dir={tmp_path}/run")
    assert recall(summary(tmp_path / "run")["measures"]) == 3 / 3


@pytest.mark.full
def test_an_added_decay_is_weighed(outside: Path, tmp_path: Path) -> None:
    """Half of a score is left of what is older than the last message."""
    scores = {}
    for days in (0, 99):
        folder = tmp_path / str(days)
        chosen = (
            "dataset=my_dataset",
            "embedder=hashing",
            "system=hybrid",
            "decay=my_decay",
            f"decay.fresh_days={days}",
        )
        lcm(outside, "evaluate", *chosen, *QUIET, "arms=none", f"hydra.run.dir={folder}")
        scores[days] = sorted(pl.read_parquet(folder / "run.parquet")["score"])
    assert scores[0][0] == scores[99][0] / 2


@pytest.mark.full
def test_what_is_misspelt_or_not_there_is_explained(outside: Path) -> None:
    misspelt = lcm(outside, "evaluate", *ADDED, *QUIET, "embedder.alphabt=xyz", code=2)
    assert misspelt.stderr.startswith("lcm: embedder.alphabt: no such key; did you mean embedder.alphabet")
    assert "my_ranking" in lcm(outside, "evaluate", "ranking=mine", code=2).stderr.partition("choose one of: ")[2]


@pytest.mark.full
def test_an_added_measure_is_seen_wherever_measures_are(outside: Path, tmp_path: Path) -> None:
    """In the table, the summary, the values by query, MLflow, a comparison and a study, with nothing else edited."""
    added = ("dataset=my_dataset", "embedder=my_embedder", "measures=[default,my_measure]")
    database, folder = f"sqlite:///{tmp_path}/mlflow.db", tmp_path / "run"
    done = lcm(outside, "evaluate", *added, *FEW, f"tracking.uri={database}", f"hydra.run.dir={folder}")
    assert "sessions@2" in done.stdout
    entry = summary(folder)["measures"]["sessions@2"]
    assert (entry["n"], 1 <= entry["value"] <= 2) == (3, True)
    values = pl.read_parquet(folder / "per_query.parquet").filter(measure="sessions@2")
    assert values["value"].mean() == entry["value"]
    (run,) = MlflowClient(database).search_runs(["1"])
    assert run.data.metrics["sessions_at_2"] == entry["value"]

    limits = "regress.measures={sessions@2: {tolerance: 0.1, detectable: 0.5}}"
    lcm(outside, "regress", str(folder), str(folder), limits, "tracking=none", f"into={tmp_path}/compared")
    verdict = pl.read_parquet(tmp_path / "compared" / "verdict.parquet")
    (row,) = verdict.filter(measure="sessions@2").iter_rows(named=True)
    assert (row["n"], row["baseline"], row["gate"]) == (3, entry["value"], "fine")

    study = ("study.trials=2", "study.objectives=[{measure: sessions@2, direction: maximize}]", "space=fusion")
    lcm(outside, "tune", *added, *study, *FEW, "tracking=none", f"hydra.run.dir={tmp_path}/study")
    assert pl.read_parquet(tmp_path / "study" / "study.parquet")["sessions@2"].len() == 2


@pytest.mark.full
def test_an_added_measure_of_time_changes_nothing_but_its_section(outside: Path, tmp_path: Path) -> None:
    """Beside latency: in the table and under `timing`, in no hash and no comparison, and as an objective."""
    added = ("dataset=my_dataset", "embedder=my_embedder", *FEW, "tracking=none")
    timed = "measures=[default,my_timing]"
    done = lcm(outside, "evaluate", *added, timed, f"hydra.run.dir={tmp_path}/timed")
    assert "my timing, ms" in done.stdout
    lcm(outside, "evaluate", *added, f"hydra.run.dir={tmp_path}/plain")
    ours, plain = summary(tmp_path / "timed"), summary(tmp_path / "plain")
    assert ours["config_hash"] == plain["config_hash"]
    assert ours["timing"]["my_timing_ms"]["embed_one"]["p50_ms"] > 0
    limits = "regress.measures={recall@5: {tolerance: 0.1, detectable: 0.5}}"
    lcm(outside, "regress", "trust=[mypkg]", f"{tmp_path}/timed", f"{tmp_path}/plain", limits, "tracking=none")

    objective = "study.objectives=[{measure: my_timing/embed_one_p50_ms, direction: minimize}]"
    study = (*added, timed, "study.trials=2", objective, "space=fusion", f"hydra.run.dir={tmp_path}/study")
    refused = lcm(outside, "tune", *study, "measures.my_timing.queries=0", code=2)
    assert "set measures.my_timing.queries=100" in refused.stderr
    lcm(outside, "tune", *study)
    assert pl.read_parquet(tmp_path / "study" / "study.parquet")["my_timing/embed_one_p50_ms"].min() > 0  # type: ignore[operator]
