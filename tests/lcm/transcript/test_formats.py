"""What the readers of all formats have in common: what they take, put aside, and account for."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.errors import TranscriptError
from lcm.transcript.reading import READERS, read_pieces
from lcm.transcript.recorded_file import RecordedFile
from tests.lcm.store.contents import json_objects, json_values
from tests.lcm.transcript.recordings import natives, read, write

BY_NAME = {reader.name: reader for reader in READERS}
AT = "2026-01-05T09:00:01.500Z"
SAID = {"role": "user", "content": "x"}
PARTS = [{"text": "x"}]
WORDS = [{"type": "input_text", "text": "x"}]

CLAUDE = {"type": "user", "message": SAID}
CODEX = {"timestamp": AT, "type": "session_meta", "payload": {"id": "0a1b"}}
CODEX_SAID = {"type": "message", "id": None, "role": "user", "content": WORDS}
OPENCLAW = {"type": "message", "id": "e1", "parentId": None, "timestamp": AT, "message": SAID}
GEMINI = {"sessionId": "g1", "projectHash": "0a1b", "startTime": AT}
GOOSE = {"role": "user", "created": 1767603601, "content": [{"type": "text", "text": "x"}]}
GOOSE_CALL = {"role": "assistant", "created": 1767603601, "content": [{"type": "toolRequest", "id": "c1"}]}
CLINE = [SAID | {"content": [{"type": "text", "text": "<task>x</task>"}]}]
CURSOR = {"role": "user", "message": {"content": "<user_query>x</user_query>"}}
OPENCODE_SESSION = {"id": "ses_1", "title": "A", "time": {"created": 1767603600000}}
OPENCODE_SAID = {"info": {"id": "msg_1", "role": "user"}, "parts": [{"id": "prt_1", "type": "text", "text": "x"}]}
OPENCODE = {"info": OPENCODE_SESSION, "messages": [OPENCODE_SAID]}
TURNS = {"conversations": [{"from": "human", "value": "x"}]}
RUN = {"history": [SAID]}
TASK = {"task_id": 3, "traj": [SAID]}

TAKEN: list[tuple[Any, list[str]]] = [
    (SAID, ["chat"]),
    ({"role": "user", "tool_calls": []}, ["chat"]),
    ([SAID], ["chat"]),
    ({"messages": [SAID], "session_id": "s"}, ["chat"]),
    ({"messages": []}, ["chat"]),
    ({"messages": [{"role": "user", "parts": [{"type": "text", "text": "x"}]}]}, ["chat"]),
    ({"role": "user", "content": WORDS}, ["chat"]),
    ({"type": "message", "role": "user", "content": "x"}, ["chat"]),
    (CLAUDE, ["claude_code"]),
    (CLAUDE | {"sessionId": "s"}, ["claude_code"]),
    ({"type": "user", "message": {"content": "x"}}, ["claude_code"]),
    ({"type": "summary", "summary": "About", "leafUuid": "u1"}, ["claude_code"]),
    ({"type": "file-history-snapshot", "messageId": "u1", "snapshot": {}}, ["claude_code"]),
    ({"type": "attachment", "isSidechain": False}, ["claude_code"]),
    (CODEX, ["codex"]),
    ({"type": "response_item", "payload": {"role": "user"}}, ["codex"]),
    ({"type": "world_state", "payload": {}}, ["codex"]),
    ({"id": "e1", "timestamp": AT, "instructions": None, "git": {}}, ["codex"]),
    ({"record_type": "state"}, ["codex"]),
    (CODEX_SAID, ["codex", "chat"]),
    ({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "c2VjcmV0"}, ["codex"]),
    ({"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c1"}, ["codex"]),
    (GEMINI, ["gemini"]),
    (GEMINI | {"messages": []}, ["gemini", "chat"]),
    ({"messages": [{"type": "user", "content": "a"}]}, ["gemini"]),
    ({"id": "m2", "type": "gemini", "content": "x"}, ["gemini"]),
    ({"role": "user", "parts": PARTS}, ["gemini"]),
    ({"history": [{"role": "user", "parts": PARTS}]}, ["gemini", "swe_agent"]),
    ({"type": "session", "version": 3, "id": "0a1b", "timestamp": AT, "cwd": "/w"}, ["openclaw"]),
    (GOOSE_CALL, ["goose", "chat"]),
    ({"working_dir": "/w", "conversation": [GOOSE]}, ["goose"]),
    (OPENCLAW, ["openclaw"]),
    ({"type": "message", "timestamp": AT, "message": SAID}, ["openclaw"]),
    (CLINE, ["cline", "chat"]),
    ([SAID | {"content": "<task>x</task>"}], ["cline", "chat"]),
    (CLINE[0], ["chat"]),
    ([SAID | {"content": "<task>x"}], ["chat"]),
    (CURSOR, ["cursor"]),
    ({"role": "assistant", "message": {"content": []}}, ["cursor"]),
    (OPENCODE, ["opencode"]),
    (OPENCODE_SESSION, ["opencode"]),
    ({"info": OPENCODE_SESSION, "messages": []}, ["opencode", "chat"]),
    (TURNS, ["sharegpt"]),
    ({"conversations": []}, ["sharegpt"]),
    (RUN, ["swe_agent"]),
    ({"trajectory": [{"action": "ls", "observation": "x"}]}, ["swe_agent"]),
    ({"messages": [SAID], "trajectory_format": "m"}, ["swe_agent", "chat"]),
    (TASK, ["tau_bench"]),
    ({"task_id": 3, "traj": []}, ["tau_bench"]),
]
"""Values, and whose readers take them."""

REFUSED: list[Any] = [
    *({"role": "user"}, [], ["text"], "plain words", "", 7),
    {"uuid": "1", "parentUuid": None, "sessionId": "s", "type": "user", "message": {"role": "user", "parts": []}},
    {"uuid": "1", "type": "assistant", "message": {"role": "model", "parts": PARTS}},
    {"type": "user", "message": {"role": "user", "parts": PARTS}, "sessionId": "s"},
    {"type": "message", "id": "m1", "message": SAID},
    {"type": "user.message", "data": {"content": "x"}},
    {"type": "system", "sessionId": "s", "subtype": "init"},
    {"type": "user", "id": "1", "content": PARTS},
    {"type": "user", "message": "words"},
    {"type": ["user"], "message": {}},
    {"type": "message", "role": "user", "text": "x"},
    {"type": "tool_call", "toolCallId": "c1", "parameters": {}},
    {"type": ["session_meta"], "payload": {}},
    {"type": "message", "content": [7]},
    {"type": "error", "message": "x"},
    {"type": ["gemini"], "content": "x"},
    {"type": "model_change", "id": "x"},
    {"type": "session", "id": "0a1b", "timestamp": AT},
    {"role": "robot", "message": {"content": "x"}},
    {"role": "user", "message": {"parts": []}},
    {"role": "user", "message": {"role": "user", "content": "x"}},
    OPENCODE_SAID,
    OPENCODE_SESSION | {"role": "user"},
    {"info": {"id": "ses_1"}, "messages": [{"info": {"id": "msg_1"}, "parts": []}]},
    *({"role": "user", "parts": "x"}, {"role": ["user"], "parts": []}, {"history": "long"}),
    *({"conversations": ["words"]}, {"conversations": [SAID]}, {"items": []}, TURNS["conversations"][0]),
    *({"history": ["words"]}, {"trajectory": [[1, 2]]}, {"trajectory": "x"}, [{"action": "ls"}]),
    *({"traj": [SAID]}, {"task_id": 1, "traj": "x"}, {"task_id": 1, "traj": [1]}),
]


def test_a_value_is_taken_by_the_readers_of_its_format_and_by_no_other(tmp_path: Path) -> None:
    wrong = []
    for value, names in [*TAKEN, *((value, []) for value in REFUSED)]:
        line, document = write(tmp_path / "line", value), write(tmp_path / "document", value, indent=2)
        found = [reader.name for reader in READERS if reader.detects(RecordedFile(line))]
        if found != names:
            wrong.append((value, found))
        wrong += [(value, r.name) for r in READERS if r.name not in names and r.detects(RecordedFile(document))]
    assert wrong == []


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("chat", ["7", SAID]),
        ("claude_code", ["{broken", "7", CLAUDE, CLAUDE]),
        ("codex", ["{broken", CODEX, {"type": "response_item", "payload": SAID}]),
        ("gemini", ["{broken", {"type": "user", "content": "x"}, *[{"type": "gemini", "content": "x"}] * 2]),
        ("goose", ["{damaged", {"working_dir": "/w"}, GOOSE]),
        ("openclaw", ["{damaged", {"type": "model_change", "id": "x"}, OPENCLAW]),
    ],
)
def test_a_format_is_detected_behind_damage_and_other_records(name: str, lines: list[Any], tmp_path: Path) -> None:
    assert BY_NAME[name].detects(RecordedFile(write(tmp_path / "any.jsonl", *lines)))


def item(**payload: Any) -> dict[str, Any]:
    return {"timestamp": AT, "type": "response_item", "payload": payload}


GOOD = {
    "chat": SAID,
    "claude_code": CLAUDE,
    "codex": item(**SAID),
    "cursor": CURSOR,
    "gemini": {"type": "gemini", "content": "x"},
    "goose": GOOSE,
    "openclaw": OPENCLAW,
    "opencode": OPENCODE,
    "sharegpt": TURNS,
    "swe_agent": RUN,
    "tau_bench": TASK,
}
NO_INSTANT = "an instant must be ISO 8601 text or an epoch number, got"
NO_OBJECT = "a record must be a JSON object, got"
NO_PAYLOAD = "the `payload` of a response_item must be a JSON object, got"
NO_MESSAGE = "expected a message, an object with a `role`"
NO_TURN = "expected a turn, an object with `from` and `value`"
NO_STEP = "expected a step, an object with `response`, `thought`, `action` or `observation`"
BAD: list[tuple[str, Any, list[str]]] = [
    ("chat", "{not json", ["not JSON: Expecting property name enclosed in double quotes"]),
    ("chat", {"content": "whose?"}, [NO_MESSAGE]),
    ("chat", {"messages": []}, [NO_MESSAGE]),
    ("chat", SAID | {"timestamp": "last week"}, [f"{NO_INSTANT} 'last week'"]),
    ("chat", SAID | {"timestamp": [1]}, [f"{NO_INSTANT} [1]"]),
    ("chat", '{"role":"user","content":' + "9" * 5000 + "}", ["JSON beyond what can be read"]),
    ("chat", "[" * 100_000, ["JSON beyond what can be read"]),
    ("claude_code", '"words"', [f"{NO_OBJECT} str"]),
    ("claude_code", "[1]", [f"{NO_OBJECT} list"]),
    ("claude_code", {"type": "user", "message": "words"}, ["a record of type user needs a `message` object"]),
    ("claude_code", {"type": "assistant"}, ["a record of type assistant needs a `message` object"]),
    ("claude_code", {"type": "user", "message": {"role": [7]}}, ["the `role` of a message must be text, got list"]),
    ("claude_code", CLAUDE | {"timestamp": "noon"}, [f"{NO_INSTANT} 'noon'"]),
    ("codex", "7", [f"{NO_OBJECT} int"]),
    ("codex", {"type": "response_item", "payload": "words"}, [f"{NO_PAYLOAD} str"]),
    ("codex", {"type": "response_item", "payload": None}, [f"{NO_PAYLOAD} NoneType"]),
    ("codex", item(type="message", content="Hello"), ["a message item needs a `role`"]),
    ("codex", item(role=["user"], content="Hello"), ["a message item needs a `role`"]),
    ("codex", item(role="user") | {"timestamp": "noon"}, [f"{NO_INSTANT} 'noon'"]),
    ("cursor", "7", [f"{NO_OBJECT} int"]),
    ("cursor", {"role": "robot", "message": {"content": "x"}}, ["expected a `message` object of the `role` user or"]),
    ("cursor", {"role": "user", "message": "x"}, ["expected a `message` object of the `role` user or assistant"]),
    ("gemini", "7", [f"{NO_OBJECT} int"]),
    ("gemini", {"type": "user", "content": "y", "timestamp": "noon"}, [f"{NO_INSTANT} 'noon'"]),
    ("goose", "7", [f"{NO_OBJECT} int"]),
    ("goose", GOOSE | {"content": "words"}, ["a message needs a `role`, user or assistant, and a list"]),
    ("goose", GOOSE | {"created": "noon"}, [f"{NO_INSTANT} 'noon'"]),
    ("openclaw", "{broken", ["not JSON: "]),
    ("openclaw", "7", ["an entry must be a JSON object, got int"]),
    ("openclaw", {"type": "message", "message": "words"}, ["a message entry needs a `message` object"]),
    ("openclaw", {"type": "message", "message": {"content": ""}}, ["a message entry needs"]),
    ("openclaw", OPENCLAW | {"timestamp": "noon"}, [f"{NO_INSTANT} 'noon'"]),
    ("opencode", "[1]", ["expected a session, a JSON object, got list"]),
    (
        "opencode",
        OPENCODE | {"messages": [7, {"info": {"role": "robot"}, "parts": []}, {"parts": [1]}]},
        [
            "messages 1: a record must be a JSON object, got int",
            *(
                f"messages {number}: expected a message, an object whose `role` is user or assistant"
                for number in (2, 3)
            ),
        ],
    ),
    ("opencode", OPENCODE | {"info": {"revert": 7}, "messages": []}, ["info: `revert` must be a JSON object, got int"]),
    ("sharegpt", [1], ["expected a session, a JSON object, got list"]),
    (
        "sharegpt",
        {"conversations": [7, {"from": "gpt"}, {"from": "gpt", "value": ""}, {"from": 1, "value": ""}]},
        [f"conversations {number}: {NO_TURN}" for number in (1, 2, 4)],
    ),
    ("swe_agent", "[]", ["expected a session, a JSON object, got list"]),
    ("swe_agent", {"history": [SAID | {"content": ""}, {"content": "?"}]}, [f"history 2: {NO_MESSAGE}"]),
    ("swe_agent", {"trajectory": [7, {"state": 1}]}, [f"trajectory {number}: {NO_STEP}" for number in (1, 2)]),
    ("tau_bench", "7", ["expected a session, a JSON object, got int"]),
    ("tau_bench", {"task_id": 1, "traj": [{"content": "?"}]}, [f"traj 1: {NO_MESSAGE}"]),
]
"""A bad line of a format, and how the reasons begin for which it, or something in it, is put aside."""


@pytest.mark.parametrize(("name", "line", "reasons"), BAD)
def test_a_bad_line_is_put_aside_with_the_reason_and_the_rest_is_read(name, line, reasons, tmp_path):
    path = write(tmp_path / "talk.jsonl", GOOD[name], "", line, GOOD[name])
    transcripts, aside = read(path, BY_NAME[name])
    assert [found.startswith(f"3: {reason}") for found, reason in zip(aside, reasons, strict=True)] == [True] * len(
        aside
    )
    assert [m.content for t in transcripts for m in t.messages].count("x") == 2
    with pytest.raises(TranscriptError, match=rf"talk\.jsonl:3: {re.escape(reasons[0])}"):
        list(read_pieces(RecordedFile(path, strict=True), BY_NAME[name]))


@pytest.mark.parametrize(
    ("name", "text", "aside"),
    [
        (
            "sharegpt",
            '{\n"conversations": [\n{"from": "human", "value": "x"},\n7\n]}',
            f"4: conversations 2: {NO_TURN}",
        ),
        ("gemini", '{"messages": [\n7,\n{"type": "gemini", "content": "x"}]}', f"2: messages 1: {NO_OBJECT} int"),
        ("chat", '[\n{"role": "user", "content": "x"},\noops]', "2: after the last value that could be read: not JSON"),
        ("chat", '{"messages": [{"role": "user", "content": "x"}, 7]}', f"1: messages 2: {NO_MESSAGE}"),
        ("chat", '[{"role": "user", "content": "x"}, 7]', f"1: {NO_MESSAGE}"),
        ("chat", '{"messages": [{"role": "user", "content": "x"}]}\n7', "2: expected a session"),
    ],
)
def test_what_is_put_aside_of_a_session_has_its_line_and_place(name, text, aside, tmp_path):
    ((transcript,), (found,)) = read(write(tmp_path / "talk.json", text), BY_NAME[name])
    assert found.startswith(aside)
    assert [message.content for message in transcript.messages] == ["x"]


KEYS = {
    "chat": "role content id name created_at tool_calls",
    "claude_code": "type message uuid parentUuid sessionId isSidechain agentId timestamp summary role content",
    "codex": (
        "type payload role content message arguments input output result summary call_id name function author id"
        " timestamp created_at instructions record_type thread_name"
    ),
    "cursor": "role message type content text name input status",
    "gemini": (
        "type role id content parts thoughts toolCalls timestamp sessionId $set name args result text functionCall"
    ),
    "goose": "role content created id metadata working_dir description message_id",
    "openclaw": "type id parentId message role content timestamp name",
    "opencode": "info parts role id time type text state input output synthetic callID tool",
    "sharegpt": "from value id timestamp",
    "swe_agent": "role content response action observation thought tool_calls tool_call_ids",
    "tau_bench": "role content tool_calls id name",
}
VALUES = {
    "claude_code": "user assistant summary custom-title system",
    "codex": (
        "message agent_message reasoning function_call function_call_output tool_result session_meta response_item"
        " event_msg"
    ),
    "cursor": "user assistant text tool_use <user_query>a</user_query> <timestamp>now</timestamp> <system_reminder>",
    "gemini": "user gemini model info",
    "openclaw": "message session label model_change e1",
    "opencode": "user assistant text tool reasoning file step-start",
    "sharegpt": 'human gpt function_call <div>&#x110000;<![CDATA[a</div> {"name":"f"}',
}
FORMS = [
    *((name, None) for name in ("chat", "claude_code", "codex", "gemini", "goose", "openclaw")),
    ("goose", "conversation"),
    *(
        ("chat", "messages"),
        ("gemini", "messages"),
        ("opencode", "messages"),
        ("sharegpt", "conversations"),
        ("tau_bench", "traj"),
    ),
    *(("swe_agent", "history"), ("swe_agent", "trajectory")),
]
"""Formats, and the key of a session under which the records stand that are drawn; None where each is a line."""


def drawn_records(name: str) -> st.SearchStrategy[Any]:
    """Values of any kind, and objects of the keys and the words that the reader knows."""
    keys = st.sampled_from(KEYS[name].split())
    words = st.sampled_from(VALUES.get(name, "user assistant tool").split())
    inner = st.dictionaries(keys, json_values | words, max_size=4)
    known = st.dictionaries(keys, json_values | words | inner | st.lists(inner | json_values, max_size=2), max_size=5)
    first = st.fixed_dictionaries({}, optional=dict.fromkeys(KEYS[name].split()[:2], words | inner))
    return json_values | st.builds(lambda *parts: parts[0] | parts[1] | parts[2], json_objects, known, first)


def given_back(path: Path, name: str) -> tuple[list[str], list[str]]:
    """Return the records that come back, as JSON, and what is put aside."""
    transcripts, aside = read(path, BY_NAME[name])
    items = [*(event for t in transcripts for event in t.events), *(m for t in transcripts for m in t.messages)]
    return list(map(json.dumps, natives(items))), aside


def unfolded(session: dict[str, Any]) -> list[Any]:
    """A session with null for its lists, and their elements."""
    lists = {key: held for key, held in session.items() if isinstance(held, list) and held}
    return [session | dict.fromkeys(lists), *(element for held in lists.values() for element in held)]


@pytest.mark.parametrize(("name", "key"), FORMS)
@given(data=st.data())
def test_whatever_stands_there_comes_back_or_is_put_aside(
    name: str, key: str | None, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    records = data.draw(st.lists(drawn_records(name), max_size=4))
    if key is None:
        lines = owed = [GOOD[name], *records]
    else:
        good = {"gemini": GOOD["gemini"], "goose": GOOSE, "opencode": OPENCODE_SAID}.get(name, SAID)
        header = {"tau_bench": {"task_id": 1}, "gemini": GEMINI, "goose": {"working_dir": "/w"}}.get(name, {})
        other = data.draw(json_objects)
        lines = [header | {key: [good]}, 7, other | header | {key: records}]
        owed = [lines[1], *unfolded(lines[0]), *unfolded(lines[2])]
    found, aside = given_back(write(tmp_path_factory.getbasetemp() / "any.jsonl", *map(json.dumps, lines)), name)
    if key is None:
        found += [json.dumps(lines[int(reason.partition(":")[0]) - 1]) for reason in aside]
        assert sorted(found) == sorted(map(json.dumps, owed))
    else:
        assert len(found) + len(aside) == len(owed)
        assert set(found) <= set(map(json.dumps, owed))
        session = lines[2] | {key: [good, *records]}
        found, aside = given_back(write(tmp_path_factory.getbasetemp() / "any.json", session, indent=1), name)
        assert len(found) + len(aside) == len(unfolded(session))
        assert set(found) <= set(map(json.dumps, unfolded(session)))
