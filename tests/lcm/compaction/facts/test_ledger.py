"""What a ledger of facts knows after each message: last values, former ones, open questions, how commands ended."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from lcm.compaction.facts.ledger import Fact, Ledger
from lcm.compaction.facts.statement import Kind
from lcm.records.conversation import Message, Part, Role
from lcm.transcript.parts import decompose

SAID: tuple[tuple[Role, str], ...] = (
    ("user", "The request timeout is 30 s and Tuva owns src/app/main.py."),
    ("assistant", "Noted. Which port does the service use?"),
    ("user", "Port is 8417. Never push on Fridays."),
    ("assistant", "Let's go with SQLite for the store."),
    ("user", "The request timeout is 60 s now."),
)


def messages(said: Sequence[tuple[Role, str]]) -> list[Message]:
    return [Message(f"m{n}", role, words, "s") for n, (role, words) in enumerate(said)]


def fact(ledger: Ledger, kind: Kind, key: str) -> Fact:
    return ledger.facts[kind, key]


def test_the_last_value_holds_and_the_former_one_is_kept() -> None:
    found = fact(Ledger.of(messages(SAID)), "number", "request timeout time")
    assert (found.value, found.former, found.message_ids) == ("60 s", ("30 s",), ("m4",))
    assert found.is_changed


def test_a_fact_that_is_said_again_stands_in_both_messages() -> None:
    ledger = Ledger.of(messages([("user", "Tuva has the key."), ("user", "I asked Tuva."), ("user", "It rained.")]))
    assert fact(ledger, "name", "tuva").message_ids == ("m0", "m1")


def test_a_question_is_open_until_it_is_answered() -> None:
    asked = Ledger.of(messages(SAID[:2]))
    assert [key for kind, key in asked.facts if kind == "question"] == ["port service use"]
    assert not [key for kind, key in Ledger.of(messages(SAID[:3])).facts if kind == "question"]


def test_a_reply_of_the_same_speaker_or_of_something_else_answers_nothing() -> None:
    same = Ledger.of(messages([SAID[1], ("assistant", "The port of the service matters.")]))
    other = Ledger.of(messages([SAID[1], ("user", "My sister keeps three goats near the river and " + "more " * 12)]))
    assert [kind for kind, _ in same.facts if kind == "question"]
    assert [kind for kind, _ in other.facts if kind == "question"]


def run(outcome: dict[str, object], told: str) -> Ledger:
    calls = (
        Part("tool", tool_call_id="1", tool_name="bash", tool_input='{"command": "make check"}'),
        Part("tool", tool_call_id="2", tool_name="write", tool_input='{"path": "src/x.py", "content": ""}'),
    )
    results = tuple(
        Part("tool", text=told, tool_call_id=call, metadata={"raw": {"type": "tool_result", **outcome}})
        for call in ("1", "2")
    )
    return Ledger.of([Message("c", "assistant", "", "s", parts=calls), Message("r", "tool", told, "s", parts=results)])


def test_a_command_ends_as_its_result_tells() -> None:
    assert fact(run({"is_error": False}, "fine"), "command", "make check").value == "succeeded"
    assert fact(run({"is_error": True}, "no rule"), "command", "make check").value == "failed"
    assert fact(run({}, "Exit code: 2"), "command", "make check").value == "exit 2"
    ended = fact(run({}, "who knows"), "command", "make check")
    assert (ended.value, ended.message_ids) == ("", ("c",))


def test_a_change_that_failed_was_none() -> None:
    assert ("change", "src/x.py") in run({"is_error": False}, "written").facts
    assert ("change", "src/x.py") not in run({"is_error": True}, "no such folder").facts


def test_two_spellings_of_a_path_are_one_fact() -> None:
    ledger = Ledger.of(
        messages([("user", "See /home/x/src/app/main.py."), ("user", "And src/app/main.py, main.py too.")])
    )
    assert [key for kind, key in ledger.facts if kind == "path"] == ["/home/x/src/app/main.py", "main.py"]


@given(st.lists(st.sampled_from(SAID), max_size=8))
def test_a_ledger_depends_on_what_was_said_alone(said: list[tuple[Role, str]]) -> None:
    first, again = Ledger.of(messages(said)), Ledger.of(messages(said))
    assert first.facts == again.facts
    known = {message.message_id for message in messages(said)}
    for subject, one in first.facts.items():
        assert one.subject == subject
        assert one.message_ids
        assert known.issuperset(one.message_ids)
        assert one.value not in one.former


def test_what_a_shell_printed_is_no_fact_but_its_command_is() -> None:
    native = {"role": "bashExecution", "command": "find docs", "output": "docs/a.md\ndocs/b.md", "exitCode": 0}
    said = decompose(native)
    ledger = Ledger.of([Message("m0", said.role, said.content, "s", parts=said.parts, envelope=said.envelope)])
    assert {kind for kind, _ in ledger.facts} == {"command"}
