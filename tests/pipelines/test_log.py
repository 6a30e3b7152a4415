"""`lcm log`, and what other commands log: folders of every kind in one MLflow database, and runs found again there."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from eval.run import read_summary
from eval.tracking.registry import fetch_run, logged_run, promote, register, run_of_alias
from pipelines import cli
from tests.support.looked_at import copy_of

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("mlflow")]


@pytest.fixture
def uri(logged: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(logged)
    return f"sqlite:///{logged / 'mlflow.db'}"


def runs(uri: str) -> list[Any]:
    from mlflow.tracking import MlflowClient

    client = MlflowClient(uri)
    return list(client.search_runs([client.get_experiment_by_name("lcm").experiment_id]))


def of_kind(uri: str, kind: str) -> Any:
    (run,) = [run for run in runs(uri) if run.data.tags.get("kind") == kind]
    return run


def artifacts(uri: str, run: Any) -> set[str]:
    from mlflow.tracking import MlflowClient

    return {one.path for one in MlflowClient(uri).list_artifacts(run.info.run_id)}


def test_a_comparison_and_a_gate_are_logged_with_their_verdicts(uri: str) -> None:
    comparison = of_kind(uri, "comparison")
    sides = json.loads(Path("compared/compare.json").read_text())["sides"]
    value = {one["is_baseline"]: one["measures"]["recall@10"]["value"] for one in sides}
    told = [one for name, one in comparison.data.metrics.items() if name.endswith("/recall_at_10.difference")]
    assert told == pytest.approx([value[False] - value[True]])
    assert {"report.html", "compare.png"} <= artifacts(uri, comparison)
    gate = of_kind(uri, "regression")
    assert gate.data.tags["gate"] == "fine"
    assert gate.data.metrics["recall_at_10.difference"] == 0
    assert gate.data.params["alpha"] == "0.05"
    assert "report.xml" in artifacts(uri, gate)


@pytest.mark.parametrize(("kind", "below"), [("sweep", 3), ("study", 4)])
def test_points_and_trials_are_logged_below_their_sweep_or_study(uri: str, kind: str, below: int) -> None:
    (folder,) = Path("runs").glob({"sweep": "sweeps/*", "study": "tune/study"}[kind])
    parent = of_kind(uri, kind)
    nested = [run for run in runs(uri) if run.data.tags.get("mlflow.parentRunId") == parent.info.run_id]
    assert len(nested) == below
    assert parent.data.metrics["best/recall_at_10"] == read_summary(folder)["metrics"]["best/recall@10"]


def test_a_study_is_logged_with_its_trials_and_nothing_twice(uri: str, tmp_path: Path) -> None:
    study = copy_of(Path("runs/tune/study"), tmp_path / "study")
    elsewhere = f"sqlite:///{tmp_path}/other.db"
    for _ in range(2):
        assert cli.run(["log", str(study), f"tracking.uri={elsewhere}"]) == 0
        parent = of_kind(elsewhere, "study")
        nested = [run for run in runs(elsewhere) if run.data.tags.get("mlflow.parentRunId") == parent.info.run_id]
        assert (len(nested), len(runs(elsewhere))) == (4, 5)


def test_a_compaction_is_logged_by_how_much_smaller_its_stores_are(uri: str) -> None:
    (run,) = [run for run in runs(uri) if run.info.run_name.startswith("compaction into out · ")]
    assert run.info.run_name.endswith(" times smaller")
    assert run.data.metrics["count/messages"] > 100
    assert run.data.metrics["compression_ratio"] > 1
    assert (run.data.params["compaction.leaf_chunk_tokens"], run.data.params["triggers"]) == ("500", "per_turn")
    assert "report.parquet" in artifacts(uri, run)


def test_a_preset_is_logged_whole(uri: str, tmp_path: Path) -> None:
    run_id = logged_run(uri, Path("preset"))
    assert run_id is not None
    fetched = fetch_run(uri, run_id, tmp_path / "fetched")
    kept = {str(path.relative_to("preset")) for path in Path("preset").rglob("*") if path.is_file()}
    got = {str(path.relative_to(fetched)) for path in fetched.rglob("*") if path.is_file()}
    assert got == kept - {"mlflow.json"}
    assert {"system/turned.yaml", "experiment/turned.yaml", "decay/turned.yaml"} < got


def test_runs_and_aliases_are_sides(uri: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = (str(logged_run(uri, Path(name))) for name in ("first", "second"))
    tracking = (f"tracking.uri={uri}", "report=false")
    assert cli.run(["compare", "--json", second, f"runs:/{first}", f"into={tmp_path}/both", *tracking]) == 0
    told = json.loads(capsys.readouterr().out)  # which says nothing of what was logged
    assert told["baseline"] == f"{second} (MLflow run {second[:8]})"
    promote(uri, "unified", register(uri, "unified", first))
    asked = ["regress", "champion", first, f"into={tmp_path}/gate", "regress.resamples=1000", *tracking]
    assert cli.run(asked) == 0
    told = json.loads((tmp_path / "gate" / "report.json").read_text())
    assert told["baseline"]["name"] == f"champion (MLflow run {first[:8]})"


def test_a_run_is_exported_registered_and_fetched_by_its_alias(
    uri: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = [f"tracking.uri={uri}", "target=yaml"]
    assert cli.run(["export", "second", f"to={tmp_path}/ours", "register=memory", "alias=champion", *told]) == 0
    assert re.search("memory@champion is version 1", capsys.readouterr().out)
    provenance = json.loads((tmp_path / "ours" / "provenance.json").read_text())
    summary = read_summary(Path("second"))
    for key in ("commit", "dataset", "config_hash", "measures", "interval"):
        assert provenance[key] == summary[key]
    run_id = run_of_alias(uri, "memory", "champion")
    fetched = fetch_run(uri, run_id, tmp_path / "fetched")
    assert (fetched / "per_query.parquet").is_file()
    assert (fetched / "presets" / "ours" / "system" / "ours.yaml").is_file()
    assert cli.run(["export", "memory@champion", f"to={tmp_path}/again", *told]) == 0
    again = json.loads((tmp_path / "again" / "provenance.json").read_text())
    assert again["config_hash"] == provenance["config_hash"]
    assert again["source"]["run_id"] == run_id
    preset = ["export", "embedder=hashing", f"to={tmp_path}/made", "register=memory", "alias=champion", *told]
    assert cli.run(preset) == 0  # of overrides: a run of its own, the next version
    made = fetch_run(uri, run_of_alias(uri, "memory", "champion"), tmp_path / "fetched_too")
    assert read_summary(made)["kind"] == "preset"
    assert (made / "system" / "made.yaml").is_file()
