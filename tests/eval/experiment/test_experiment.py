"""An experiment over a small workspace: what it counts and what it warns of."""

import re
from collections.abc import Mapping
from dataclasses import replace
from fnmatch import fnmatch

import polars as pl
import pytest

from eval.dataset.dataset import OPTIONS_SCHEMA, QRELS_SCHEMA, REFERENCES_SCHEMA, SESSION_QRELS_SCHEMA, Dataset
from eval.experiment.outcome import Outcome
from eval.measures.latency import PARTS, Latency
from eval.measures.measure import Measure
from eval.measures.names import SYSTEM_ARM
from eval.measures.retention import Retention
from eval.measures.retrieval import Retrieval
from lcm.errors import DatasetError, LcmError
from lcm.memory.system import System
from lcm.protocols.retrieval import Ranker
from lcm.records.query import Query
from lcm.retrieval.decay.weibull import Weibull
from lcm.retrieval.ranking.pipeline import Ranking
from lcm.retrieval.ranking.stages.decay_boost import DecayBoost
from lcm.retrieval.ranking.stages.min_score import MinScore
from lcm.retrieval.reinforcement.decay_tiers import DecayTiers
from lcm.retrieval.reinforcement.none import NoReinforcement
from lcm.retrieval.reinforcement.recall import Recall
from lcm.retrieval.source.recent import Recent
from pipelines.config import composition
from tests.support import experiments
from tests.support.workspaces import minute, queries, system, transcript


def dataset() -> Dataset:
    """Eight messages in two sessions; three judged queries and one that is not."""
    judged = [("q0", "talk:0"), ("q0", "talk:6"), ("q1", "talk:7"), ("q2", "talk:4")]
    return Dataset(
        name="tiny",
        protocol="tiny",
        digest="0",
        transcripts=(transcript(),),
        queries=(*queries(), Query("unjudged", "what is the capital of Peru?", minute(3))),
        qrels=pl.DataFrame([(*row, 1) for row in judged], schema=QRELS_SCHEMA, orient="row"),
    )


SMALL = {"retrieval": Retrieval(names=["recall@1", "recall@2", "tokens@2"])}


def run(
    of: Dataset | None = None,
    parts: System | None = None,
    arms: Mapping[str, Ranker] | None = None,
    **measures: Measure,
) -> Outcome:
    arms = {"last_n": Ranking(Recent())} if arms is None else arms
    return experiments.outcome(of or dataset(), parts or system(), {**SMALL, **measures}, arms)


def test_everything_is_counted() -> None:
    assert run().counts == {
        "workspaces": 1,
        "messages": 8,
        "documents": 8,
        "queries": 4,
        "judged_queries": 3,
        "unjudged_queries": 1,
    }


def test_every_arm_answers_every_query_with_what_it_could_see() -> None:
    outcome = run()
    assert set(outcome.run["arm"]) == {SYSTEM_ARM, "last_n"}
    early = outcome.run.filter(query_id="unjudged", arm="last_n")
    assert len(early) == 4
    assert set(outcome.documents["document_id"]) == set(outcome.run["document_id"])


def test_means_are_over_judged_queries() -> None:
    outcome = run()
    means = outcome.means.filter(arm=SYSTEM_ARM, group="all", measure="recall@2")
    assert means["n"].to_list() == [3]
    values = outcome.values.filter(arm=SYSTEM_ARM, measure="recall@2")
    assert set(values["query_id"]) == {"q0", "q1", "q2"}
    assert means["value"].to_list() == [values["value"].mean()]


def test_a_cutoff_that_takes_in_everything_is_flagged() -> None:
    assert run().flags == (
        "small workspaces, by their sessions: 1 of 1 no more than 2; a session measure @2 can take in all",
    )
    deep = run(retrieval=Retrieval(names=["recall@8"], levels=["message"]))
    assert deep.flags == ("small workspaces, by their documents: 1 of 1 no more than 8; a measure @8 can take in all",)


def test_live_queries_are_timed_by_part() -> None:
    latency = run(latency=Latency(queries=2, warmup_queries=1)).timing["latency"]
    assert tuple(latency) == PARTS
    assert latency["total"]["n"] == 2
    assert latency["total"]["p50_ms"] > 0
    assert run(latency=Latency(queries=0)).timing == {"latency": {}}
    assert run().timing == {}


def test_an_arm_that_returns_nothing_scores_zero() -> None:
    nothing = Ranking(Recent(), {"cut": MinScore(5.0)})
    means = run(arms={"nothing": nothing}).means.filter(arm="nothing", group="all")
    assert means["n"].unique().to_list() == [3]
    assert means["value"].unique().to_list() == [0.0]


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


