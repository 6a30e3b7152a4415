"""Rungs: growing shares of what is judged, drawn by the seed, and the pruner that stops trials there."""

from dataclasses import replace
from math import ceil
from pathlib import Path

import optuna
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optuna.trial import TrialState

from eval.dataset.dataset import Dataset
from eval.measures.names import SYSTEM_ARM
from eval.study.queue import pruner
from eval.study.selection import FACTOR, Rung, rungs_of
from eval.study.settings import Study
from lcm.errors import LcmError
from lcm.records.query import Query
from pipelines.config import building, composition
from pipelines.steps.point import experiment_of
from tests.eval.cache.test_frame_cache_experiments import configured
from tests.eval.tiny import tiny
from tests.support.workspaces import minute, transcript


def judged_dataset(sizes: list[int]) -> Dataset:
    """A conversation for each number, with as many questions, each judged by one message."""
    talks = [transcript(name=f"talk {i}", workspace_id=f"workspace {i}") for i in range(len(sizes))]
    queries = [
        Query(f"{i} {number}", "kitchen goats", minute(600), workspace_id=f"workspace {i}", category="weak")
        for i, size in enumerate(sizes)
        for number in range(size)
    ]
    judged = ((one.query_id, f"talk {one.query_id.split()[0]}:0") for one in queries)
    return tiny(talks, queries, judged, name="small")


def asked(rung: Rung) -> set[str]:
    return {query.query_id for query in rung.sample.queries}


@given(
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=12).map(lambda sizes: [128, *sizes]), seed=st.integers(0, 9)
)
def test_a_rung_asks_its_share_of_the_queries_from_ever_more_conversations(sizes: list[int], seed: int) -> None:
    dataset = judged_dataset(sizes)
    first, second = rungs_of(dataset, seed)
    n = sum(sizes)
    assert (first.name, first.step, second.name, second.step) == ("1/16", 1, "1/4", FACTOR)
    assert set(first.part.workspaces) <= set(second.part.workspaces)
    for rung, parts in ((first, 16), (second, 4)):
        replayed = set(rung.part.workspaces)
        assert ceil(n / parts) <= len(asked(rung)) <= ceil(n / parts) + len(replayed)
        assert {query.workspace_id for query in rung.sample.queries} == replayed
        assert set(rung.sample.qrels["query_id"]) == asked(rung)
        of_replayed = {query.query_id for query in dataset.queries if query.workspace_id in replayed}
        assert {query.query_id for query in rung.part.queries} == of_replayed
        assert rung.part.digest == rung.sample.digest == dataset.digest


def test_rungs_are_drawn_by_the_seed_among_judged_queries() -> None:
    dataset = judged_dataset([40] * 8)
    drawn = [asked(rungs_of(dataset, seed)[0]) for seed in (0, 0, 1)]
    assert drawn[0] == drawn[1] != drawn[2]
    few = judged_dataset([64])
    judged = {query.query_id for query in few.queries[:40]}
    half = replace(few, qrels=few.qrels.filter(pl.col("query_id").is_in(list(judged))))
    assert all(asked(rung) <= judged for rung in rungs_of(half, 0))


def test_few_queries_have_one_rung_and_fewer_none() -> None:
    (rung,) = rungs_of(judged_dataset([10, 20]), 0)
    assert (rung.name, rung.step) == ("1/4", 1)
    with pytest.raises(LcmError, match="small has 28 in all: fewer than 29 tell too little"):
        rungs_of(judged_dataset([28]), 0)


def test_one_trial_in_four_goes_on() -> None:
    settings = Study([{"measure": "recall@10", "direction": "maximize"}], pruner="halving")
    study = optuna.create_study(direction="maximize", pruner=pruner(settings))
    values = [0.5, 0.4, 0.6, 0.3, 0.55, 0.2, 0.1, 0.58]
    stopped = []
    for value in values:
        trial = study.ask()
        trial.report(value, 1)
        stopped.append(trial.should_prune())
        if stopped[-1]:
            study.tell(trial, state=TrialState.PRUNED)
        else:
            study.tell(trial, value)
    # The best so far goes on; of eight the best two do, and 0.58 is one of them.
    assert stopped == [False, True, False, True, True, True, True, False]


def test_a_rung_finds_what_a_whole_run_finds_for_its_queries(tmp_path: Path) -> None:
    sample = building.build(composition.composed([]), "dataset").load()
    experiment = experiment_of(configured(tmp_path, "measures.retention.budgets=[200]"), sample)
    (rung,) = rungs_of(sample, 0)
    measures = ("recall@10", "retained@200")
    found = {  # before anything is kept
        measure: experiment.sampled(rung.part, rung.sample, measure, lambda *_: None) for measure in measures
    }
    whole, again = (experiment.run(lambda *_: None).values.filter(arm=SYSTEM_ARM) for _ in range(2))
    for measure, values in found.items():
        theirs = whole.filter(pl.col("query_id").is_in(list(asked(rung))), measure=measure)
        assert len(values) == len(asked(rung))
        assert sorted(values) == sorted(theirs["value"])
    assert again.equals(whole)
