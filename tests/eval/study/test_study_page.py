"""The page of a study tells what its trials changed, and why they are equal where they are."""

from dataclasses import replace

import pytest

from eval.study.folder import study_page
from eval.study.report import StudyReport
from eval.study.selection import FinishedTrial
from eval.study.settings import Objective

TRIALS = tuple(FinishedTrial(n, {"compaction": "lossless"}, (value,), {}) for n, value in enumerate((0.25, 0.5)))
REPORT = StudyReport(
    name="first",
    dataset={"name": "tiny", "protocol": "tiny", "digest": "0"},
    objectives=(Objective("retained@1000", "maximize"),),
    folds=(),
    trials=(),
    complete=TRIALS,
    picked=TRIALS[1],
    front=TRIALS[1:],
    validation=None,
    importances={},
)


def test_trials_stand_best_first_with_the_measures_that_they_change() -> None:
    told = {0: {"ratio": 2.0, "depth_0": 4, "expansions@1000": None}, 1: {"ratio": 3.5, "depth_0": 6}}
    lines = study_page(replace(REPORT, told=told), (), ()).splitlines()
    start = lines.index("## What the trials changed") + 2
    assert lines[start] == "| trial | retained@1000 | ratio | depth_0 | expansions@1000 |"
    assert lines[start + 2 : start + 4] == ["| 1 | 0.5000 | 3.500 | 6 | - |", "| 0 | 0.2500 | 2.000 | 4 | - |"]


def test_equal_trials_are_told() -> None:
    page = study_page(replace(REPORT, notes=("all 2 trials are equal", "no context was compacted")), (), ())
    assert page.endswith("- all 2 trials are equal\n- no context was compacted\n")
    assert "What the trials changed" not in page


@pytest.mark.parametrize(
    ("measure", "folds", "why"),
    [
        ("retained@1000", ("a",), "judged queries are of a single workspace"),
        ("latency/p50", ("a", "b"), "the first objective, latency/p50, is a time, which is not known by folds"),
        ("retained@1000", ("a", "b"), "retained@1000, the first objective, judges queries of a single fold"),
    ],
)
def test_why_nothing_was_held_out_is_told(measure: str, folds: tuple[str, ...], why: str) -> None:
    page = study_page(replace(REPORT, objectives=(Objective(measure, "maximize"),), folds=folds), (), ())
    assert f"There is none: {why}." in page


@pytest.mark.parametrize(
    ("different", "why"),
    [(3, "3 different configurations are complete; below 30"), (30, "all trials are equally good.")],
)
def test_why_nothing_is_told_to_be_important_is_told(different: int, why: str) -> None:
    trials = [FinishedTrial(n, {}, (0.5,), {}) for n in range(different)]
    repeated = FinishedTrial(different, {}, (0.5,), {}, 0)
    assert f"It is not told: {why}" in study_page(replace(REPORT, complete=(*trials, repeated)), (), ())
    assert "It is not told" not in study_page(replace(REPORT, importances={"fusion": 1.0}), (), ())
