"""What each finder finds in a sentence, and what it leaves alone."""

import json

from hypothesis import given
from hypothesis import strategies as st

from lcm.compaction.facts.finding import FINDERS, Spans, statements_in, statements_of
from lcm.compaction.facts.reading import KINDS, Kind, read_message, read_text
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


def test_a_finder_finds_what_is_stated() -> None:
    wrong = []
    for kind, text, expected in FOUND:
        found = [(one.key, one.value) for one in statements_in(text) if one.kind == kind]
        if kind == "number" and "raised" in text:
            found = found[-1:]  # the value that it had stands before
        wrong += [(kind, text, found)] if sorted(found) != sorted(expected) else []
    assert wrong == []
    assert tuple(FINDERS) == KINDS


def stated_by(message: Message) -> set[tuple[str, str, str]]:
    return {one[:3] for one in statements_of(read_message(message))}


def test_a_call_is_a_command_and_writes_a_file_whose_content_states_nothing() -> None:
    content = "x = 1\n" * 100 + "see ../store.py, https://a.example/x\nValueError: no such plot"
    calls = {
        "bash": {"command": "git mv a.py b.py"},
        "write": {"path": "src/x.py", "content": content},
        "read": {"path": "src/y.py"},
    }
    parts = [Part("tool", tool_call_id=name, tool_name=name, tool_input=json.dumps(of)) for name, of in calls.items()]
    assert stated_by(Message("m", "assistant", "", "s", parts=tuple(parts))) == {
        *(("command", "git mv a.py b.py", ""), ("change", "b.py", "written"), ("change", "a.py", "gone")),
        *(("path", "a.py", ""), ("path", "b.py", "")),
        *(("path", "src/x.py", ""), ("change", "src/x.py", "written"), ("path", "src/y.py", "")),
    }


def test_only_errors_of_a_tool_are_facts_and_no_rules_of_an_assistant() -> None:
    printed = "total 412\n-rw- src/x.py 2026-03-04\nValueError: no such plot"
    assert stated_by(Message("m", "tool", printed, "s")) == {("error", "valueerror: no such plot", "")}
    words = "Never push on Fridays. I prefer tea."
    assert {kind for kind, *_ in stated_by(Message("m", "user", words, "s"))} == {"rule", "preference"}
    assert not stated_by(Message("m", "assistant", words, "s"))


def test_code_and_numbered_lines_of_a_file_are_no_prose() -> None:
    said = "Tuva never leaves Gothenburg."
    for text in ("```\nNever push on Fridays, Tuva\n```", f"12:{said}", f"12| {said}", f"src/x.py:12:{said}"):
        assert not [one for one in statements_in(text) if one.kind in ("rule", "name")]
    assert [one for one in statements_in(f"12:30 {said}") if one.kind == "name"]


@given(st.lists(st.sampled_from([text for _, text, _ in FOUND]) | st.text(max_size=60), max_size=6))
def test_what_is_said_stands_where_it_is_said_to(lines: list[str]) -> None:
    text = "\n".join(lines)
    read = read_text(text)
    for finder in FINDERS.values():
        assert all(text[one.start : one.end] == one.said for one in finder(read))


@given(st.sampled_from([text for kind, text, _ in FOUND if kind not in ("change", "command")]), st.integers(1, 3))
def test_a_sentence_states_the_same_wherever_it_stands(sentence: str, lines: int) -> None:
    among = "\n".join(["It rained."] * lines + [f"- {sentence}", "It rained again."])
    assert {one[:4] for one in statements_in(sentence)} == {one[:4] for one in statements_in(among)}


PLACES = st.integers(0, 20)


@given(spans=st.lists(st.tuples(PLACES, PLACES), max_size=8), start=PLACES, end=PLACES)
def test_a_stretch_is_held_where_one_begins_no_later_and_ends_no_earlier(spans, start, end):
    assert Spans(spans).hold(start, end) == any(first <= start and end <= last for first, last in spans)
