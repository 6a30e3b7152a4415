"""An external memory that misbehaves is told for what it is, and has no number that it did not earn."""

import shlex
import sys
import time
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from eval.dataset.dataset import QRELS_SCHEMA, Dataset
from eval.experiment.outcome import Outcome
from eval.external.line_process import LineProcess
from eval.external.ranking.external import External
from eval.external.stdio import Stdio
from eval.measures.measure import Measure
from eval.measures.names import SYSTEM_ARM
from eval.measures.retention import Retention
from eval.measures.retrieval import Retrieval
from lcm.consent import COMMANDS
from lcm.errors import LcmError
from lcm.records.query import Query
from lcm.retrieval.ranking.pipeline import Ranking
from lcm.retrieval.source.recent import Recent
from tests.support import experiments
from tests.support.workspaces import LINES, minute, system, transcript

STAND_IN = Path(__file__).parents[2] / "support/external/stand_in.py"
OTHERS = tuple(f"In the other house nobody ever mentioned anything but item {i}" for i in range(6))
Run = Callable[..., Outcome]
MEASURES: dict[str, Measure] = {"retrieval": Retrieval(names=["recall@1", "recall@5", "tokens@5"])}


def dataset(*texts: str) -> Dataset:
    """Two workspaces, of which the second has three queries; what is asked stands in messages 0, 3 and 5."""
    asked = texts or (LINES[0], LINES[3], LINES[5])
    judged = [(f"q{place}", f"talk:{LINES.index(text)}", 1) for place, text in enumerate(asked) if text in LINES]
    return Dataset(
        name="tiny",
        protocol="tiny",
        digest="0",
        transcripts=(transcript(OTHERS, "other", "first"), transcript(workspace_id="second")),
        queries=(
            Query("other", OTHERS[0], minute(24 * 60), workspace_id="first"),
            *(Query(f"q{i}", text, minute(24 * 60), workspace_id="second") for i, text in enumerate(asked)),
        ),
        qrels=pl.DataFrame([("other", "other:0", 1), *judged], schema=QRELS_SCHEMA, orient="row"),
    )


def stand_in(behaviour: str, monkeypatch: pytest.MonkeyPatch, **settings: float) -> Stdio:
    command = [sys.executable, str(STAND_IN), behaviour]
    monkeypatch.setenv(COMMANDS, shlex.join(command))
    return Stdio(command, **settings)  # type: ignore[arg-type]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    def run(behaviour: str, of: Dataset | None = None, k: int = 5, **settings: float) -> Outcome:
        transport = stand_in(behaviour, monkeypatch, **settings)
        measures = {**MEASURES, "retention": Retention(budgets=(20,))}
        external = system(ranking=External(transport, k=k))
        return experiments.outcome(of or dataset(), external, measures, {"last_n": Ranking(Recent())})

    return run


def values(outcome: Outcome, measure: str = "recall@1", arm: str = SYSTEM_ARM) -> dict[str, float]:
    return dict(outcome.values.filter(arm=arm, measure=measure).select("query_id", "value").iter_rows())


def answers(outcome: Outcome, query_id: str = "q0") -> list[list[str]]:
    """The messages that each text of an answer stands for."""
    documents = outcome.documents.select("document_id", "source_message_ids")
    found = outcome.run.filter(arm=SYSTEM_ARM, query_id=query_id).join(documents, on="document_id", how="left")
    return found.sort("rank")["source_message_ids"].to_list()


EVERY_ONE = {"other": 1.0, "q0": 1.0, "q1": 1.0, "q2": 1.0}


def test_one_that_keeps_the_contract_has_its_numbers_and_no_incident(run: Run) -> None:
    outcome = run("honest")
    assert values(outcome) == EVERY_ONE
    assert outcome.incidents == {}
    assert values(outcome, "aligned") == EVERY_ONE
    assert len(answers(outcome)) == 5


def test_of_more_than_k_texts_the_first_k_count(run: Run) -> None:
    outcome = run("ignores k", k=2)
    assert len(answers(outcome)) == 2
    assert outcome.incidents == {"external: answers of more than k texts": 4}
    assert outcome.run.filter(arm=SYSTEM_ARM).height == run("honest", k=2).run.filter(arm=SYSTEM_ARM).height


def test_a_text_that_is_repeated_counts_once(run: Run) -> None:
    outcome = run("repeats")
    assert answers(outcome) == [["talk:0"]]
    assert outcome.incidents == {"external: texts repeated": 4 * 4}
    assert values(outcome, "tokens@5")["q0"] == values(run("honest", k=1), "tokens@5")["q0"]


