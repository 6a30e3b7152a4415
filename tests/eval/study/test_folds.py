"""Folds: parts of a dataset whose results, put together, are those of the whole."""

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from eval.dataset.dataset import Dataset
from eval.dataset.sample import Sample
from eval.experiment.experiment import Experiment
from eval.experiment.outcome import Outcome, write_run
from eval.measures.names import SYSTEM_ARM
from eval.measures.retrieval import judged_queries, workspace_of_query
from eval.study.selection import Fold, folds_of, sums_by_fold, values_by_query
from eval.study.settings import Objective
from lcm.errors import LcmError
from pipelines.config import composition
from pipelines.steps.point import experiment_of

UNCACHED = ("means.resamples=50", "cache=false")
OVERRIDES = ("embedder=hashing", "measures.latency.queries=0", "measures.retention.budgets=[1000]", *UNCACHED)


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return Sample().load()


@pytest.fixture(scope="module")
def experiment(dataset: Dataset) -> Experiment:
    return experiment_of(composition.composed(OVERRIDES), dataset)


@pytest.fixture(scope="module")
def whole(experiment: Experiment) -> Outcome:
    return experiment.run(lambda *_: None)


def test_what_is_found_by_folds_is_what_the_whole_run_finds(experiment: Experiment, whole: Outcome) -> None:
    """By one a workspace: folds of several are given the same workspaces, in another order."""
    dataset = experiment.evaluator.dataset
    results = {
        one.workspace_id: one
        for fold in reversed(folds_of(dataset, "workspace"))
        for one in experiment.part(fold.workspaces).results(lambda *_: None)
    }
    found = experiment.outcome([results[workspace] for workspace in dataset.workspaces])
    for name in ("run", "documents", "decisions", "values", "means"):
        assert_frame_equal(getattr(found, name), getattr(whole, name), check_exact=True)
    for name in ("counts", "incidents", "flags", "sections"):
        assert getattr(found, name) == getattr(whole, name)


def test_every_workspace_is_in_one_fold_and_folds_have_about_as_many_queries(dataset: Dataset) -> None:
    for wanted in ("workspace", 2, 3):
        folds = folds_of(dataset, wanted)
        inside = [workspace for fold in folds for workspace in fold.workspaces]
        assert sorted(inside) == sorted({transcript.workspace_id for transcript in dataset.transcripts})
        assert len(folds) == (4 if wanted == "workspace" else wanted)
    # 44, 26, 15 and 6 judged queries: the largest against the others
    asked = workspace_of_query(dataset).join(judged_queries(dataset), on="query_id", how="semi")["workspace_id"]
    sizes = [sum(workspace in fold.workspaces for workspace in asked) for fold in folds_of(dataset, 2)]
    assert sorted(sizes) == [44, 26 + 15 + 6]


def test_there_are_no_more_folds_than_judged_workspaces(dataset: Dataset) -> None:
    with pytest.raises(LcmError, match=r"study.folds=5: sample has 4 workspaces with judged queries"):
        folds_of(dataset, 5)
    first = dataset.transcripts[0].workspace_id
    assert [fold.workspaces for fold in folds_of(dataset.part([first]), "workspace")] == [(first,)]


def test_sums_by_fold_make_the_mean_of_the_whole(experiment: Experiment, whole: Outcome, tmp_path: Path) -> None:
    dataset = experiment.evaluator.dataset
    folder = tmp_path / "run"
    summary = write_run(folder, whole, dataset, {}, "", {})
    objectives = [Objective("recall@10", "maximize"), Objective("latency/total_p50_ms", "minimize")]
    folds = folds_of(dataset, "workspace")
    found = sums_by_fold(values_by_query(folder), objectives, folds)
    assert set(found) == {"recall@10"}
    total, n = (sum(pair[i] for pair in found["recall@10"].values()) for i in (0, 1))
    assert n == len(judged_queries(dataset))
    assert total / n == pytest.approx(summary["measures"]["recall@10"]["value"])
    own = whole.values.filter(arm=SYSTEM_ARM, measure="recall@10").join(workspace_of_query(dataset), on="query_id")
    fold = folds[0]
    assert found["recall@10"][fold.name][0] == pytest.approx(
        own.filter(pl.col("workspace_id").is_in(fold.workspaces))["value"].sum()
    )


def test_a_workspace_that_nobody_judges_joins_a_fold(dataset: Dataset) -> None:
    last = dataset.transcripts[-1].workspace_id
    asked = [query.query_id for query in dataset.queries if query.workspace_id == last]
    unjudged = replace(dataset, qrels=dataset.qrels.filter(~pl.col("query_id").is_in(asked)))
    folds = folds_of(unjudged, "workspace")
    assert len(folds) == 3
    assert sum(last in fold.workspaces for fold in folds) == 1
    assert all(isinstance(fold, Fold) and fold.name != last for fold in folds)
