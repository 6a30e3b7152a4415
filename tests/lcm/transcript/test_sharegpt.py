"""ShareGPT exports, plain and as HTML."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from lcm.records.conversation import Event, Message
from lcm.transcript.chat import ROLES, ShareGptReader
from tests.lcm.transcript.recordings import read, read_message, read_one, rebuilt, write

READER = ShareGptReader()
ASKED = {"from": "human", "value": "hello"}
REPLIED = {"from": "gpt", "value": "hi"}
CODE = (
    "<div><p>Run:</p><pre><div><div><span>bash</span><svg></svg>Copy code</div><div>"
    "<code><span>cd</span> a\n  <span>ls</span> &gt; b\n</code></div></div></pre><p>Done  now</p></div>"
)


def read_turn(folder: Path, turn: dict[str, Any]) -> Message:
    return read_message(write(folder / "talk.jsonl", {"conversations": [turn]}), READER, turn)


def test_every_shape_of_a_session_reads_the_same(tmp_path: Path) -> None:
    session = {"id": "s1", "model": "m", "conversations": [ASKED, REPLIED], "tags": ["a", "b"], "title": "Hi"}
    paths = [
        write(tmp_path / "line.jsonl", session),
        write(tmp_path / "document.json", session, indent=1),
        write(tmp_path / "array.json", [session]),
        write(tmp_path / "long array.json", [session], indent=1),
    ]
    readings = [read_one(path, READER) for path in paths]
    transcript = readings[0]
    assert readings == [transcript] * 4
    assert (transcript.conversation_id, transcript.title) == ("s1", "Hi")
    assert [(m.message_id, m.role, m.content, m.session_id) for m in transcript.messages] == [
        ("s1:1", "user", "hello", "s1"),
        ("s1:2", "assistant", "hi", "s1"),
    ]
    assert rebuilt(transcript) == [json.dumps(ASKED), json.dumps(REPLIED)]
    header = {"id": "s1", "model": "m", "conversations": None, "tags": None, "title": "Hi"}
    assert transcript.events == (Event("session", header, 0), Event("tags", "a", 2), Event("tags", "b", 2))


@pytest.mark.parametrize(
    ("recorded", "given"),
    [
        (["s1", None, 7, "s1", None], ["s1", "talk", "7", "s1#2", "talk#2"]),
        (["x", "x", "x"], ["x", "x#2", "x#3"]),
        (["x", "x#2", "x"], ["x", "x#2", "x#3"]),
        (["x", "x", "x#2"], ["x", "x#2", "x#2#2"]),
        (["x#2", "x", "x", "x"], ["x#2", "x", "x#3", "x#4"]),
    ],
)
def test_each_session_is_a_conversation_with_a_name_of_its_own(tmp_path, recorded, given):
    sessions = [{"id": name, "conversations": [{"from": "human", "value": str(i)}]} for i, name in enumerate(recorded)]
    found, aside = read(write(tmp_path / "talk.jsonl", *sessions), READER)
    assert aside == []
    assert [(t.conversation_id, [(m.message_id, m.content) for m in t.messages]) for t in found] == [
        (name, [(f"{name}:1", str(i))]) for i, name in enumerate(given)
    ]


def test_a_speaker_has_a_role_and_an_unknown_one_is_an_assistant_with_a_name(tmp_path: Path) -> None:
    for speaker, role, author in [*((name, role, None) for name, role in ROLES.items()), ("Ada", "assistant", "Ada")]:
        message = read_turn(tmp_path, {"value": "words", "from": speaker, "extra": [1]})
        assert (message.role, message.author, message.content) == (role, author, "words")


def test_a_turn_may_carry_id_and_instant(tmp_path: Path) -> None:
    turn = {"id": "m9", "from": "human", "value": "hello", "timestamp": 1767603601}
    message = read_turn(tmp_path, turn)
    assert (message.message_id, message.created_at) == ("talk:m9", datetime(2026, 1, 5, 9, 0, 1, tzinfo=UTC))


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ('<div class="markdown prose light"><p>One &amp; two</p></div>', "One & two"),
        ("<div><p>One\n two</p><ol><li><p>First <b>bold</b> word</p></li><li>Second</li></ol></div>\n",
         "One two\nFirst bold word\nSecond"),
        (CODE,
         "Run:\nbash\ncd a\n  ls > b\nDone now"),
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
def test_the_words_of_a_reply_are_what_the_page_showed(tmp_path: Path, value: str, words: str) -> None:
    reply = read_turn(tmp_path, {"from": "gpt", "value": value})
    assert (reply.content, reply.parts[0].text) == (words, words)
    asked = read_turn(tmp_path, {"from": "human", "value": value})
    assert asked.content == value


def test_a_function_call_is_a_tool_part(tmp_path: Path) -> None:
    value = json.dumps({"name": "search", "arguments": {"q": "pens"}})
    message = read_turn(tmp_path, {"from": "function_call", "value": value})
    assert (message.role, message.content) == ("assistant", "")
    (part,) = message.parts
    assert (part.part_type, part.tool_name, part.tool_input) == ("tool", "search", '{"q":"pens"}')
    for odd in ("search(pens)", '{"call": 1}', "[" * 5000, None, {"name": "search"}):
        assert [p.tool_name for p in read_turn(tmp_path, {"from": "function_call", "value": odd}).parts] == [None]