def test_what_was_said_in_another_workspace_is_told_and_finds_nothing(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process serves one workspace; this one is asked for its second without an end of the first."""
    opened = list[LineProcess]()
    begin = Stdio.open

    def open_once(transport: Stdio) -> LineProcess:
        opened[:] = opened or [begin(transport)]
        return opened[0]

    monkeypatch.setattr(Stdio, "open", open_once)
    with monkeypatch.context() as patched:
        patched.setattr(LineProcess, "close", lambda process: None)
        outcome = run("another workspace")
    opened[0].close()
    assert {query: value for query, value in values(outcome).items() if query != "other"} == {"q0": 0, "q1": 0, "q2": 0}
    assert outcome.incidents["external: texts of another workspace"] == 3 * 5
    assert any("not reset between workspaces" in flag for flag in outcome.flags)


def test_after_one_that_hangs_its_workspace_has_no_number(run: Run) -> None:
    started = time.monotonic()
    outcome = run("hangs", timeout_s=1.0)
    assert time.monotonic() - started < 20
    assert values(outcome) == {"other": 1.0, "q0": 1.0}
    assert values(outcome, arm="last_n").keys() == EVERY_ONE.keys()
    assert outcome.incidents == {"external: search timed out": 1, "external: search not run": 1}
    assert any("gave no answer to 2, which have no value, not 0" in flag for flag in outcome.flags)


def test_after_a_crash_its_workspace_has_no_number(run: Run) -> None:
    outcome = run("crashes")
    assert values(outcome) == {"other": 1.0, "q0": 1.0}
    assert outcome.incidents == {"external: search crashed": 1, "external: search not run": 1}


def test_an_error_costs_its_query_alone(run: Run) -> None:
    outcome = run("errs")
    assert values(outcome).keys() == {"other", "q0", "q2"}
    assert outcome.incidents == {"external: search error": 1}


def test_a_reply_of_another_shape_costs_its_query_alone(run: Run) -> None:
    outcome = run("wrong shape")
    assert values(outcome).keys() == {"other", "q0", "q2"}
    assert outcome.incidents == {"external: search wrong reply": 1}


def test_garbage_is_no_reply(run: Run) -> None:
    outcome = run("garbage", timeout_s=1.0)
    assert values(outcome) == {}
    assert outcome.incidents["external: lines that are no reply"] == 2
    told = "no reply within 1 s, 1 lines that are no map of JSON with its id, such as '%&$ no JSON'"
    assert any(told in flag for flag in outcome.flags)
    assert any("answered none of 4 queries and has no number" in flag for flag in outcome.flags)


def test_a_reply_without_the_id_of_its_call_is_told_at_once(run: Run) -> None:
    started = time.monotonic()
    outcome = run("forgets ids", timeout_s=60.0)
    assert time.monotonic() - started < 20
    assert outcome.incidents == {"external: search wrong reply": 4}
    assert any('a reply without the id of its call, 3: \'{"results": [{' in flag for flag in outcome.flags)


def test_chatter_between_replies_is_passed_over_and_counted(run: Run) -> None:
    outcome = run("chatters")
    assert values(outcome) == EVERY_ONE
    assert outcome.incidents == {"external: lines that are no reply": 4}


def test_a_reply_above_its_limit_is_not_read(run: Run) -> None:
    outcome = run("much", reply_mib=0.5)
    assert values(outcome) == {}
    assert outcome.incidents["external: search reply too large"] == 2


@pytest.mark.parametrize("behaviour", ["does not start", "refuses to add"])
def test_what_did_not_run_has_no_number(behaviour: str, run: Run) -> None:
    outcome = run(behaviour)
    assert outcome.values.filter(arm=SYSTEM_ARM).is_empty()
    assert values(outcome, arm="last_n").keys() == EVERY_ONE.keys()
    assert outcome.incidents["external: search not run"] == 4
    assert any("no such database" in flag or "the disk is full" in flag for flag in outcome.flags)


@pytest.mark.parametrize(
    ("behaviour", "incident"),
    [
        ("loses ids", "external: texts that lost their source ids"),
        ("unknown ids", "external: source ids that name nothing added"),
        ("names none", None),
    ],
)
def test_texts_without_their_ids_are_known_by_their_words(behaviour: str, incident: str | None, run: Run) -> None:
    outcome = run(behaviour)
    assert values(outcome) == EVERY_ONE
    assert set(outcome.incidents) == ({incident} if incident else set())
    assert answers(outcome) == answers(run("honest"))


def test_texts_that_are_edited_are_known_and_told(run: Run) -> None:
    outcome = run("edits")
    assert values(outcome) == EVERY_ONE
    assert outcome.incidents["external: texts edited"] > 4


def test_texts_that_nothing_is_like_are_unjudged_and_no_miss(run: Run) -> None:
    outcome = run("invents")
    assert values(outcome) == {}
    assert values(outcome, "aligned") == dict.fromkeys(EVERY_ONE, 0.0)
    assert any("answered 4 queries with nothing that could be aligned" in flag for flag in outcome.flags)


def test_a_word_that_names_every_message_stands_for_none(run: Run) -> None:
    outcome = run("names everything")
    assert outcome.incidents == {"external: texts that name more messages than they have words": 4}
    assert values(outcome) == {}


def test_contexts_are_measured_where_they_are_offered_and_cut_at_their_budget(run: Run) -> None:
    assert values(run("honest"), "retained@20") == {}
    last = dataset(LINES[7], LINES[0])
    assert values(run("contexts", last), "verbatim@20") == {"other": 0.0, "q0": 0.0, "q1": 0.0}
    outcome = run("large contexts", last)
    assert outcome.incidents == {"external: contexts above their budget": 3}
    assert max(values(outcome, "context_tokens@20").values()) <= 20


def test_a_context_that_nothing_is_like_is_unjudged_and_retains_not_nothing(run: Run) -> None:
    outcome = run("retold contexts")
    assert {measure: values(outcome, f"{measure}@20") for measure in ("verbatim", "summarised", "retained")} == {
        "verbatim": {}, "summarised": {}, "retained": {},
    }  # fmt: skip
    assert values(outcome, "context_tokens@20").keys() == values(outcome).keys() == EVERY_ONE.keys()
    assert any("gave 4 contexts of which nothing could be aligned" in flag for flag in outcome.flags)


def test_a_command_that_the_user_did_not_name_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(COMMANDS, "python3 other.py")
    command = ["touch", str(tmp_path / "ran")]
    with pytest.raises(LcmError, match=f"touch {tmp_path}/ran is no command that you named"):
        Stdio(command).open()
    assert not (tmp_path / "ran").exists()
