"""`lcm why`: where a run loses messages, and what became of one."""

import json
import os
import re
from pathlib import Path
from shutil import copytree

import polars as pl
import pytest

from eval.experiment.run_folder import read_summary, write_summary
from pipelines import cli
from pipelines.cli import BAD_INPUT
from tests.pipelines.conftest import QUICK, Finished, Lcm

pytestmark = [pytest.mark.full, pytest.mark.xdist_group("why")]

DATASETS = os.environ.get("LCM_DATASETS_DIR")
"""Which the fixture `lcm` takes away."""
MISSED = "6271315daac50c7b"
"""A message of the sample that q002 asks for."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the sample, and the cache that it was made with."""
    folder = tmp_path_factory.mktemp("why")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LCM_CACHE_DIR", str(folder / "cache"))
        patch.chdir(folder)
        assert cli.run(["evaluate", *QUICK, "hydra.run.dir=runs/a"]) == 0
    return folder


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Path:
    return copytree(made, tmp_path / "here")


def record(done: Finished) -> dict:
    assert done.code == 0, done.stderr
    return json.loads(done.stdout)


def test_the_losses_of_a_run_sum_to_what_it_misses(lcm: Lcm, run: Path) -> None:
    told = record(lcm("why", "runs/a", "--json"))
    lost = sum(n for place, n in told["places"].items() if place != "found")
    assert lost == told["missed"] > 0
    assert sum(told["places"].values()) == told["judged"] == len(told["messages"])
    for place, n in told["places"].items():
        assert sum(of.get(place, 0) for of in told["categories"].values()) == n
    values = pl.read_parquet(run / "runs/a/per_query.parquet").filter(arm="system", measure="recall@10")
    messages = pl.DataFrame(told["messages"]).group_by("query_id").agg(found=(pl.col("place") == "found").mean())
    both = values.join(messages, on="query_id")
    assert both["value"].to_list() == pytest.approx(both["found"].to_list())
    shown = lcm("why").stdout  # the newest run
    assert f"{told['missed']:,} of {told['judged']:,} judged messages are missed" in shown
    assert shown.startswith("runs/a: ")
    assert "multi_hop" in shown and "limit" in shown
    worst = pl.DataFrame(told["messages"]).filter(pl.col("place") != "found")["query_id"].mode()
    (named,) = re.findall(r"next: lcm why (\S+) --run runs/a\n", shown)
    assert named in worst.to_list()
    assert lcm("why", named, "--run", "runs/a").code == 0


def test_a_question_is_named_by_its_id_or_words_and_told_of(lcm: Lcm, run: Path) -> None:
    by_id = record(lcm("why", "q002", "--expect", MISSED, "--run", "runs/a", "--json"))
    by_words = record(lcm("why", "where do we keep the ADRENALINE", f"expect={MISSED[:6]}", "run=runs/a", "--json"))
    assert by_id == by_words
    assert by_id["headline"].startswith("dropped at limit; rank ")
    assert {one["budget_tokens"] for one in by_id["contexts"]} == {1000, 2000, 4000, 8000, 16000, 32000}
    one = record(lcm("why", "q002", f"--expect={MISSED}", "--run=runs/a", "budget=500", "--json"))
    assert [context["budget_tokens"] for context in one["contexts"]] == [500]
    shown = lcm("why", "q002", "--expect", MISSED, "--run", "runs/a").stdout
    assert by_id["headline"] in shown and "tried" in shown
    every = record(lcm("why", "q002", "--run", "runs/a", "--json"))
    assert [one["expected"] for one in every] and all(one["place"] != "found" for one in every)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["q0021", "--expect", MISSED], "'q0021' names no question of sample: did you mean q001"),
        (["q00", "--expect", MISSED], "'q00' names 9 questions of sample: did you mean q001"),
        (["q002", "--expect", "nothing"], "expect=nothing names none of the messages and documents of workspace"),
        (["q002", "--expect"], "--expect has no value: write --expect ID"),
        (["q002", "--expects", MISSED], "no such option: '--expects'"),
        (["q002", "q003"], "q003: 'q002' is named already"),
        (["runs/a", "budget=3"], "budget= is of one question"),
        (["runs/a", "fusion=two_pass"], "no such key: 'fusion'; choose from: expect, run, budget, traces, external"),
        (["q002", "tracking=mlflow"], "traces are logged of a run, its worst questions"),
        (["q002", "run=runs/b"], "runs/b is not a complete run"),
        (["runs/b"], "runs/b is not a complete run"),
    ],
)
def test_what_cannot_be_told_is_said_in_one_line(lcm: Lcm, run: Path, arguments: list[str], told: str) -> None:
    done = lcm("why", *arguments)
    assert (done.code, done.stdout) == (BAD_INPUT, "")
    assert told in done.stderr.splitlines()[-1]


