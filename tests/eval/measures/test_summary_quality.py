"""Summaries of whole conversations beside their references, on a small file in DialogSum's format."""

from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from eval.dataset.dataset import QRELS_SCHEMA, REFERENCES_SCHEMA, Dataset
from eval.dataset.dialogsum import Dialogsum
from eval.experiment.outcome import Outcome, write_run
from eval.measures.means import Means
from eval.measures.measure import SystemReading
from eval.measures.memory import SummaryQuality, rouge
from eval.measures.retention import Retention
from eval.measures.retrieval import Retrieval
from eval.replay.workspace_replay import Bulk, PerTurn, Replay
from lcm.compaction.lossless.lossless import Lossless
from lcm.compaction.summarizer.chain import Truncate
from lcm.compaction.work import NoCompaction
from lcm.errors import DatasetError, ModelError
from lcm.protocols.compaction import Compaction
from lcm.records.query import Query
from lcm.records.summary import SummaryRequest, SummaryResult
from lcm.token_estimator import Utf16Units
from tests.eval.dataset.test_dialogsum import RECORDS, write_small_dialogsum
from tests.support import experiments
from tests.support.workspaces import minute, system

TOKENS = Utf16Units()
QUALITY = SummaryQuality(12)
ARMS = ("system", "lead_2", "lead_3")


@dataclass
class Saying:
    """Gives the same words for everything but texts that hold others, and remembers what it was asked."""

    text: str
    silent_on: str = "nothing of it"
    asked: list[SummaryRequest] = field(default_factory=list)

    def summarize(self, requests: list[SummaryRequest], *, incidents: Counter[str]) -> list[SummaryResult]:
        self.asked += requests
        return [
            SummaryResult("", 0.0, "saying", failure=ModelError("no words"))
            if self.silent_on in request.text
            else SummaryResult(self.text, 0.5, "saying")
            for request in requests
        ]


