"""What a ledger of facts knows after each message: last values, former ones, open questions, how commands ended."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from lcm.compaction.facts.ledger import Ledger
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


def test_the_last_value_holds_and_the_former_one_is_kept() -> None:
    found = Ledger.of(messages(SAID)).facts["number", "request timeout time"]
    assert (found.value, found.former, found.message_ids) == ("60 s", ("30 s",), ("m4",))


def test_a_fact_that_is_said_again_stands_in_both_messages() -> None:
    ledger = Ledger.of(messages([("user", "Tuva has the key."), ("user", "I asked Tuva."), ("user", "It rained.")]))
    assert ledger.facts["name", "tuva"].message_ids == ("m0", "m1")


def test_a_question_is_open_until_another_speaker_answers_it() -> None:
    def open_questions(said: Sequence[tuple[Role, str]]) -> list[str]:
        return [key for kind, key in Ledger.of(messages(said)).facts if kind == "question"]

    of_the_same: tuple[Role, str] = ("assistant", "The port of the service matters.")
    of_another: tuple[Role, str] = ("user", "My sister keeps three goats near the river and " + "more " * 12)
    for said in (SAID[:2], [SAID[1], of_the_same], [SAID[1], of_another]):
        assert open_questions(said) == ["port service use"]
    assert open_questions(SAID[:3]) == []


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


def test_a_command_ends_as_its_result_tells_and_a_change_that_failed_was_none() -> None:
    ends = [({"is_error": False}, "fine"), ({"is_error": True}, "no rule"), ({}, "Exit code: 2"), ({}, "who knows")]
    facts = [run(outcome, told).facts for outcome, told in ends]
    assert [of["command", "make check"].value for of in facts] == ["succeeded", "failed", "exit 2", ""]
    assert facts[-1]["command", "make check"].message_ids == ("c",)
    assert [("change", "src/x.py") in of for of in facts[:2]] == [True, False]


def test_two_spellings_of_a_path_are_one_fact() -> None:
    said: list[tuple[Role, str]] = [("user", "See /home/x/src/app/main.py."), ("user", "src/app/main.py, main.py too.")]
    paths = [key for kind, key in Ledger.of(messages(said)).facts if kind == "path"]
    assert paths == ["/home/x/src/app/main.py", "main.py"]


@given(st.lists(st.sampled_from(SAID), max_size=8))
def test_a_fact_knows_its_messages_and_no_value_twice(said: list[tuple[Role, str]]) -> None:
    known = {message.message_id for message in messages(said)}
    for subject, one in Ledger.of(messages(said)).facts.items():
        assert one.subject == subject
        assert one.message_ids
        assert known.issuperset(one.message_ids)
        assert one.value not in one.former


def test_what_a_shell_printed_is_no_fact_but_its_command_is() -> None:
    native = {"role": "bashExecution", "command": "find docs", "output": "docs/a.md\ndocs/b.md", "exitCode": 0}
    said = decompose(native)
    ledger = Ledger.of([Message("m0", said.role, said.content, "s", parts=said.parts, envelope=said.envelope)])
    assert {kind for kind, _ in ledger.facts} == {"command"}
