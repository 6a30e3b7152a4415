"""An external memory that misbehaves is told for what it is, and has no number that it did not earn."""

import json
import shlex
import sys
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from eval.dataset.dataset import Dataset
from eval.experiment.experiment import Experiment
from eval.experiment.outcome import Outcome, _of_queries
from eval.experiment.workspace import WorkspaceEvaluator
from eval.external.process import LineProcess, PythonObject, Stdio
from eval.external.ranking import External
from eval.external.reading import ASKED_SCHEMA
from eval.external.session import FaultError, message_told, read_found, read_told, read_took_ms
from eval.measures.measure import Measure
from eval.measures.names import SYSTEM_ARM
from eval.measures.retention import Retention
from eval.measures.retrieval import Retrieval
from eval.measures.sessions import Resume, Survival
from eval.replay.workspace_replay import Bulk
from lcm.consent import COMMANDS
from lcm.errors import LcmError
from lcm.records.conversation import Message, Part
from lcm.records.query import Query
from lcm.redaction import REDACTED
from lcm.retrieval.ranking.pipeline import Ranking
from lcm.retrieval.source.branches import Recent
from tests.eval.tiny import tiny
from tests.support import experiments
from tests.support.workspaces import LINES, minute, system, transcript

STAND_IN = Path(__file__).parents[2] / "support/external/stand_in.py"
OTHERS = tuple(f"In the other house nobody ever mentioned anything but item {i}" for i in range(6))
Run = Callable[..., Outcome]
MEASURES: dict[str, Measure] = {"retrieval": Retrieval(names=["recall@1", "recall@5", "tokens@5"])}


def dataset(*texts: str) -> Dataset:
    """Two workspaces, of which the second has three queries; what is asked stands in messages 0, 3 and 5."""
    asked = texts or (LINES[0], LINES[3], LINES[5])
    judged = [(f"q{place}", f"talk:{LINES.index(text)}") for place, text in enumerate(asked) if text in LINES]
    said = transcript(OTHERS, "other", "first"), transcript(workspace_id="second")
    queries = (Query(f"q{i}", text, minute(24 * 60), workspace_id="second") for i, text in enumerate(asked))
    first = Query("other", OTHERS[0], minute(24 * 60), workspace_id="first")
    return tiny(said, (first, *queries), [("other", "other:0"), *judged])


def stand_in(behaviour: str, monkeypatch: pytest.MonkeyPatch, **settings: float) -> Stdio:
    command = [sys.executable, str(STAND_IN), behaviour]
    monkeypatch.setenv(COMMANDS, shlex.join(command))
    return Stdio(command, **settings)  # type: ignore[arg-type]


def evaluated(
    behaviour: str, monkeypatch: pytest.MonkeyPatch, of: Dataset | None = None, k: int = 5, **settings: float
) -> Outcome:
    measures = {**MEASURES, "retention": Retention(budgets=(20,))}
    external = system(ranking=External(stand_in(behaviour, monkeypatch, **settings), k=k))
    return experiments.outcome(of or dataset(), external, measures, {"last_n": Ranking(Recent())})


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    return lambda behaviour, *given, **settings: evaluated(behaviour, monkeypatch, *given, **settings)


def values(outcome: Outcome, measure: str = "recall@1", arm: str = SYSTEM_ARM) -> dict[str, float]:
    return dict(outcome.values.filter(arm=arm, measure=measure).select("query_id", "value").iter_rows())


def answers(outcome: Outcome, query_id: str = "q0") -> list[list[str]]:
    """The messages that each text of an answer stands for."""
    documents = outcome.documents.select("document_id", "source_message_ids")
    found = outcome.run.filter(arm=SYSTEM_ARM, query_id=query_id).join(documents, on="document_id", how="left")
    return found.sort("rank")["source_message_ids"].to_list()


EVERY_ONE = {"other": 1.0, "q0": 1.0, "q1": 1.0, "q2": 1.0}


@pytest.fixture(scope="module")
def honest() -> Outcome:
    """What one that keeps the contract finds."""
    with pytest.MonkeyPatch.context() as patched:
        return evaluated("honest", patched)