@pytest.fixture
def dialogues(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Dataset:
    return Dialogsum(write_small_dialogsum(tmp_path, monkeypatch)).load()


def run(
    dataset: Dataset, compaction: Compaction, quality: SummaryQuality = QUALITY, replay: Replay | None = None
) -> Outcome:
    measures = {"retrieval": Retrieval(names=["recall@1"]), "retention": Retention([100]), "summary_quality": quality}
    return experiments.outcome(dataset, system(compaction=compaction), measures, replay=replay)


def lossless(summarizer: Any) -> Lossless:
    return Lossless(summarizer, TOKENS)


def scored(dataset: Dataset, summarizer: Any) -> tuple[pl.DataFrame, Counter[str]]:
    """Rows of conversations, and what failed."""
    incidents = Counter[str]()
    return QUALITY.rows(SystemReading(system(compaction=lossless(summarizer)), dataset, incidents)), incidents


def values_of(rows: pl.DataFrame) -> dict[tuple[str, str], list[float]]:
    """Values in the order of the conversations, by arm and measure."""
    groups = rows.group_by(["arm", "measure"], maintain_order=True).agg("value")
    return {(arm, measure): values for arm, measure, values in groups.iter_rows()}


def test_the_systems_arm_is_what_its_summarizer_says_and_leads_the_first_messages_with_their_speakers(
    dialogues: Dataset,
) -> None:
    said = RECORDS[0]["summary"]
    saying = Saying(said)
    rows, _ = scored(dialogues, saying)
    found = values_of(rows)
    names = ("rouge1", "rouge2", "rougeL")
    expected = rouge([said, said], [[record["summary"]] for record in RECORDS])
    for measure in names:
        assert found["system", measure] == expected[measure].to_list()
        assert found["system", measure][0] == 1.0 > found["system", measure][1]
    assert found["system", "tokens"] == [7.0, 7.0]  # 27 units / 4, rounded up
    assert [(request.target_tokens, request.depth) for request in saying.asked] == [(12, 0), (12, 0)]
    lines = ["#Person1#: Hello #Person2#!", "#Person2#: Hi: it's me.", "#Person1#: Come in."]
    assert saying.asked[0].text == "\n".join(lines)
    for arm, text in (("lead_2", "\n".join(lines[:2])), ("lead_3", "\n".join(lines))):
        alone = rouge([text], [[RECORDS[0]["summary"]]])
        assert [found[arm, name][0] for name in names] == [alone[name][0] for name in names]
        assert found[arm, "tokens"][0] == TOKENS.count([text])[0]
    means = Means(resamples=200).of_conversations(rows)
    row, of_it = means["system"]["rouge1"], expected["rouge1"]
    assert (row["n"], row["value"]) == (2, pytest.approx(of_it.mean()))
    assert of_it.min() <= row["low"] <= row["value"] <= row["high"] <= of_it.max()
    assert [len(entries) for entries in means.values()] == [4, 4, 4]


def test_a_conversation_without_a_summary_scores_nothing_and_is_counted(dialogues: Dataset) -> None:
    saying = Saying(RECORDS[0]["summary"], silent_on="The bell rings")
    rows, failures = scored(dialogues, saying)
    second = dialogues.transcripts[1].conversation_id
    assert rows.filter(arm="system", conversation_id=second)["value"].to_list() == [0.0] * 4
    assert failures == run(dialogues, lossless(saying)).incidents == {"no summary: no words": 1}
    with pytest.raises(ModelError, match="no words"):  # there is no summary at all
        scored(dialogues, Saying("words", silent_on=""))


def test_of_several_references_each_counts_and_those_of_a_query_do_not(dialogues: Dataset) -> None:
    first, second = (t.conversation_id for t in dialogues.transcripts)
    rows = [(first, None, "a b"), (first, None, "a b c d"), (second, "q", "a b")]
    asked = Query("q", "who is there?", minute(9), workspace_id=dialogues.transcripts[1].workspace_id)
    several = replace(dialogues, queries=(asked,), references=pl.DataFrame(rows, REFERENCES_SCHEMA, orient="row"))
    found, _ = scored(several, Saying("a b"))
    assert set(found["conversation_id"]) == {first}
    (value,) = found.filter(arm="system", measure="rouge1")["value"]
    assert value == rouge(["a b"], [["a b", "a b c d"]])["rouge1"][0]


@pytest.mark.parametrize("replay", [Bulk(), PerTurn()], ids=["bulk", "per_turn"])
def test_a_dataset_of_references_alone_is_measured_with_a_summarizer(
    dialogues: Dataset, replay: Any, tmp_path: Path
) -> None:
    outcome = run(dialogues, lossless(Truncate()), replay=replay)
    assert outcome.counts["judged_queries"] == 0
    assert set(outcome.frames["summary_quality"]["arm"]) == set(ARMS)
    assert outcome.sections["summary_quality"]["system"]["rouge1"]["n"] == 2
    assert outcome.means.is_empty()
    assert outcome.flags == ()
    summary = write_run(tmp_path / "run", outcome, dialogues, {}, "{}", {"total": 0.0})
    assert summary["summary_quality"]
    with pytest.raises(DatasetError, match=r"2 references.*compaction=lossless"):
        run(dialogues, NoCompaction(), replay=replay)


def test_nothing_is_summarised_where_no_length_is_aimed_at(dialogues: Dataset) -> None:
    assert not SummaryQuality(0).is_measured(system(compaction=lossless(Truncate())), dialogues)
    with pytest.raises(DatasetError, match="no judgements"):
        run(dialogues, lossless(Truncate()), SummaryQuality(0))
    with pytest.raises(ValueError, match="target_tokens must be >= 0, got -1"):
        SummaryQuality(-1)


def test_judgements_are_measured_beside_references(dialogues: Dataset) -> None:
    first = dialogues.transcripts[0]
    asked = Query("q", "who is there?", minute(9), workspace_id=first.workspace_id)
    qrels = pl.DataFrame([("q", first.messages[0].message_id, 1)], QRELS_SCHEMA, orient="row")
    outcome = run(replace(dialogues, queries=(asked,), qrels=qrels), lossless(Truncate()))
    assert outcome.counts["judged_queries"] == 1
    assert not outcome.means.is_empty()
    assert set(outcome.frames["summary_quality"]["arm"]) == set(ARMS)
    without = run(replace(dialogues, queries=(asked,), qrels=qrels), NoCompaction())
    assert without.frames["summary_quality"].is_empty()
    assert without.sections["summary_quality"] == {}
