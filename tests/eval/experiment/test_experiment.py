"""An experiment over a small workspace: what it counts and what it warns of."""

import re
from collections.abc import Mapping
from dataclasses import replace
from fnmatch import fnmatch

import polars as pl
import pytest

from eval.dataset.dataset import OPTIONS_SCHEMA, QRELS_SCHEMA, REFERENCES_SCHEMA, SESSION_QRELS_SCHEMA, Dataset
from eval.experiment.experiment import Experiment
from eval.experiment.outcome import Outcome
from eval.experiment.workspace import Times, WorkspaceEvaluator
from eval.measures.latency import PARTS, Latency
from eval.measures.means import Means
from eval.measures.measure import Measure, SystemReading
from eval.measures.names import SYSTEM_ARM
from eval.measures.retention import Retention
from eval.measures.retrieval import Retrieval
from eval.replay.bulk import Bulk
from lcm.errors import DatasetError, LcmError
from lcm.memory.system import System
from lcm.protocols.retrieval import Ranker
from lcm.records.query import Query
from lcm.retrieval.decay import Weibull
from lcm.retrieval.ranking.pipeline import Ranking
from lcm.retrieval.ranking.stages.scores import DecayBoost
from lcm.retrieval.ranking.stages.selection import MinScore
from lcm.retrieval.reinforcement import DecayTiers, NoReinforcement, Recall
from lcm.retrieval.source.branches import Recent
from pipelines.config import composition
from tests.eval.tiny import tiny
from tests.support import experiments
from tests.support.workspaces import minute, queries, system, transcript


def dataset() -> Dataset:
    """Eight messages in two sessions; three judged queries and one that is not."""
    judged = [("q0", "talk:0"), ("q0", "talk:6"), ("q1", "talk:7"), ("q2", "talk:4")]
    return tiny([transcript()], (*queries(), Query("unjudged", "what is the capital of Peru?", minute(3))), judged)


SMALL = {"retrieval": Retrieval(names=["recall@1", "recall@2", "tokens@2"])}


def run(
    of: Dataset | None = None,
    parts: System | None = None,
    arms: Mapping[str, Ranker] | None = None,
    **measures: Measure,
) -> Outcome:
    arms = {"last_n": Ranking(Recent())} if arms is None else arms
    return experiments.outcome(of or dataset(), parts or system(), {**SMALL, **measures}, arms)


def test_every_arm_answers_every_query_and_means_are_over_judged_ones() -> None:
    outcome = run()
    counts = {"messages": 8, "documents": 8, "queries": 4, "judged_queries": 3, "unjudged_queries": 1}
    assert outcome.counts == {"workspaces": 1} | counts
    assert outcome.timing == {}
    assert set(outcome.run["arm"]) == {SYSTEM_ARM, "last_n"}
    assert len(outcome.run.filter(query_id="unjudged", arm="last_n")) == 4, "what it could see"
    assert set(outcome.documents["document_id"]) == set(outcome.run["document_id"])
    means = outcome.means.filter(arm=SYSTEM_ARM, group="all", measure="recall@2")
    values = outcome.values.filter(arm=SYSTEM_ARM, measure="recall@2")
    assert set(values["query_id"]) == {"q0", "q1", "q2"}
    assert (means["n"].to_list(), means["value"].to_list()) == ([3], [values["value"].mean()])


def test_a_cutoff_that_takes_in_everything_is_flagged() -> None:
    assert run().flags == (
        "small workspaces, by their sessions: 1 of 1 no more than 2; a session measure @2 can take in all",
    )
    deep = run(retrieval=Retrieval(names=["recall@8"], levels=["message"]))
    assert deep.flags == ("small workspaces, by their documents: 1 of 1 no more than 8; a measure @8 can take in all",)


def test_points_that_do_the_same_work_are_timed_once() -> None:
    """A threshold changes what is answered, and a pool's size how much is looked at."""
    times: Times = {}

    def timing(threshold: float, size: int) -> object:
        ranking = Ranking(Recent(pool_size=size), {"min_score": MinScore(threshold)})
        measures = {"retrieval": Retrieval(names=["recall@1"]), "latency": Latency(queries=2)}
        evaluator = WorkspaceEvaluator(dataset(), system(ranking=ranking), Bulk(), measures, times=times)
        return Experiment(evaluator, Means(resamples=20)).run(lambda *_: None).timing

    assert timing(0.0, 2) == timing(0.5, 2)
    assert timing(0.0, 2) != timing(0.0, 3)


def test_live_queries_are_timed_by_part() -> None:
    latency = run(latency=Latency(queries=2, warmup_queries=1)).timing["latency"]
    assert tuple(latency) == PARTS
    assert latency["total"]["n"] == 2
    assert latency["total"]["p50_ms"] > 0
    assert run(latency=Latency(queries=0)).timing == {"latency": {}}