def test_one_that_keeps_the_contract_has_its_numbers_and_no_incident(honest: Outcome) -> None:
    assert values(honest) == values(honest, "aligned") == EVERY_ONE
    assert honest.incidents == {}
    assert len(answers(honest)) == 5
    assert values(honest, "retained@20") == {}, "it offers no contexts"


def test_of_more_than_k_texts_the_first_k_count(run: Run, honest: Outcome) -> None:
    outcome = run("ignores k", k=2)
    assert answers(outcome) == answers(honest)[:2]
    assert outcome.incidents == {"external: answers of more than k texts": 4}
    assert outcome.run.filter(arm=SYSTEM_ARM).height == 4 * 2


def test_what_an_asker_sees_is_asked_for_beside_the_k_and_left_out(run: Run, honest: Outcome) -> None:
    whole = dataset()
    hidden = tuple(replace(one, shown_message_ids=("talk:0", "talk:3")) for one in whole.queries)
    outcome = run("honest", replace(whole, queries=hidden), k=4)
    expected = [one for one in answers(honest) if one not in (["talk:0"], ["talk:3"])]
    assert answers(outcome)[: len(expected)] == expected
    assert {len(answers(outcome, query.query_id)) for query in whole.queries} == {4}
    assert outcome.incidents == {}


def test_a_text_that_is_repeated_counts_once(run: Run) -> None:
    outcome = run("repeats")
    assert answers(outcome) == [["talk:0"]]
    assert outcome.incidents == {"external: texts repeated": 4 * 4}
    found = outcome.run.filter(arm=SYSTEM_ARM, query_id="q0").join(outcome.documents, on="document_id")
    assert found["tokens"].to_list() == [values(outcome, "tokens@5")["q0"]]


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


@pytest.mark.parametrize(
    ("behaviour", "left", "incidents"),
    [
        ("crashes", {"other", "q0"}, {"external: search crashed": 1, "external: search not run": 1}),
        ("errs", {"other", "q0", "q2"}, {"external: search error": 1}),
        ("wrong shape", {"other", "q0", "q2"}, {"external: search wrong reply": 1}),
        ("chatters", set(EVERY_ONE), {"external: lines that are no reply": 4}),
        ("names everything", set(), {"external: texts that name more messages than they have words": 4}),
    ],
)
def test_a_crash_costs_its_workspace_and_an_error_its_query_alone(
    behaviour: str, left: set[str], incidents: dict[str, int], run: Run
) -> None:
    outcome = run(behaviour)
    assert (values(outcome), outcome.incidents) == (dict.fromkeys(left, 1.0), incidents)


@pytest.mark.parametrize(
    ("behaviour", "settings", "incident", "count", "told"),
    [
        (
            "garbage", {"timeout_s": 1.0}, "lines that are no reply", 2,
            "no reply within 1 s, 1 lines that are no map of JSON with its id, such as '%&$ no JSON'",
        ),
        ("garbage", {"timeout_s": 1.0}, "search timed out", 2, "answered none of 4 queries and has no number"),
        (
            "forgets ids", {"timeout_s": 60.0}, "search wrong reply", 4,
            "a reply without the id of its call, 3: '{\"results\": [{",
        ),
        ("invents", {}, "", 0, "answered 4 queries with nothing that could be aligned"),
    ],
)  # fmt: skip
def test_what_is_no_answer_has_no_number_and_is_told_at_once(
    behaviour: str, settings: dict[str, float], incident: str, count: int, told: str, run: Run
) -> None:
    started = time.monotonic()
    outcome = run(behaviour, **settings)
    assert time.monotonic() - started < 20
    assert values(outcome) == {}
    assert outcome.incidents.get(f"external: {incident}", 0) == count
    assert any(told in flag for flag in outcome.flags)
    if behaviour == "invents":
        assert values(outcome, "aligned") == dict.fromkeys(EVERY_ONE, 0.0)


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
        ("edits", "external: texts edited"),
    ],
)
def test_texts_are_known_by_their_words(behaviour: str, incident: str | None, run: Run, honest: Outcome) -> None:
    outcome = run(behaviour)
    assert values(outcome) == EVERY_ONE
    assert set(outcome.incidents) == ({incident} if incident else set())
    assert answers(outcome) == answers(honest)


