"""What each finder finds in a sentence, and what it leaves alone."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lcm.compaction.facts.finding import FINDERS, Spans, statements_in, statements_of
from lcm.compaction.facts.reading import read_message, read_text
from lcm.compaction.facts.statement import KINDS, Kind
from lcm.records.conversation import Message, Part

FOUND: list[tuple[Kind, str, list[tuple[str, str]]]] = [
    ("path", "Look at src/app/main.py, not at and/or e.g. this.", [("src/app/main.py", "")]),
    ("path", "The log lies in /var/log/app and ./notes.md.", [("/var/log/app", ""), ("notes.md", "")]),
    ("path", "sed 's/a/b/' is no path", []),
    ("path", "see https://example.org/a/b.html", []),
    ("change", "I created src/app/main.py and removed old.txt.", [("old.txt", "gone"), ("src/app/main.py", "written")]),
    ("change", "Nothing was done to main.py.", []),
    ("command", "$ make check\nall fine", [("make check", "")]),
    ("command", "I ran `pytest -q` and it failed with exit code 2.", [("pytest -q", "exit 2")]),
    ("command", "`pytest -q` passed, `make` is a word", [("pytest -q", "succeeded")]),
    ("command", "tool: ran `make check`: 12 lines", [("make check", "succeeded")]),
    ("command", "tool: ran `make check`: exit code 1; 3 failed", [("make check", "failed")]),
    ("error", "then ValueError: no such plot", [("valueerror: no such plot", "")]),
    ("error", "an error is no ValueError by itself", []),
    ("error", "catch (error: any) {", []),
    ("error", "showError(errorMessage: string): void {", []),
    ("error", "throw new Error(`Error: ${message}`));", []),
    ("identifier", "Commit 3f9a2b1 closes ABC-123.", [("3f9a2b1", ""), ("ABC-123", "")]),
    ("identifier", "The booking reference is QX7P2L.", [("booking reference", "QX7P2L")]),
    ("identifier", "It weighs 203MB and is `run_all()`.", [("run_all", "")]),
    ("url", "See https://example.org/x?a=1.", [("https://example.org/x?a=1", "")]),
    ("number", "The request timeout is 30 seconds.", [("request timeout time", "30 s")]),
    ("number", "We raised the request timeout from 30 s to 1,200 s.", [("request timeout time", "1200 s")]),
    ("number", "port: 8080, in: 3, year: 2026", [("port number", "8080")]),
    ("number", "It costs €1,250.50 for the roof.", [("roof money", "1250.50 eur")]),
    ("date", "The dentist: Friday 13 March 2026, 15:20.", [("dentist day", "2026-03-13"), ("dentist clock", "15:20")]),
    ("date", "The report is due 2026-05-01.", [("report due day", "2026-05-01")]),
    ("date", "March 87 is no day and 25:00 no time.", []),
    ("name", "Then Tuva met Nadja Berg in Gothenburg.", [("tuva", ""), ("nadja berg", ""), ("gothenburg", "")]),
    ("name", "Hendrik moved to the coast. Nothing is lost.", [("hendrik", "")]),
    ("decision", "Let's go with SQLite for the store.", [("go sqlite store", "yes")]),
    ("decision", "Should we go with SQLite?", []),
    ("rule", "Never push on Fridays.", [("fridays push", "forbidden not")]),
    ("rule", "He pushed on Friday.", []),
    ("preference", "I really prefer tea to coffee.", [("coffee tea", "likes")]),
    ("preference", "I don't like running.", [("running", "dislikes")]),
    ("preference", "My favourite colour is dark blue.", [("favourite colour", "dark blue")]),
    ("preference", "I'd like to book a table.", []),
    ("question", "Which port does the service use?", [("port service use", "")]),
    ("question", "Really?", []),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "text", "expected"), FOUND, ids=[f"{kind}: {text[:40]}" for kind, text, _ in FOUND])
def test_a_finder_finds_what_is_stated(kind: Kind, text: str, expected: list[tuple[str, str]]) -> None:
    found = [(one.key, one.value) for one in statements_in(text) if one.kind == kind]
    if kind == "number" and "raised" in text:
        found = found[-1:]  # the value that it had stands before
    assert sorted(found) == sorted(expected)


def test_every_kind_has_a_finder() -> None:
    assert tuple(FINDERS) == KINDS


def test_a_call_is_a_command_and_writes_a_file() -> None:
    parts = (
        Part("tool", tool_call_id="1", tool_name="bash", tool_input='{"command": "git mv a.py b.py"}'),
        Part("tool", tool_call_id="2", tool_name="write", tool_input='{"path": "src/x.py", "content": "pass"}'),
        Part("tool", tool_call_id="3", tool_name="read", tool_input='{"path": "src/y.py"}'),
    )
    message = Message("m", "assistant", "", "s", parts=parts)
    found = {one[:3] for one in statements_of(read_message(message))}
    assert ("command", "git mv a.py b.py", "") in found
    assert {one for one in found if one[0] == "change"} == {
        ("change", "b.py", "written"), ("change", "a.py", "gone"), ("change", "src/x.py", "written"),
    }  # fmt: skip
    assert ("path", "src/y.py", "") in found


def test_what_a_written_file_names_is_told_by_nobody() -> None:
    content = "x = 1\n" * 100 + "see ../store.py, https://a.example/x\nValueError: no such plot"
    given = json.dumps({"path": "src/x.py", "content": content})
    message = Message("m", "assistant", "", "s", parts=(Part("tool", tool_name="write", tool_input=given),))
    assert {one[:2] for one in statements_of(read_message(message))} == {("path", "src/x.py"), ("change", "src/x.py")}


def test_of_what_a_tool_brought_only_errors_are_facts() -> None:
    said = "total 412\n-rw- src/x.py 2026-03-04\nValueError: no such plot"
    message = Message("m", "tool", said, "s")
    assert [(one.kind, one.key) for one in statements_of(read_message(message))] == [
        ("error", "valueerror: no such plot")
    ]


def test_an_assistant_lays_down_no_rules() -> None:
    words = "Never push on Fridays. I prefer tea."
    of_user = {one.kind for one in statements_of(read_message(Message("m", "user", words, "s")))}
    of_assistant = {one.kind for one in statements_of(read_message(Message("m", "assistant", words, "s")))}
    assert of_user == {"rule", "preference"}
    assert not of_assistant


def test_code_is_no_prose() -> None:
    assert not [one for one in statements_in("```\nNever push on Fridays, Tuva\n```") if one.kind in ("rule", "name")]


@pytest.mark.parametrize("before", ["12:", "12| ", "src/x.py:12:"])
def test_a_numbered_line_of_a_file_is_no_prose(before: str) -> None:
    said = "Tuva never leaves Gothenburg."
    assert not [one for one in statements_in(f"{before}{said}") if one.kind in ("rule", "name")]
    assert [one for one in statements_in(f"12:30 {said}") if one.kind == "name"]


@settings(max_examples=150)
@given(st.lists(st.sampled_from([text for _, text, _ in FOUND]) | st.text(max_size=60), max_size=6))
def test_what_is_said_stands_where_it_is_said_to(lines: list[str]) -> None:
    text = "\n".join(lines)
    read = read_text(text)
    for finder in FINDERS.values():
        found = list(finder.find(read))
        assert found == list(finder.find(read))
        assert all(text[one.start : one.end] == one.said for one in found)


@given(st.sampled_from([text for kind, text, _ in FOUND if kind not in ("change", "command")]), st.integers(1, 3))
def test_a_sentence_states_the_same_wherever_it_stands(sentence: str, lines: int) -> None:
    alone = {one[:4] for one in statements_in(sentence)}
    among = {
        one[:4] for one in statements_in("\n".join(["It rained."] * lines + [f"- {sentence}", "It rained again."]))
    }
    assert alone == among


STRETCHES = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), max_size=8)


@given(spans=STRETCHES, start=st.integers(0, 20), end=st.integers(0, 20))
def test_a_stretch_is_held_where_one_begins_no_later_and_ends_no_earlier(
    spans: list[tuple[int, int]], start: int, end: int
) -> None:
    assert Spans(spans).hold(start, end) == any(first <= start and end <= last for first, last in spans)
