"""What a study picks, beside the default: both are measured in the same study, and told with a verdict."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pipelines.steps import trials as trial
from tests.pipelines.conftest import QUICK, Lcm
from tests.pipelines.test_tune import folder, read, trials

SEARCHES_AWAY = (
    "space={system: {choices: [hybrid]}, fusion.dense_weight: {low: 0.0, high: 0.1}, fusion.lexical_weight: "
    "{choices: [1.0]}}"
)
"""A system of worse rankings than the default's."""


def test_a_default_outside_the_space_is_measured_beside_the_trials_and_a_worse_pick_is_told(lcm: Lcm) -> None:
    """As each run of them by itself has it, query by query."""
    quick = [one for one in QUICK if one != "system=hybrid"]
    done = lcm("tune", *quick, SEARCHES_AWAY, "study.trials=2")
    assert done.code == 0, done.stderr
    plain = lcm("evaluate", *quick, "measures.retention.budgets=[]", place="plain")
    best = read(done)["best"]
    assert (best["baseline"], best["is_default"], best["verdict"]) == ("default", True, "worse")
    kept = json.loads((folder(done) / "trials" / "default" / "summary.json").read_text())
    assert kept["measures"]["recall@10"]["value"] == plain.summary["measures"]["recall@10"]["value"]
    (row,) = best["picked"]
    picked = trials(done).filter(pl.col("is_best"))["recall@10"].item()
    assert row["difference"] == pytest.approx(picked - plain.summary["measures"]["recall@10"]["value"])
    assert row["low"] < row["difference"] < row["high"] < 0
    assert best["among"] == trials(done)["same_as"].null_count() == 2
    (held_out,) = best["held_out"]
    assert held_out["candidate"] == pytest.approx(read(done)["metrics"]["cross_validated/recall@10"])
    assert "verdict: worse\nRepeat: " in done.stdout
    assert "next: lcm compare runs/tune/study\nKept: " in done.stdout
    assert "lcm export" not in done.stdout
    page = (folder(done) / "study.md").read_text()
    assert "## Against the default\n\n- trial " in page
    compared = lcm("compare", str(folder(done)), "tracking=none", "report=false")
    assert compared.code == 0, compared.stderr
    assert "worse" in compared.stdout
    again = lcm("tune", *quick, SEARCHES_AWAY, "study.trials=2", "--json")
    assert json.loads(again.stdout)["best"] == best


def test_a_pick_that_is_better_is_offered_for_export(lcm: Lcm, tmp_path: Path) -> None:
    """Against a default that shows one document a query."""
    (tmp_path / "experiment").mkdir()
    (tmp_path / "experiment" / "one.yaml").write_text("# @package _global_\nranking: {stages: {limit: {n: 1}}}\n")
    searched = "space={ranking.stages.limit.n: {choices: [40]}}"
    done = lcm("tune", *QUICK, searched, "experiment=one", f"hydra.searchpath=[file://{tmp_path}]", "study.trials=1")
    assert done.code == 0, done.stderr
    best = read(done)["best"]
    assert best["verdict"] == "better"
    assert "next: lcm export runs/tune/study to=presets/study\n      lcm compare runs/tune/study\n" in done.stdout
    exported = lcm("export", "runs/tune/study", "to=presets/study", "tracking=none")
    assert exported.code == 0, exported.stderr


def test_where_the_default_is_best_it_is_picked_and_nothing_is_offered(lcm: Lcm) -> None:
    done = lcm("tune", *QUICK, "space={fusion.dense_weight: {choices: [0.7, 0.0]}}", "study.trials=1")
    assert done.code == 0, done.stderr
    best = read(done)["best"]
    assert (best["baseline"], best["folder"], best["verdict"]) == ("0", "0", "same")
    assert "against the default: no trial is better, so the default is picked" in done.stdout
    assert "next:" not in done.stdout
    assert not (folder(done) / "trials" / "default").exists()


def test_a_default_that_fails_is_told_and_the_study_stands(lcm: Lcm, monkeypatch: pytest.MonkeyPatch) -> None:
    made = trial.experiment_of

    def failing(config: Any, *others: Any, **named: Any) -> Any:
        if config.fusion.dense_weight == 0.7:
            raise RuntimeError("no such weight")
        return made(config, *others, **named)

    monkeypatch.setattr(trial, "experiment_of", failing)
    done = lcm("tune", *QUICK, "space={fusion.dense_weight: {low: 0.0, high: 0.5}}", "study.trials=2")
    assert done.code == 0, done.stderr
    assert "the default could not be measured beside the trials: no such weight" in done.stderr
    assert read(done)["best"] is None