def test_a_memory_that_never_gives_what_it_is_asked_for_is_told_of(run: Run) -> None:
    """A memory that cuts its answers at fewer texts has at every cutoff above the numbers of those few."""
    told = "gave 1 texts at most, never the 5 asked for: what is measured @5 is @1"
    assert any(told in flag for flag in run("one text").flags)
    assert not any("texts at most" in flag for flag in (*run("honest").flags, *run("honest", None, 50).flags))


def test_contexts_are_measured_where_they_are_offered_and_cut_at_their_budget(run: Run) -> None:
    last = dataset(LINES[7], LINES[0])
    assert values(run("contexts", last), "verbatim@20") == {"other": 0.0, "q0": 0.0, "q1": 0.0}
    outcome = run("large contexts", last)
    assert outcome.incidents == {"external: contexts above their budget": 3}
    assert max(values(outcome, "context_tokens@20").values()) <= 20


def test_a_context_that_nothing_is_like_is_unjudged_and_retains_not_nothing(run: Run) -> None:
    outcome = run("retold contexts")
    assert not [name for name in ("verbatim", "summarised", "retained") if values(outcome, f"{name}@20")]
    assert values(outcome, "context_tokens@20").keys() == values(outcome).keys() == EVERY_ONE.keys()
    assert any("gave 4 contexts of which nothing could be aligned" in flag for flag in outcome.flags)


def test_a_command_that_the_user_did_not_name_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(COMMANDS, "python3 other.py")
    command = ["touch", str(tmp_path / "ran")]
    with pytest.raises(LcmError, match=f"touch {tmp_path}/ran is no command that you named"):
        Stdio(command).open()
    assert not (tmp_path / "ran").exists()


VERBATIM = Path(__file__).parents[2] / "support/external/verbatim.py"
DIGITS = "1" + 400 * "0"


def verbatim_memory(monkeypatch: pytest.MonkeyPatch, **replies: str) -> Stdio:
    command = [sys.executable, str(VERBATIM), json.dumps(replies)]
    monkeypatch.setenv(COMMANDS, shlex.join(command))
    return Stdio(command)


def verbatim(monkeypatch: pytest.MonkeyPatch, **replies: str) -> Outcome:
    memory = verbatim_memory(monkeypatch, **replies)
    return experiments.outcome(dataset(), system(ranking=External(memory, k=5)), MEASURES)


