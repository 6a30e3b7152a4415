"""`lcm compare`: where sides come from, what is evaluated, and what is said."""

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from eval.tracking.mlflow_log import Mlflow
from lcm.errors import LcmError
from pipelines import cli, compare
from pipelines.steps import sides
from tests.eval.comparison.test_comparison import SCHEMA
from tests.pipelines.conftest import Lcm
from tests.support.run_folders import write_run_folder

GOOD = {"recall@10": [1.0] * 40, "tokens@10": [150.0] * 40}
BAD = {"recall@10": [0.0] * 20 + [1.0] * 20, "tokens@10": [100.0] * 40}
LIGHT = ("embedder=hashing", "arms=none", "tracking=none", "measures.latency.queries=0", "means.resamples=20")
QUICK = ("with=embedder=hashing", "means.resamples=20", "measures.retention.budgets=[]", "tracking=none")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that commands run in, with two runs."""
    monkeypatch.chdir(tmp_path)
    for name, values in (("good", GOOD), ("bad", BAD)):
        write_run_folder(tmp_path / name, values)
    return tmp_path


def record(folder: Path) -> Any:
    return json.loads((folder / "compare.json").read_text())


def test_two_runs_are_held_against_each_other(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compare.main(["bad", "good", "into=out", "tracking=none"]) == 0
    said = capsys.readouterr().out
    assert "good against bad\n" in said
    assert "1 good: better by recall@10; worse by tokens@10\n" in said
    assert said.endswith("Page: out/report.html\n")
    assert record(here / "out")["baseline"] == "bad"


def test_json_is_all_that_standard_output_has(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        cli.run(["compare", "bad", "--json", "good", "into=out", "by=tokens@10", f"tracking.uri=sqlite:///{here}/r.db"])
        == 0
    )
    told = json.loads(capsys.readouterr().out)
    jsonschema.validate(told, SCHEMA)
    assert told == record(here / "out")
    assert (told["by"], told["sides"][0]["name"]) == ("tokens@10", "bad")


def test_a_sweep_is_all_its_points_behind_what_they_were_held_against(here: Path) -> None:
    points = [("a", "fusion.k=1", None), ("b", "fusion.k=2", None), ("c", "fusion.k=3", "it failed")]
    for name, values in (("a", BAD), ("b", GOOD), ("base", BAD)):
        write_run_folder(here / "sweep" / name, values)
    told = {
        "kind": "sweep",
        "name": "sweep",
        "points": [dict(zip(("folder", "label", "error"), point, strict=True)) for point in points],
        "best": {
            "folder": "b",
            "label": "fusion.k=2",
            "measure": "recall@10",
            "value": 1.0,
            "baseline": "base",
            "is_default": True,
        },
    }
    (here / "sweep" / "summary.json").write_text(json.dumps(told))
    compare.main(["sweep", "into=out", "tracking=none"])
    assert [one["name"] for one in record(here / "out")["sides"]] == ["fusion.k=2", "default", "fusion.k=1"]
    assert record(here / "out")["baseline"] == "default"
    compare.main(["sweep/0", "sweep/1", "into=numbered", "tracking=none"])
    numbered = {one["name"]: Path(one["folder"]).name for one in record(here / "numbered")["sides"]}
    assert numbered == {"fusion.k=1": "a", "fusion.k=2": "b"}
    for number, why in (("2", "point 2, fusion.k=3, did not finish"), ("3", "sweep has points 0 to 2, no point 3")):
        with pytest.raises(LcmError, match=re.escape(why)):
            compare.main([f"sweep/{number}", "sweep/0", "into=refused", "tracking=none"])
    compare.main(["good", "sweep/a", "sweep", "into=beside", "tracking=none"])
    assert [one["name"] for one in record(here / "beside")["sides"]] == [
        "good", "fusion.k=2", "sweep/a", "default"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["into=out"], "name the sides: runs, a sweep, MLflow runs, presets, or systems such as default unified"),
        (["good"], "good names good alone: name another side, or a sweep"),
        (["good", "good/summary.json"], "good good/summary.json names good alone: name another side, or a sweep"),
        (["good", "nowhere/run"], "side nowhere/run: no such folder or file; name a run folder, an MLflow run id"),
        (["good", "champion"], "side champion: no such folder or file, and tracking=none knows no runs"),
        (["good", "bad", "by=MAP"], "MAP is not known of all of them: choose from: recall@10, tokens@10"),
        (["good", "bad", "measures=MAP"], "MAP is not known of all of them: choose from: recall@10, tokens@10"),
        (["good", "bad", "--fast"], "no such option: '--fast'; `lcm compare --help` tells more"),
        (["good", "bad", "by="], "by= has no value: write by=VALUE, or leave it out"),
        (["good", "bad", "cluster=speaker"], "unknown cluster 'speaker'; choose one of: none, workspace"),
        (["good", "bad", "into=good"], "into=good holds a complete run or comparison: name another folder"),
        (["good", "empty"], "empty is not a complete run: it has no summary.json"),
        (["good", "fusio=weighted_sum"], "fusio: no such key; did you mean fusion?"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_input_is_one_line_and_leaves_nothing(here: Path, arguments: list[str], message: str) -> None:
    (here / "empty").mkdir()
    with pytest.raises(LcmError, match=re.escape(message)) as caught:
        compare.main(["tracking=none", *arguments])
    assert "\n" not in str(caught.value)
    assert not (here / "out").exists()
    assert not list(here.glob("runs/20*/*"))


@pytest.mark.full
def test_what_is_no_run_yet_is_evaluated_once(lcm: Lcm, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []
    real = sides.evaluated

    def evaluated(config: Any, folder: Path, *rest: Any) -> Any:
        ran.append(folder.name)
        return real(config, folder, *rest)

    monkeypatch.setattr(sides, "evaluated", evaluated)
    first = lcm("compare", "default", "neighbours", "ranking.stages.limit.n=10,20", "into=one", *QUICK)
    assert first.code == 0, first.stderr
    assert len(ran) == 4
    names = {one["name"]: one for one in record(first.place / "one")["sides"]}
    assert set(names) == {"default", "system=neighbours", "ranking.stages.limit.n=10", "ranking.stages.limit.n=20"}
    again = lcm("compare", "ranking.stages.limit.n=10", "system=neighbours", "into=two", *QUICK)
    assert again.code == 0, again.stderr
    assert len(ran) == 4
    assert record(again.place / "two")["baseline"] == "ranking.stages.limit.n=10"


@pytest.mark.full
def test_a_side_is_evaluated_as_the_runs_beside_it_were(lcm: Lcm) -> None:
    """And a sweep's best point is what is exported."""
    swept = lcm(
        "evaluate",
        "-m",
        "ranking.stages.crowding.penalty=0.5,0.3",
        "dataset.workspaces=2",
        *LIGHT,
        "hydra.sweep.dir=sweep",
    )
    if swept.code:  # the sample has no such key: its evidence is another protocol then
        swept = lcm(
            "evaluate",
            "-m",
            "ranking.stages.crowding.penalty=0.5,0.3",
            "replay=per_turn",
            *LIGHT,
            "hydra.sweep.dir=sweep",
        )
    assert swept.code == 0, swept.stderr
    assert "next: lcm export sweep to=presets/sweep\n      lcm compare sweep\n" in swept.stdout
    best = json.loads((swept.place / "sweep" / "summary.json").read_text())["best"]
    assert f"its folder: sweep/{best['folder']}\n" in swept.stdout
    done = lcm("compare", "sweep", "system=neighbours embedder=hashing", "into=out", "tracking=none")
    assert done.code == 0, done.stderr
    assert record(done.place / "out")["baseline"] == "default"
    evaluated = record(done.place / "out")["sides"]
    assert len(evaluated) == 4
    (folder,) = [one["folder"] for one in evaluated if "neighbours" in one["name"]]
    assert "PerTurn" in (done.place / folder / "config.yaml").read_text()
    exported = lcm("export", "sweep", "to=preset", "target=yaml", "tracking=none")
    assert exported.code == 0, exported.stderr
    assert (
        f"The sweep's best point: {best['label']}, best by {best['measure']}: sweep/{best['folder']}" in exported.stdout
    )
    told = json.loads((exported.place / "preset" / "provenance.json").read_text())
    assert told["source"]["folder"] == f"sweep/{best['folder']}"


@pytest.mark.full
def test_runs_of_mlflow_are_sides_and_the_comparison_is_logged(here: Path) -> None:
    from mlflow.tracking import MlflowClient

    uri = f"sqlite:///{here / 'runs.db'}"
    ids = []
    for name, values in (("good", GOOD), ("bad", BAD)):
        write_run_folder(here / name, values, config_hash=name)
        (here / name / "config.yaml").write_text("a: 1\n")
        ids.append(re.search("MLflow run (\\w+)", Mlflow(uri=uri).log(here / name) or "")[1])  # type: ignore[index]
    assert compare.main([ids[1], f"runs:/{ids[0]}", "into=out", f"tracking.uri={uri}"]) == 0
    assert record(here / "out")["baseline"] == f"{ids[1]} (MLflow run {ids[1][:8]})"
    client = MlflowClient(tracking_uri=uri)
    experiment = client.get_experiment_by_name("lcm")
    assert experiment is not None
    runs = client.search_runs([experiment.experiment_id])
    (logged,) = [run for run in runs if run.data.tags.get("kind") == "comparison"]
    assert logged.data.metrics["1/recall_at_10.difference"] == 0.5
    assert {"report.html", "compare.png"} <= {one.path for one in client.list_artifacts(logged.info.run_id)}
