"""ShareGPT exports, plain and as HTML."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.records.conversation import Event, Message, Transcript
from lcm.transcript.parts import rebuild_record
from lcm.transcript.reading import joined, read_pieces
from lcm.transcript.recorded_file import RecordedFile
from lcm.transcript.sharegpt import ROLES, ShareGptReader
from tests.lcm.store.contents import json_objects, json_values

READER = ShareGptReader()
ASKED = {"from": "human", "value": "hello"}
REPLIED = {"from": "gpt", "value": "hi"}
CODE = (
    "<div><p>Run:</p><pre><div><div><span>bash</span><svg></svg>Copy code</div><div>"
    "<code><span>cd</span> a\n  <span>ls</span> &gt; b\n</code></div></div></pre><p>Done</p></div>"
)


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., Path]:
    def write(*values: Any, name: str = "talk.jsonl") -> Path:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n".join(value if isinstance(value, str) else json.dumps(value) for value in values))
        return path

    return write


def read(path: Path) -> tuple[list[Transcript], list[str]]:
    file = RecordedFile(path)
    transcripts = joined(read_pieces(file, READER))
    assert joined(read_pieces(RecordedFile(path), READER)) == transcripts
    return transcripts, [f"{found.line}: {found.reason}" for found in file.quarantine]


def read_turn(written: Callable[..., Path], turn: dict[str, Any]) -> Message:
    """Reads one turn, and sees that it comes back exactly."""
    ((transcript,), aside) = read(written({"conversations": [turn]}))
    assert aside == []
    (message,) = transcript.messages
    assert json.dumps(rebuild_record(message)) == json.dumps(turn)
    return message


def test_every_shape_of_a_session_reads_the_same(written: Callable[..., Path]) -> None:
    session = {"id": "s1", "model": "m", "conversations": [ASKED, REPLIED], "tags": ["a", "b"], "title": "Hi"}
    paths = [
        written(session, name="line.jsonl"),
        written(json.dumps(session, indent=1), name="document.json"),
        written([session], name="array.json"),
        written(json.dumps([session], indent=1), name="long array.json"),
    ]
    assert all(READER.detects(RecordedFile(path)) for path in paths)
    readings = [read(path) for path in paths]
    assert readings == [readings[0]] * 4
    ((transcript,), aside) = readings[0]
    assert (transcript.conversation_id, transcript.title, aside) == ("s1", "Hi", [])
    assert [(m.message_id, m.role, m.content, m.session_id) for m in transcript.messages] == [
        ("s1:1", "user", "hello", "s1"),
        ("s1:2", "assistant", "hi", "s1"),
    ]
    assert [rebuild_record(m) for m in transcript.messages] == [ASKED, REPLIED]
    header = {"id": "s1", "model": "m", "conversations": None, "tags": None, "title": "Hi"}
    assert transcript.events == (Event("session", header, 0), Event("tags", "a", 2), Event("tags", "b", 2))


def test_each_session_is_a_conversation_of_its_own(written: Callable[..., Path]) -> None:
    ids = ["s1", None, 7, "s1", None, "s1", "s1#2"]
    path = written(*({"id": name, "conversations": [ASKED]} for name in ids))
    transcripts, aside = read(path)
    assert aside == []
    assert [t.conversation_id for t in transcripts] == ["s1", "talk", "7", "s1#2", "talk#2", "s1#3", "s1#2#2"]
    assert [m.message_id for t in transcripts for m in t.messages][:2] == ["s1:1", "talk:1"]


@pytest.mark.parametrize(
    ("recorded", "given"),
    [
        (["x", "x", "x"], ["x", "x#2", "x#3"]),
        (["x", "x#2", "x"], ["x", "x#2", "x#3"]),
        (["x", "x", "x#2"], ["x", "x#2", "x#2#2"]),
        (["x#2", "x", "x", "x"], ["x#2", "x", "x#3", "x#4"]),
    ],
)
def test_every_conversation_has_a_name_of_its_own(
    written: Callable[..., Path], recorded: list[str], given: list[str]
) -> None:
    sessions = [{"id": name, "conversations": [{"from": "human", "value": str(i)}]} for i, name in enumerate(recorded)]
    found, aside = read(written(*sessions))
    assert aside == []
    assert [(t.conversation_id, [m.content for m in t.messages]) for t in found] == [
        (name, [str(i)]) for i, name in enumerate(given)
    ]


@pytest.mark.parametrize("speaker", sorted(ROLES))
def test_a_speaker_has_a_role(written: Callable[..., Path], speaker: str) -> None:
    message = read_turn(written, {"from": speaker, "value": "words"})
    assert (message.role, message.author, message.content) == (ROLES[speaker], None, "words")


def test_an_unknown_speaker_is_an_assistant_with_a_name(written: Callable[..., Path]) -> None:
    message = read_turn(written, {"value": "words", "from": "Ada", "extra": [1]})
    assert (message.role, message.author, message.content) == ("assistant", "Ada", "words")


def test_a_turn_may_carry_id_and_instant(written: Callable[..., Path]) -> None:
    turn = {"id": "m9", "from": "human", "value": "hello", "timestamp": 1767603601}
    message = read_turn(written, turn)
    assert (message.message_id, message.created_at) == ("talk:m9", datetime(2026, 1, 5, 9, 0, 1, tzinfo=UTC))


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ('<div class="markdown prose light"><p>One &amp; two</p></div>', "One & two"),
        ("<div><p>One\n two</p><ol><li><p>First <b>bold</b> word</p></li><li>Second</li></ol></div>\n",
         "One two\nFirst bold word\nSecond"),
        (CODE,
         "Run:\nbash\ncd a\n  ls > b\nDone"),
        ("<div>a<br>b</div>", "a\nb"),
        ("<div><table><tr><td>a</td><td>b</td></tr></table></div>", "a\nb"),
        ("<div>not <closed</div>", "not"),
        ("<div></pre></pre> a  b </div>", "a b"),
        ("<div><![odd[ words</div>", "<div><![odd[ words</div>"),
        ("<div> open", "<div> open"),
        ("<divide></div>", "<divide></div>"),
        ("Use a <div>box</div>", "Use a <div>box</div>"),
        ("1 < 2 &amp; 3", "1 < 2 &amp; 3"),
    ],
)  # fmt: skip
def test_the_words_of_a_reply_are_what_the_page_showed(written: Callable[..., Path], value: str, words: str) -> None:
    reply = read_turn(written, {"from": "gpt", "value": value})
    assert (reply.content, reply.parts[0].text) == (words, words)
    asked = read_turn(written, {"from": "human", "value": value})
    assert asked.content == value


def test_a_function_call_is_a_tool_part(written: Callable[..., Path]) -> None:
    value = json.dumps({"name": "search", "arguments": {"q": "pens"}})
    message = read_turn(written, {"from": "function_call", "value": value})
    assert (message.role, message.content) == ("assistant", "")
    (part,) = message.parts
    assert (part.part_type, part.tool_name, part.tool_input) == ("tool", "search", '{"q":"pens"}')
    for odd in ("search(pens)", '{"call": 1}', "[" * 5000, None, {"name": "search"}):
        assert [p.tool_name for p in read_turn(written, {"from": "function_call", "value": odd}).parts] == [None]


@pytest.mark.parametrize("value", [None, 7, ["a", {"text": "b"}], {"text": "c"}, "", "half \ud800", "{}"])
def test_a_value_of_any_kind_comes_back(written: Callable[..., Path], value: Any) -> None:
    assert isinstance(read_turn(written, {"from": "gpt", "value": value}).content, str)


def test_what_is_no_turn_is_put_aside(written: Callable[..., Path]) -> None:
    path = written({"conversations": [ASKED, 7, {"from": "gpt"}, {"from": 1, "value": ""}, REPLIED]}, "", [1])
    ((transcript,), aside) = read(path)
    assert [m.content for m in transcript.messages] == ["hello", "hi"]
    wanted = "expected a turn, an object with `from` and `value`"
    assert aside == [
        *(f"1: conversations {number}: {wanted}" for number in (2, 3, 4)),
        "3: expected a session, a JSON object, got list",
    ]


def test_a_document_names_the_line(written: Callable[..., Path]) -> None:
    path = written("{", '"conversations": [', '{"from": "human", "value": "a"},', "7", "]", "}")
    assert read(path)[1] == ["4: conversations 2: expected a turn, an object with `from` and `value`"]


@pytest.mark.parametrize(
    "value",
    [{"conversations": ["words"]}, {"conversations": [{"role": "user", "content": ""}]}, {"items": []}, [], ASKED],
)
def test_what_is_not_sharegpt_is_not_taken_for_it(written: Callable[..., Path], value: Any) -> None:
    assert not READER.detects(RecordedFile(written(value)))


_turns = json_values | st.builds(
    lambda speaker, value, more: {**more, "from": speaker, "value": value},
    st.sampled_from(["human", "gpt", "function_call", "x", 1]),
    json_values | st.sampled_from(["<div>&#x110000;<![CDATA[ a</div>", '{"name": "f"}']),
    json_objects,
)


_sessions = st.builds(lambda more, turns: {**more, "conversations": turns}, json_objects, st.lists(_turns, max_size=4))


@given(sessions=st.lists(json_values | json_objects | _sessions, max_size=3))
def test_every_record_is_accounted_for(tmp_path_factory: pytest.TempPathFactory, sessions: list[Any]) -> None:
    sessions = [{"conversations": []}, *sessions]
    path = tmp_path_factory.getbasetemp() / "any.jsonl"
    path.write_text("\n".join(map(json.dumps, sessions)))
    transcripts, aside = read(path)
    objects = [session for session in sessions if isinstance(session, dict)]
    elements = [e for session in objects for held in session.values() if isinstance(held, list) for e in held]
    given_back = [rebuild_record(m) for t in transcripts for m in t.messages]
    given_back += [event.native for t in transcripts for event in t.events]
    assert len(given_back) + len(aside) == len(sessions) + len(elements)
    headers = [{k: None if isinstance(v, list) and v else v for k, v in session.items()} for session in objects]
    recorded = [json.dumps(value) for value in elements + headers]
    assert all(json.dumps(value) in recorded for value in given_back)
