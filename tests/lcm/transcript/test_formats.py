"""What the readers of all formats have in common: what they take, put aside, and account for."""

import re
from pathlib import Path
from typing import Any

import pytest

from lcm.errors import TranscriptError
from lcm.transcript.reading import READERS, read_pieces
from lcm.transcript.recorded_file import RecordedFile
from tests.lcm.transcript.recordings import read, write

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
NODE = {
    "id": "n",
    "message": {"id": "n", "author": {"role": "user"}, "content": {"content_type": "text", "parts": ["x"]}},
    "parent": None,
    "children": [],
}
GPT = {"mapping": {"n": NODE}, "current_node": "n"}
HUMAN = {"type": "human", "content": "x"}
HUMAN_DATA = {"type": "human", "data": {"content": "x"}}
CONSTRUCTED = {"lc": 1, "type": "constructor", "id": ["langchain", "HumanMessage"], "kwargs": {"content": "x"}}
ACTION = {"id": 1, "source": "user", "action": "message", "args": {"content": "x"}}
CLAUDE_AI = {"uuid": "c", "chat_messages": [{"sender": "human", "text": "x"}]}

TAKEN: list[tuple[Any, list[str]]] = [
    (SAID, ["chat"]),
    ({"role": "user", "tool_calls": []}, ["chat"]),
    ([SAID], ["chat"]),
    ({"messages": [SAID], "session_id": "s"}, ["chat"]),
    ({"messages": []}, ["chat"]),
    ({"messages": [{"role": "user", "parts": [{"type": "text", "text": "x"}]}]}, ["chat"]),
    ({"role": "user", "parts": [{"type": "step-start"}]}, ["chat"]),
    ({"conversations": [SAID]}, ["chat"]),
    ({"conversation": [SAID]}, ["chat"]),
    ({"prompt": [SAID], "completion": [SAID]}, ["chat"]),
    ({"prompt": "x", "completion": "y"}, ["chat"]),
    ({"messages": [SAID], "prompt": "x", "chosen": [SAID], "rejected": [SAID]}, ["chat"]),
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
    ({"working_dir": "/w", "conversation": [GOOSE]}, ["goose", "chat"]),
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
    (GPT, ["chatgpt"]),
    ({"mapping": {"r": {"message": None, "parent": None}}, "id": "c"}, ["chatgpt"]),
    *((one, ["langchain"]) for one in (HUMAN, HUMAN_DATA, CONSTRUCTED)),
    *(({"messages": [one]}, ["langchain"]) for one in (HUMAN, HUMAN_DATA, CONSTRUCTED)),
    ({"values": {"messages": [HUMAN]}, "created_at": AT}, ["langchain"]),
    ({"checkpoint": {"channel_values": {"messages": [CONSTRUCTED]}}}, ["langchain"]),
    (ACTION, ["openhands"]),
    ({"history": [ACTION]}, ["openhands"]),
    ({"trajectory": [[ACTION, ACTION]]}, ["openhands"]),
    ({"source": "agent", "observation": "run", "content": "x"}, ["openhands"]),
    ({"source": "agent", "kind": "SystemPromptEvent"}, ["openhands"]),
    (CLAUDE_AI, ["claude_ai"]),
    ({"uuid": "c", "chat_messages": []}, ["claude_ai"]),
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
    *(
        {"prompt": "x", "completion": 7},
        {"prompt": [SAID], "chosen": [SAID], "rejected": [SAID]},
        {"role": "a", "parts": ["x"]},
    ),
    *({"conversations": ["words"]}, {"items": []}, TURNS["conversations"][0]),
    *({"history": ["words"]}, {"trajectory": [[1, 2]]}, {"trajectory": "x"}, [{"action": "ls"}]),
    *({"mapping": {}}, {"mapping": {"a": "b"}}, {"mapping": {"a": {"message": "x"}}}, NODE),
    *({"type": "human"}, {"type": "tool", "content": "x"}, {"values": {"messages": [SAID]}}, {"lc": 1, "kwargs": {}}),
    *({"action": "ls", "args": {}}, {"source": "user", "action": {}}, {"source": "user", "kind": "noun"}),
    *({"chat_messages": "x"}, {"chat_messages": [SAID]}, CLAUDE_AI["chat_messages"][0]),
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
    "chatgpt": GPT,
    "claude_ai": CLAUDE_AI,
    "langchain": HUMAN,
    "openhands": ACTION,
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
    ("chatgpt", "7", ["a conversation must be a JSON object, got int"]),
    ("chatgpt", {"title": "x"}, ["expected a conversation, an object with a `mapping` of nodes"]),
    (
        "chatgpt",
        {"mapping": {"a": 7, "b": {"message": "x"}, "c": {"message": {}}}},
        [
            "mapping a: a node must be a JSON object, got int",
            "mapping b: the `message` of a node must be a JSON object, got str",
            "mapping c: the `message` of a node needs an `author` with a `role`",
        ],
    ),
    ("langchain", "7", [f"{NO_OBJECT} int"]),
    ("langchain", HUMAN | {"created_at": "noon"}, [f"{NO_INSTANT} 'noon'"]),
    (
        "langchain",
        {"messages": [7, HUMAN | {"timestamp": []}]},
        [f"messages 1: {NO_OBJECT}", f"messages 2: {NO_INSTANT}"],
    ),
    ("openhands", "7", ["an event must be a JSON object, got int"]),
    ("openhands", ACTION | {"timestamp": "noon"}, [f"{NO_INSTANT} 'noon'"]),
    ("claude_ai", "7", ["expected a session, a JSON object, got int"]),
    (
        "claude_ai",
        {"chat_messages": [7, {"sender": "human", "created_at": "noon"}]},
        ["chat_messages 1: expected a message, an object with a `sender`", f"chat_messages 2: {NO_INSTANT} 'noon'"],
    ),
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