def test_results_that_no_table_could_hold_are_judged_by_their_text(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = [
        f'{{"text": "tea", "score": {DIGITS}}}',
        r'{"text": "tea", "source_ids": ["\ud800"]}',
        r'{"text": "\ud800 tea", "score": NaN}',
    ]
    found = verbatim(monkeypatch, search=f'"results": [{", ".join(wrong)}]')
    assert values(found) == {}, "the texts are nobody's"
    assert values(found, "aligned") == dict.fromkeys(EVERY_ONE, 0.0)


def test_what_a_memory_says_is_one_line_and_no_command(monkeypatch: pytest.MonkeyPatch) -> None:
    found = verbatim(monkeypatch, reset=r'"name": "\ud800\u001b]0;owned\u0007", "version": "1\n2\u009b31m"')
    assert values(found) == EVERY_ONE
    flag = next(one for one in found.flags if one.startswith("external memory"))
    assert flag == "external memory \ufffd\ufffd]0;owned\ufffd 1 2\ufffd31m answered 4 of 4 queries"
    found = verbatim(monkeypatch, search=r'"error": "\udfff\u001b[2J gone\r\nfor good"')
    assert values(found) == {}
    assert any("error: \ufffd\ufffd[2J gone for good" in flag for flag in found.flags)


def test_what_is_read_of_a_reply_is_finite_and_on_one_line() -> None:
    assert [read_took_ms({"took_ms": one}) for one in (int(DIGITS), -1, float("nan"), 3)] == [None, None, None, 3]
    for score in (int(DIGITS), float("nan")):
        assert read_found({"results": [{"text": "tea", "score": score}]})[0].score is None
    assert read_told({"ignores": ["a.b\n\x1b[31m"], "notes": ["so\n\x1b"]})[3:] == (("a.b \ufffd[31m",), ("so \ufffd",))
    with pytest.raises(FaultError, match="notes must be a list of texts, got 'so'"):
        read_told({"notes": "so"})
    assert str(FaultError("error", "a\n\x1bb", is_end=False)) == "error: a \ufffdb"


def test_what_a_memory_notes_stands_in_the_notes_of_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    found = verbatim(monkeypatch, reset='"name": "slow", "notes": ["two ways in", "no way out"]')
    assert "external memory slow says: two ways in; no way out" in found.flags


def test_pictures_are_told_beside_the_words_and_nothing_else_is() -> None:
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
    parts = (Part("text", text="look"), Part("file", text="a goat", metadata={"raw": picture}))
    said = Message("m", "user", "look", "s", parts=parts)
    assert message_told(said, "talk")["parts"] == [{**picture, "text": "a goat"}]  # type: ignore[index]
    assert "parts" not in message_told(replace(said, parts=parts[:1]), "talk")  # type: ignore[operator]


def told_of(*faults: tuple[str | None, str | None]) -> list[str]:
    rows: list[dict[str, Any]] = [
        {"query_id": f"q{i}", "fault": fault, "detail": detail, "named": 1} for i, (fault, detail) in enumerate(faults)
    ]
    return list(
        _of_queries(pl.DataFrame(rows, schema=ASKED_SCHEMA, orient="row").with_columns(none=0, exact=0, near=0))
    )


def test_the_first_reason_of_each_kind_is_told_without_keys_and_commands() -> None:
    crash = "crashed: it ended with exit code 1: ValueError: boom"
    hostile = "error: \x1b[2Jno\nsuch key sk-proj-abcdefghijklmnopqrstuvwxyz0123456789"
    told = told_of((None, None), ("crashed", crash), ("error", hostile), ("error", "error: index is gone"))
    assert told[1] == (
        f"gave no answer to 3, which have no value, not 0: 2 error (\ufffd[2Jno such key {REDACTED}), "
        "1 crashed (it ended with exit code 1: ValueError: boom); means are of the others"
    )
    assert f"\ufffd[2Jno such key {REDACTED}" in told_of(("error", hostile))[-1], "where none was answered"


@pytest.mark.parametrize("measure", [Survival(), Resume()], ids=["survival", "resume"])
def test_measures_that_play_sessions_of_ours_are_refused(measure: Measure) -> None:
    external = system(ranking=External(PythonObject("tests.support.external.memories.Newest")))
    with pytest.raises(LcmError, match=r"measures=played plays sessions itself, .* not the external memory: leave it"):
        Experiment(WorkspaceEvaluator(dataset(), external, Bulk(), {"played": measure}))


DAEMON = """
import json, os, sys, time
for line in sys.stdin:
    beginning, told = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.write(told, str(os.getpid()).encode())
            for stream in (0, 1, 2):
                os.close(stream)
            time.sleep(60)
        os._exit(0)
    print(json.dumps({"id": json.loads(line)["id"], "name": os.read(beginning, 20).decode()}), flush=True)
"""
"""As a database that a memory starts for itself, and which outlives it."""


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="only Linux tells what runs with which variables")
def test_a_daemon_that_a_memory_began_ends_with_its_workspace(monkeypatch: pytest.MonkeyPatch) -> None:
    command = [sys.executable, "-c", DAEMON]
    monkeypatch.setenv(COMMANDS, shlex.join(command))
    with closing(Stdio(command).open()) as connection:
        daemon = Path("/proc") / connection.call("reset", {"workspace": "one"})["name"]
        assert daemon.exists()
    deadline = time.monotonic() + 5
    while daemon.exists() and "zombie" not in (daemon / "status").read_text():
        assert time.monotonic() < deadline, "it still runs"
        time.sleep(0.05)
