"""Where messages are lost, over whole memories: each reason once, and sums that are what recall says."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from eval.dataset.dataset import Dataset
from eval.dataset.sample import Sample
from eval.experiment.workspace import SYSTEM_ARM, WorkspaceEvaluator
from eval.ladder.explanation import ADDED, DROPPED, FELL, ORDERED, found_by, ladders
from eval.ladder.losses import (
    FOUND,
    LATE,
    LEFT_OUT,
    LOSSES_SCHEMA,
    NO_DOCUMENT,
    NOT_SAID,
    NOT_STORED,
    REFUSED,
    SCOPE,
    SHOWN,
    UNANSWERED,
    UNJUDGED,
    Traced,
    asked_again,
    counted,
    judged_messages,
    losses,
    missed,
    most_missed,
    places_in_order,
    retrievals,
)
from eval.measures.means import ALL
from eval.measures.measure import RunReading
from eval.measures.retrieval import Retrieval
from eval.replay.workspace_replay import Bulk
from eval.report.ranking import Insight, MessageLadder
from lcm.memory.memory import Memory
from lcm.memory.session import SessionRules
from lcm.memory.system import System
from lcm.records.conversation import Transcript
from lcm.records.query import Query
from lcm.retrieval.ranking.stages.selection import Limit, NearDuplicates
from lcm.writing.admission.amac import Amac
from pipelines.config import building
from pipelines.why import losses_record, show_losses
from tests.eval.tiny import tiny
from tests.support.composing import composed
from tests.support.workspaces import LINES, minute, ranking, system, transcript

KITCHEN = 0
"""The line about a kettle in a kitchen, which the question asks for."""
ASKED = Query("q", "Is the kettle in the blue kitchen broken?", minute(24 * 60))


def dataset(asked: Query = ASKED, lines: Sequence[str] = LINES, judged: Sequence[int] = (KITCHEN,)) -> Dataset:
    said = transcript(lines)
    return tiny([said], [asked], ((asked.query_id, said.messages[i].message_id) for i in judged))


def place(data: Dataset, ours: System, first: int = 10) -> str:
    rows = losses(WorkspaceEvaluator(data, ours, Bulk(), measures={}), lambda _: None, first=first)
    assert sum(counted(rows)[ALL].values()) == len(rows) == 1
    return str(rows["place"][0])


def ranked(**stages: object) -> System:
    """A system whose ranking ends in further stages."""
    own = ranking()
    return system(ranking=replace(own, stages={**own.stages, **stages}))


@pytest.mark.parametrize(
    ("told", "asked", "parts"),
    [
        (FOUND, {}, {}),
        (NOT_SAID, {"asked_at": minute(-5)}, {}),
        (SCOPE, {"scopes": ("project:other",)}, {}),
        (SHOWN, {"shown_message_ids": ("talk:0",)}, {}),
        (REFUSED, {}, {"admission": Amac(reject_threshold=1.0, admit_threshold=1.0)}),
        (LEFT_OUT, {}, {"session": SessionRules(ignore_patterns=["talk"])}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_it_is_told_why_nothing_that_may_be_seen_stands_for_a_message(
    told: str, asked: Mapping[str, Any], parts: Mapping[str, Any]
) -> None:
    assert place(dataset(replace(ASKED, **asked)), system(**parts)) == told


def test_a_message_without_a_document_is_told_from_one_that_never_reached_the_memory() -> None:
    class WithoutTheFirst(Bulk):
        def play(
            self, memory: Memory, transcripts: Sequence[Transcript], queries: Sequence[Query]
        ) -> Iterator[list[Query]]:
            yield from super().play(memory, [replace(one, messages=one.messages[1:]) for one in transcripts], queries)

    assert place(dataset(lines=("", *LINES[1:])), system()) == NO_DOCUMENT
    rows = losses(WorkspaceEvaluator(dataset(), system(), WithoutTheFirst(), measures={}), lambda _: None)
    assert rows["place"].to_list() == [NOT_STORED]


def test_a_ladder_tells_every_step_the_branches_and_what_stands_for_a_near_duplicate() -> None:
    found, steps = of_ladders(dataset(judged=[4]), ranked(cut=Limit(3)))
    (document_id,) = found.covered(judged_messages(dataset(judged=[4])))["document_id"]
    ours = steps.filter(document_id=document_id)
    assert ours["stage"].to_list() == ["source", "dense_score", "lexical_score", "fusion", "limit", "cut"]
    assert ours["event"].to_list() == [ADDED, "stayed", "stayed", ORDERED, "stayed", DROPPED]
    assert ours["rank"].null_count() == 1 and ours["rank_before"][-1] == ours["rank"][-2] > 3
    branches = found_by(found, steps)
    assert branches.filter(document_id=document_id)["branch"].to_list() == ["dense"]
    assert set(branches["branch"]) == {"dense", "lexical"}
    assert found.answers["rank"].to_list() == [1, 2, 3]
    again = dataset(lines=(LINES[0], LINES[1], LINES[0], *LINES[3:]), judged=[2])
    _, steps = of_ladders(again, ranked(near=NearDuplicates(n=9)))
    ours = steps.filter(pl.col("stood_for_by").is_not_null())
    assert ours.select("stage", "event").rows() == [("near", FELL)]
    assert ours["stood_for_by"][0] in set(steps.filter(pl.col("rank") == 1)["document_id"])


def of_ladders(data: Dataset, ours: System) -> tuple[Traced, pl.DataFrame]:
    """What was asked, and the ladders of what was answered and of what is judged."""
    (asked,) = asked_again(WorkspaceEvaluator(data, ours, Bulk(), measures={}), "default")
    (traced,) = asked.traced()
    of = [traced.answers, traced.covered(judged_messages(data))]
    return traced, ladders(traced, pl.concat([one.select("query_id", "document_id") for one in of]).unique())


@pytest.mark.parametrize(
    "preset",
    [
        *("default", "unified", "lancedb_pro", "libravdb"),
        *(pytest.param(name, marks=pytest.mark.full) for name in ("neighbours", "lossless_claw")),
    ],
)
def test_the_losses_of_every_preset_are_what_its_recall_lacks(preset: str) -> None:
    chosen = [] if preset == "default" else [f"system={preset}"]
    config = composed([*chosen, "embedder=hashing"])
    ours, sample = building.build(config, "memory"), Sample().load()
    data = sample.part(sample.workspaces[:2])
    evaluator = WorkspaceEvaluator(data, ours, building.build(config, "replay"), measures={})
    answers: list[pl.DataFrame] = []
    rows = losses(evaluator, lambda _: None, lambda traced: answers.append(traced.answers))
    counts = counted(rows)
    assert sum(counts[ALL].values()) == len(judged_messages(data)) == len(rows)
    assert set(counts[ALL]) == set(places_in_order(rows))
    results = [evaluator.evaluate(workspace, lambda _: None) for workspace in data.workspaces]
    run = pl.concat([one.run(SYSTEM_ARM) for one in results])
    reading = RunReading(SYSTEM_ARM, run, pl.concat([one.documents for one in results]), data)
    values = Retrieval(["recall@10"], ["message"]).rows(reading).filter(measure="recall@10")
    found = rows.group_by("query_id").agg(recall=(pl.col("place") == FOUND).mean())
    both = values.join(found, on="query_id", how="full")
    assert len(both) == len(values) == len(found)
    assert both["recall"].to_list() == pytest.approx(both["value"].to_list(), abs=1e-12)
    columns = ["query_id", "document_id", "rank"]
    asked = pl.concat(answers).select(columns).sort(columns)
    assert asked.equals(run.join(found, on="query_id", how="semi").select(columns).sort(columns))


def test_a_document_stands_for_the_messages_of_its_near_duplicates() -> None:
    again = dataset(lines=(LINES[0], LINES[1], LINES[0], *LINES[3:]), judged=[2])
    evaluator = WorkspaceEvaluator(again, ranked(near=NearDuplicates(n=9), cut=Limit(2)), Bulk(), measures={})
    rows = losses(evaluator, lambda _: None)
    assert rows["place"].to_list() == [FOUND]
    (found,) = retrievals(evaluator, rows, [ASKED.query_id])
    (_, before), *_, (_, last) = found.steps
    assert [one.messages for one in last] == [("talk:2",), ()]
    assert sum(bool(one.messages) for one in before) == 1  # its own document


PLACES = [FOUND, LATE, UNANSWERED, UNANSWERED, UNJUDGED]
ROWS = pl.DataFrame(
    [("w", f"q{i}", "one", f"m{i}", place, None) for i, place in enumerate(PLACES)], schema=LOSSES_SCHEMA, orient="row"
)


def test_it_is_no_miss_and_told_apart(capsys: pytest.CaptureFixture[str]) -> None:
    assert missed(counted(ROWS)["all"]) == {LATE: 1}
    assert most_missed(ROWS, 5) == ["q1"]
    record = losses_record(Path("run"), ROWS)
    assert (record["missed"], record["places"][UNANSWERED]) == (1, 2)
    show_losses(Path("run"), ROWS, counted(ROWS), {})
    told = capsys.readouterr().out
    assert "run: 1 of 2 judged messages are missed by the first 10 documents: late 1 = 1" in told
    assert "3 more are neither found nor missed: their questions have no value" in told
    insight = Insight(ROWS, {place: [MessageLadder("m", place, ())] for place in (UNANSWERED, LATE)})
    assert (insight.lost(UNANSWERED), insight.lost(LATE)) == (None, LATE)
