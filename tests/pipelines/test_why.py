"""`lcm why`: where a run loses messages, and what became of one."""

import json
import re
import shutil
from pathlib import Path

import polars as pl
import pytest

from eval.run import read_summary, write_summary
from pipelines.cli import BAD_INPUT
from tests.pipelines.conftest import Finished, Lcm
from tests.support.looked_at import copied

MISSED = "6271315daac50c7b"
"""A message of the sample that q002 asks for."""


@pytest.fixture
def run(evaluated: Finished, tmp_path: Path) -> Path:
    """A copy of what the runs lie in, which a test may change."""
    return copied(evaluated, tmp_path)


def record(done: Finished) -> dict:
    assert done.code == 0, done.stderr
    return json.loads(done.stdout)


def test_the_losses_of_a_run_sum_to_what_it_misses(lcm: Lcm, evaluated: Finished) -> None:
    told = record(lcm("why", "runs/first", "--json", place=evaluated.place))
    lost = sum(n for place, n in told["places"].items() if place != "found")
    assert lost == told["missed"] > 0
    assert sum(told["places"].values()) == told["judged"] == len(told["messages"])
    for place, n in told["places"].items():
        assert sum(of.get(place, 0) for of in told["categories"].values()) == n
    messages = pl.DataFrame(told["messages"]).with_columns(is_found=pl.col("place") == "found")
    values = pl.read_parquet(evaluated.folder / "per_query.parquet").filter(arm="system", measure="recall@10")
    both = values.join(messages.group_by("query_id").agg(pl.col("is_found").mean()), on="query_id")
    assert both["value"].to_list() == pytest.approx(both["is_found"].to_list())
    shown = lcm("why", place=evaluated.place).stdout  # the newest run
    assert f"{told['missed']:,} of {told['judged']:,} judged messages are missed" in shown
    assert shown.startswith("runs/first: ")
    assert "multi_hop" in shown and "limit" in shown
    (named,) = re.findall(r"next: lcm why (\S+) --run runs/first\n", shown)
    assert named in messages.filter(~pl.col("is_found"))["query_id"].mode().to_list()
    assert lcm("why", named, "--run", "runs/first", place=evaluated.place).code == 0


def test_a_setting_that_meant_something_then_is_told_with_what_to_do(
    lcm: Lcm, evaluated: Finished, monkeypatch: pytest.MonkeyPatch
) -> None:
    def losses(*_: object) -> pl.DataFrame:
        raise ValueError("weights.words_behind names no column of numbers")

    monkeypatch.setattr("pipelines.why.ladder.losses", losses)
    refused = lcm("why", "runs/first", place=evaluated.place)
    assert refused.code == BAD_INPUT
    why = "the code has changed since (weights.words_behind names no column of numbers); run `lcm evaluate` again"
    assert refused.stderr.strip() == f"lcm: runs/first: {why}"


def test_a_question_is_named_by_its_id_or_words_and_told_of(lcm: Lcm, evaluated: Finished) -> None:
    def why(*arguments: str) -> Finished:
        return lcm("why", *arguments, place=evaluated.place)

    by_id = record(why("q002", "--expect", MISSED, "--run", "runs/first", "--json"))
    by_words = record(why("where do we keep the ADRENALINE", f"expect={MISSED[:6]}", "run=runs/first", "--json"))
    assert by_id == by_words
    assert by_id["headline"].startswith("dropped at limit; rank ")
    assert {one["budget_tokens"] for one in by_id["contexts"]} == {1000, 2000, 4000, 8000, 16000, 32000}
    one = record(why("q002", f"--expect={MISSED}", "--run=runs/first", "budget=500", "--json"))
    assert [context["budget_tokens"] for context in one["contexts"]] == [500]
    shown = why("q002", "--expect", MISSED, "--run", "runs/first").stdout
    assert by_id["headline"] in shown and "tried" in shown
    every = record(why("q002", "--run", "runs/first", "--json"))
    assert [one["expected"] for one in every] and all(one["place"] != "found" for one in every)


def test_a_comparison_is_no_run_and_its_sides_are_not_the_newest(lcm: Lcm, run: Path, compared: Finished) -> None:
    comparison = shutil.copytree(compared.place / "compared", run / "runs" / "compared")
    shutil.copytree(compared.place / "second", comparison / "side")
    assert "is a comparison, not a run: name one of its runs: " in lcm("why", "runs/compared").stderr
    assert lcm("why").stdout.startswith("runs/first: ")


def test_another_answer_than_the_kept_one_is_refused(lcm: Lcm, run: Path) -> None:
    kept = pl.read_parquet(run / "runs/first/run.parquet")
    turned = kept.with_columns(document_id=pl.col("document_id").reverse().over("query_id"))
    turned.write_parquet(run / "runs/first/run.parquet")
    done = lcm("why", "runs/first")
    assert done.code == BAD_INPUT
    assert "run `lcm evaluate` again" in done.stderr


@pytest.mark.slow
@pytest.mark.xdist_group("mlflow")
def test_the_worst_questions_are_traces_of_retriever_spans(lcm: Lcm, run: Path) -> None:
    assert "Logged: 2 traces of MLflow run " in lcm("why", "runs/first", "tracking=mlflow", "traces=2").stdout
    again = lcm("why", "runs/first", "tracking=mlflow", "traces=3")
    assert "Logged: 3 traces of MLflow run " in again.stdout  # two of them were there

    from mlflow.tracking import MlflowClient

    client = MlflowClient(f"sqlite:///{run}/mlflow.db")
    experiment = client.get_experiment_by_name("lcm")
    (logged,) = client.search_runs([experiment.experiment_id])
    traces = client.search_traces(locations=[experiment.experiment_id], run_id=logged.info.run_id)
    losses = record(lcm("why", "runs/first", "--json"))["messages"]
    missed = pl.DataFrame(losses).filter(pl.col("place") != "found").group_by("query_id").len()
    worst = missed.sort("len", descending=True)["len"].to_list()[:3]
    counts = dict(missed.iter_rows())
    ids = [trace.info.tags["lcm.query_id"] for trace in traces]
    assert sorted((counts[one] for one in ids), reverse=True) == worst
    kept = pl.read_parquet(run / "runs/first/run.parquet").filter(pl.col("rank") <= 10)
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
    summary = read_summary(run / "runs/first")
    about = {**summary.pop("dataset"), "digest": "0" * 64}
    write_summary(run / "runs/first", {**{k: v for k, v in summary.items() if "sha256" not in k}, "dataset": about})
    done = lcm("why", "q002", "--expect", MISSED, "--run", "runs/first")
    assert done.code == BAD_INPUT
    assert "dataset 'sample' has changed since runs/first: run `lcm evaluate` again" in done.stderr