def test_what_returns_nothing_scores_zero_and_is_flagged() -> None:
    nothing = Ranking(Recent(), {"cut": MinScore(5.0)})
    outcome = run(parts=system(ranking=nothing), arms={"nothing": nothing})
    means = outcome.means.filter(arm="nothing", group="all")
    assert (means["n"].unique().to_list(), means["value"].unique().to_list()) == ([3], [0.0])
    assert "4 of 4 queries were answered with no document" in outcome.flags


def test_workspaces_may_share_their_ids() -> None:
    once = run().means.filter(arm=SYSTEM_ARM, group="all")
    data = dataset()
    other = [replace(query, query_id=f"{query.query_id} again", workspace_id="other") for query in data.queries]
    twice = replace(
        data,
        transcripts=(*data.transcripts, transcript(workspace_id="other")),
        queries=(*data.queries, *other),
        qrels=pl.concat([data.qrels, data.qrels.with_columns(pl.col("query_id") + " again")]),
    )
    means = run(twice).means.filter(arm=SYSTEM_ARM, group="all")
    assert means["value"].to_list() == once["value"].to_list()


def frame(schema: Mapping[str, pl.DataType], *rows: tuple[object, ...]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=dict(schema), orient="row")


def test_a_dataset_with_nothing_judged_is_refused_in_one_line() -> None:
    options = frame(OPTIONS_SCHEMA, ("q0", "a", "blue", True), ("q0", "b", "red", False))
    references = frame(REFERENCES_SCHEMA, ("talk", None, "They talk."))
    for changes, has in (
        ({}, "1 transcripts, 4 queries, 0 references and 0 queries with options"),
        ({"options": options, "references": references}, "4 queries, 1 references and 1 queries with options"),
        ({"session_qrels": frame(SESSION_QRELS_SCHEMA, ("q0", "talk:session 0", 0))}, "has no judgements"),
    ):
        with pytest.raises(DatasetError) as caught:
            run(replace(dataset(), qrels=frame(QRELS_SCHEMA), **changes))
        said = str(caught.value)
        assert said.startswith("dataset 'tiny' (tiny) has no judgements")
        assert has in said and "dataset=sample" in said and "\n" not in said


def test_use_shapes_the_systems_later_answers() -> None:
    stages = {**system().ranking.stages, "decay": DecayBoost(Weibull(floor_working=0.0))}
    ranking = replace(system().ranking, stages=stages)
    asked = tuple(replace(query, query_id=f"{i}{query.query_id}") for i in range(4) for query in queries())
    judged = frame(QRELS_SCHEMA, *((query.query_id, "talk:0", 1) for query in asked))
    often = replace(dataset(), queries=asked, qrels=judged)
    recall = Recall(Weibull(), recalled=2, tiers=DecayTiers())
    frozen, twin, used = (
        run(often, system(ranking=ranking, reinforcement=reinforcement), {"twin": ranking})
        .run.filter(arm=arm)
        .drop("arm")
        for reinforcement, arm in ((NoReinforcement(), "system"), (NoReinforcement(), "twin"), (recall, "system"))
    )
    assert frozen.equals(twin)
    assert not used.equals(frozen)
    first = f"0{queries()[0].query_id}"  # nothing was used before it
    assert used.filter(query_id=first).equals(frozen.filter(query_id=first))


@pytest.mark.parametrize(
    "choice", ["lossless", "lossless_claw", "continuity", "libravdb", "libravdb assembly.rules=1.4.4"]
)
def test_contexts_above_their_budget_are_told_with_a_key_of_the_assembly_in_use(choice: str) -> None:
    values = pl.DataFrame({"measure": ["context_tokens@10"] * 3, "value": [11.0, 10.0, 9.0]})
    (told,) = Retention().notes(values, SystemReading(system(), dataset()))
    assert told.startswith("contexts that cost more than the budget of tokens: 1 of 3 at 10; so")
    named = [pattern.removesuffix(".*") for pattern in re.findall(r"assembly\.([\w.*]+)", told)]
    keys = composition.composed(f"assembly={choice}".split()).assembly
    assert any(fnmatch(key, pattern) for key in keys for pattern in named)


class NoMeasure:
    """Says what it measures, and measures nothing."""

    def value_names(self) -> list[str]:
        return ["MRR"]


def test_what_is_no_measure_and_what_is_measured_twice_is_refused_by_its_key() -> None:
    with pytest.raises(LcmError, match=r"^measures.mine is no measure"):
        run(mine=NoMeasure())  # type: ignore[arg-type]
    with pytest.raises(LcmError, match=r"^measures.retrieval and measures.again both measure recall@1: "):
        run(again=Retrieval(names=["recall@1"], levels=["message"]))