def test_a_comparison_is_no_run_and_what_it_evaluated_is_not_the_newest(lcm: Lcm, run: Path) -> None:
    assert lcm("compare", "runs/a", "ranking.stages.limit.n=3", *QUICK, "into=both").code == 0
    assert "both is a comparison, no run: name a run" in lcm("why", "both").stderr
    assert lcm("why").stdout.startswith("runs/a: ")


def test_another_answer_than_the_kept_one_is_refused(lcm: Lcm, run: Path) -> None:
    kept = pl.read_parquet(run / "runs/a/run.parquet")
    turned = kept.with_columns(document_id=pl.col("document_id").reverse().over("query_id"))
    turned.write_parquet(run / "runs/a/run.parquet")
    done = lcm("why", "runs/a")
    assert done.code == BAD_INPUT
    assert "run `lcm evaluate` again" in done.stderr


def test_the_worst_questions_are_traces_of_retriever_spans(lcm: Lcm, run: Path) -> None:
    told = lcm("why", "runs/a", "tracking=mlflow", "traces=2")
    assert told.code == 0, told.stderr
    assert "Logged: 2 traces of MLflow run " in told.stdout
    again = lcm("why", "runs/a", "tracking=mlflow", "traces=3")
    assert "Logged: 3 traces of MLflow run " in again.stdout  # two of them were there

    from mlflow.tracking import MlflowClient

    client = MlflowClient(f"sqlite:///{told.place}/mlflow.db")
    experiment = client.get_experiment_by_name("lcm")
    (logged,) = client.search_runs([experiment.experiment_id])
    traces = client.search_traces(locations=[experiment.experiment_id], run_id=logged.info.run_id)
    losses = record(lcm("why", "runs/a", "--json"))["messages"]
    missed = pl.DataFrame(losses).filter(pl.col("place") != "found").group_by("query_id").len()
    worst = missed.sort("len", descending=True)["len"].to_list()[:3]
    counts = dict(missed.iter_rows())
    ids = [trace.info.tags["lcm.query_id"] for trace in traces]
    assert sorted((counts[one] for one in ids), reverse=True) == worst
    kept = pl.read_parquet(run / "runs/a/run.parquet").filter(pl.col("rank") <= 10)
    for trace, query_id in zip(traces, ids, strict=True):
        root, *steps = trace.data.spans
        assert {span.span_type for span in trace.data.spans} == {"RETRIEVER"}
        assert all(span.parent_id == root.span_id for span in steps)
        assert [steps[0].name, steps[-2].name] == ["source", "limit"]
        documents = [one["metadata"] for one in root.outputs]
        answered = kept.filter(query_id=query_id).select("document_id", "rank").rows()
        assert [(one["document_id"], one["rank"]) for one in documents] == answered
        places = {one["message_id"]: one["place"] for one in losses if one["query_id"] == query_id}
        gold = {message for one in documents if one["is_gold"] for message in one["messages"]}
        assert gold == {message for message, place in places.items() if place == "found"}
        assert all(one["page_content"] for one in root.outputs)


def test_data_that_has_changed_since_is_refused(lcm: Lcm, run: Path) -> None:
    summary = read_summary(run / "runs/a")
    about = {**summary.pop("dataset"), "digest": "0" * 64}
    write_summary(run / "runs/a", {**{k: v for k, v in summary.items() if "sha256" not in k}, "dataset": about})
    done = lcm("why", "q002", "--expect", MISSED, "--run", "runs/a")
    assert done.code == BAD_INPUT
    assert "dataset 'sample' has changed since runs/a: run `lcm evaluate` again" in done.stderr


@pytest.mark.skipif(DATASETS is None, reason="it asks of LoCoMo")
@pytest.mark.parametrize("system", [[], ["system=unified"]], ids=["default", "unified"])
def test_every_missed_message_of_locomo_has_one_stage_and_the_sums_are_the_totals(
    lcm: Lcm, monkeypatch: pytest.MonkeyPatch, system: list[str]
) -> None:
    assert DATASETS is not None
    monkeypatch.setenv("LCM_DATASETS_DIR", DATASETS)
    done = lcm("evaluate", *QUICK, *system, "dataset=locomo", "measures.retention.budgets=[]", "hydra.run.dir=run")
    assert done.code == 0, done.stderr
    told = record(lcm("why", "run", "--json"))
    messages = pl.DataFrame(told["messages"])
    assert messages.select("query_id", "message_id").is_duplicated().sum() == 0
    assert told["judged"] == len(messages) == sum(told["places"].values()) > 1500
    missed = messages.filter(pl.col("place") != "found")
    assert told["missed"] == len(missed) == sum(n for place, n in told["places"].items() if place != "found")
    values = pl.read_parquet(done.place / "run/per_query.parquet").filter(arm="system", measure="recall@10")
    found = messages.group_by("query_id").agg(recall=(pl.col("place") == "found").mean())
    both = values.join(found, on="query_id", how="full")
    assert both["recall"].to_list() == pytest.approx(both["value"].to_list())