def test_a_query_judged_by_session_only_counts_as_judged() -> None:
    by_session = pl.DataFrame([("unjudged", "talk:session 0", 1)], SESSION_QRELS_SCHEMA, orient="row")
    outcome = run(replace(dataset(), session_qrels=by_session))
    assert (outcome.counts["judged_queries"], outcome.counts["unjudged_queries"]) == (4, 0)
    means = outcome.means.filter(arm=SYSTEM_ARM, group="all")
    assert dict(means.select("measure", "n").iter_rows()) == {
        "recall@1": 3,
        "recall@2": 3,
        "session.recall@1": 4,
        "session.recall@2": 4,
        "tokens@2": 4,
    }


def nothing_judged(**changes: object) -> Dataset:
    return replace(dataset(), qrels=pl.DataFrame(schema=QRELS_SCHEMA), **changes)


@pytest.mark.parametrize(
    ("unjudged", "has"),
    [
        (nothing_judged(), "1 transcripts, 4 queries, 0 references and 0 queries with options"),
        (
            nothing_judged(
                queries=(), references=pl.DataFrame([("talk", None, "They talk.")], REFERENCES_SCHEMA, orient="row")
            ),
            "1 transcripts, 0 queries, 1 references",
        ),
        (
            nothing_judged(
                options=pl.DataFrame(
                    [("q0", "a", "blue", True), ("q0", "b", "red", False)], OPTIONS_SCHEMA, orient="row"
                )
            ),
            "1 queries with options",
        ),
        (
            nothing_judged(
                session_qrels=pl.DataFrame([("q0", "talk:session 0", 0)], SESSION_QRELS_SCHEMA, orient="row")
            ),
            "has no judgements",
        ),
    ],
    ids=["queries", "references", "options", "relevance 0"],
)
def test_a_dataset_with_nothing_judged_is_refused_in_one_line(unjudged: Dataset, has: str) -> None:
    with pytest.raises(DatasetError) as caught:
        run(unjudged)
    said = str(caught.value)
    assert said.startswith("dataset 'tiny' (tiny) has no judgements")
    assert has in said
    assert "dataset=sample" in said
    assert "\n" not in said


def test_use_shapes_the_systems_later_answers() -> None:
    parts = system()
    stages = {**parts.ranking.stages, "decay": DecayBoost(Weibull(floor_working=0.0))}
    ranking = replace(parts.ranking, stages=stages)
    asked = tuple(replace(query, query_id=f"{i}{query.query_id}") for i in range(4) for query in queries())
    judged = [(query.query_id, "talk:0", 1) for query in asked]
    often = replace(dataset(), queries=asked, qrels=pl.DataFrame(judged, schema=QRELS_SCHEMA, orient="row"))
    recall = Recall(Weibull(), recalled=2, tiers=DecayTiers())
    frozen, used = (
        run(often, system(ranking=ranking, reinforcement=reinforcement), {"twin": ranking})
        for reinforcement in (NoReinforcement(), recall)
    )
    answers = {name: outcome.run.partition_by("arm", as_dict=True) for name, outcome in (("f", frozen), ("u", used))}
    assert answers["f"]["system",].drop("arm").equals(answers["f"]["twin",].drop("arm"))
    first = [f"0{query.query_id}" for query in queries()][:1]
    assert not answers["u"]["system",].equals(answers["f"]["system",])
    before, after = (answers[name]["system",].filter(pl.col("query_id").is_in(first)) for name in ("f", "u"))
    assert before.equals(after)  # nothing was used before the first query


def test_queries_without_any_answer_are_flagged() -> None:
    nothing = Ranking(Recent(), {"cut": MinScore(2.0)})
    assert "4 of 4 queries were answered with no document" in run(parts=system(ranking=nothing)).flags
    assert not any("no document" in flag for flag in run().flags)


@pytest.mark.parametrize(
    "choice", ["lossless", "lossless_claw", "continuity", "libravdb", "libravdb assembly.rules=1.4.4"]
)
def test_contexts_above_their_budget_are_told_with_a_key_of_the_assembly_in_use(choice: str) -> None:
    values = pl.DataFrame({"measure": ["context_tokens@10"] * 3, "value": [11.0, 10.0, 9.0]})
    (told,) = Retention().flags(values, pl.DataFrame(), dataset())
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
        run(mine=NoMeasure())
    with pytest.raises(LcmError, match=r"^measures.retrieval and measures.again both measure recall@1: "):
        run(again=Retrieval(names=["recall@1"], levels=["message"]))
