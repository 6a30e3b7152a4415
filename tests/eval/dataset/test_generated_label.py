"""Who reads a number learns beside it that nobody asked the questions."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from eval.dataset.dataset import generated_label
from eval.experiment.outcome import write_run
from eval.measures.retrieval import Retrieval
from eval.regression.regression import Regression
from eval.regression.report import JUNIT, MARKDOWN, write_regression
from eval.run import read_summary
from eval.study.folder import study_page, summary_of
from eval.study.report import StudyReport
from eval.study.results import PointResult, generated_labels
from eval.study.selection import FinishedTrial
from eval.study.settings import Objective
from eval.study.sweep import TABLE, write_sweep
from eval.tracking import entry
from pipelines.regress import show_regression
from pipelines.views.runs import show_points, show_run
from tests.support.experiments import outcome
from tests.support.run_folders import side
from tests.support.small_talk import dataset
from tests.support.workspaces import system

HOW = "known_item, successor"
LABEL = f"generated questions: {HOW}"
IDENTITY = {"name": "toy", "protocol": "as is", "digest": "a" * 64, "generated": HOW}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run over generated questions."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    asked = replace(dataset(), generated=HOW)
    found = outcome(asked, system(), {"retrieval": Retrieval(names=["recall@10"])})
    write_run(folder, found, asked, {}, "", {})
    return folder


def test_a_run_tells_it_in_summary_tables_and_tags(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    by_people = dataset().identity()
    assert "generated" not in by_people
    assert generated_label(by_people) == ""
    assert "generated_questions" not in entry.dataset_tags(by_people)
    summary = read_summary(run)
    assert summary["dataset"]["generated"] == HOW
    assert entry.tags(summary)["generated_questions"] == HOW
    show_run(summary, run, {})
    said = capsys.readouterr().out
    assert f"mean over judged queries; {LABEL} [95% bootstrap interval]" in said
    assert f"the system, by category; {LABEL}" in said


def test_a_sweep_tells_it_and_of_which_points(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    summary = read_summary(run)
    asked = {**summary, "dataset": dataset().identity()}
    points = [PointResult(name, f"limit={name}", {"limit": name}, summary) for name in ("1", "2")]
    show_points(points, tmp_path)
    assert f"the system, by point; {LABEL}" in capsys.readouterr().out
    write_sweep(tmp_path, points, ["recall@10"], [["limit=1"], ["limit=2"]], Counter(), None)
    assert f"**{LABEL}**" in (tmp_path / TABLE).read_text()
    assert entry.tags(read_summary(tmp_path))["generated_questions"] == HOW
    mixed = [*points, PointResult("3", "limit=3", summary=asked), PointResult("4", "limit=4", error="no model")]
    assert generated_labels(mixed) == f"{LABEL} (points 0, 1)"
    assert generated_labels(mixed[2:]) == ""


def test_a_comparison_tells_it_to_people_machines_and_mlflow(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sides = [side(tmp_path / name, {"recall@10": [1.0] * 10}, dataset=IDENTITY) for name in ("before", "after")]
    limits = {"recall@10": {"tolerance": 0.01, "detectable": 0.05}}
    found = Regression(measures=limits, resamples=100).compare(*sides)
    summary = write_regression(tmp_path / "kept", found, {}, "", datetime(2026, 1, 31, tzinfo=UTC))
    assert entry.tags(summary)["generated_questions"] == HOW
    assert LABEL in (tmp_path / "kept" / MARKDOWN).read_text().replace("\\_", "_")
    assert HOW in (tmp_path / "kept" / JUNIT).read_text()
    show_regression(found, tmp_path / "kept" / MARKDOWN)
    assert f"after against before, paired by query; {LABEL}" in capsys.readouterr().out


def test_a_study_tells_it_on_its_page_and_to_mlflow() -> None:
    picked = FinishedTrial(0, {"limit": 1}, (0.5,), {}, None)
    objectives = (Objective("recall@10", "maximize"),)
    report = StudyReport("first", IDENTITY, objectives, (), (), (picked,), picked, (picked,), None, {})
    assert f"**{LABEL.capitalize()}.**" in study_page(report, (), ())
    assert entry.tags(summary_of(report, {}, None))["generated_questions"] == HOW
