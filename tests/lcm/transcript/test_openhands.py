"""OpenHands events of both versions, in one file or a file each."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from lcm.transcript.folders import recorded_files
from lcm.transcript.reading import joined, read_pieces, reader_of
from lcm.transcript.recorded_file import RecordedFile
from lcm.transcript.runs import OpenHandsReader
from tests.lcm.transcript.recordings import columns, heard, read, read_message, read_one, write

READER = OpenHandsReader()
TOOL = {"tool_call_metadata": {"function_name": "execute_bash", "tool_call_id": "c1"}}


def message(n: int, words: str = "x", **beside: Any) -> dict[str, Any]:
    said = {"role": "user", "content": [{"type": "text", "text": words}]}
    return {"id": f"e{n}", "source": "user", "llm_message": said, "kind": "MessageEvent"} | beside


@pytest.mark.parametrize(
    ("event", "role", "words", "parts"),
    [
        (
            {"source": "user", "action": "message", "args": {"content": "Which?"}, "message": "Which?"},
            "user",
            "Which?",
            [("text", "Which?", None, None, None, None)],
        ),
        (
            {"source": "agent", "action": "finish", "args": {"final_thought": "Done."}, "message": "All done!"},
            "assistant",
            "Done.",
            [("text", "Done.", None, None, None, None)],
        ),
        (
            {"source": "agent", "action": "run", "args": {"command": "ls", "thought": "Look."}} | TOOL,
            "assistant",
            "Look.",
            [("text", "Look.", None, None, None, None), ("tool", None, "c1", "execute_bash", '{"command":"ls"}', None)],
        ),
        (
            {"source": "agent", "observation": "run", "content": "a.txt", "cause": 3},
            "tool",
            "a.txt",
            [("text", "a.txt", "3", "run", None, None)],
        ),
        (
            {"source": "agent", "kind": "SystemPromptEvent", "system_prompt": {"type": "text", "text": "You know."}},
            "system",
            "You know.",
            [("text", "You know.", None, None, None, None)],
        ),
        (
            {
                "source": "agent",
                "kind": "ActionEvent",
                "thought": [{"type": "text", "text": "Look."}],
                "reasoning_content": "Light.",
                "action": {"kind": "TerminalAction", "command": "ls"},
                "tool_name": "terminal",
                "tool_call_id": "c1",
                "tool_call": {"id": "c1", "arguments": '{"command": "ls"}'},
            },
            "assistant",
            "Look.",
            [
                ("reasoning", "Light.", None, None, None, None),
                ("text", "Look.", None, None, None, None),
                ("tool", None, "c1", "terminal", '{"command": "ls"}', None),
            ],
        ),
        (
            {
                "source": "agent",
                "kind": "ActionEvent",
                "action": {"kind": "FinishAction", "message": "Done."},
                "tool_name": "finish",
                "tool_call_id": "c2",
            },
            "assistant",
            "Done.",
            [
                ("text", "Done.", None, None, None, None),
                ("tool", None, "c2", "finish", '{"kind":"FinishAction","message":"Done."}', None),
            ],
        ),
        (
            {
                "source": "environment",
                "kind": "ObservationEvent",
                "observation": {"content": [{"type": "text", "text": "a.txt"}]},
                "tool_name": "terminal",
                "tool_call_id": "c1",
            },
            "tool",
            "a.txt",
            [("text", "a.txt", "c1", "terminal", None, None)],
        ),
        (
            {"source": "agent", "kind": "AgentErrorEvent", "error": "No.", "tool_name": "ls", "tool_call_id": "c1"},
            "tool",
            "No.",
            [("text", "No.", "c1", "ls", None, None)],
        ),
    ],
)
def test_what_an_event_says(
    event: dict[str, Any], role: str, words: str, parts: list[tuple[str | None, ...]], tmp_path: Path
) -> None:
    native = event | {"id": 7, "timestamp": "2026-01-05T09:00:00.250000"}
    said = read_message(write(tmp_path / "a.jsonl", native), READER, native)
    assert (said.role, said.content, columns(said)) == (role, words, parts)
    assert (said.message_id, said.created_at) == ("a:7", datetime(2026, 1, 5, 9, 0, 0, 250_000, UTC))


def test_states_and_condensations_are_events(tmp_path: Path) -> None:
    told = [
        {"source": "agent", "observation": "agent_state_changed", "content": ""},
        {"source": "agent", "action": "recall", "args": {}},
        {"source": "environment", "kind": "Condensation", "forgotten_event_ids": []},
        {"source": "environment", "kind": "ConversationStateUpdateEvent", "key": "k", "value": 1},
    ]
    transcript = read_one(write(tmp_path / "a.json", [message(0), *told]), READER)
    assert [event.kind for event in transcript.events] == [
        *("agent_state_changed", "recall", "Condensation", "ConversationStateUpdateEvent"),
    ]


@pytest.mark.parametrize("name", ["event-{0:05}-e{0}.json", "{0}.json"])
def test_a_folder_of_events_is_one_conversation_in_the_order_of_their_numbers(name: str, tmp_path: Path) -> None:
    for n in range(12):
        write(tmp_path / "abc" / "events" / name.format(n), message(n))
        write(tmp_path / "xyz" / "events" / name.format(n), message(n + 20))
    write(tmp_path / "abc" / "events" / "notes.txt", "not an event")
    files = [file for file in recorded_files([tmp_path]) if file.path.suffix == ".json"]
    transcripts = [one for file in files for one in joined(read_pieces(file, READER))]
    assert heard(transcripts) == {
        "abc": [f"e{n}" for n in range(12)],
        "xyz": [f"e{n}" for n in range(20, 32)],
    }
    assert [len(file.read_along) for file in files] == [11, 11]


def test_what_cannot_be_read_of_a_folder_is_put_aside_and_the_rest_is_read(tmp_path: Path) -> None:
    for n in range(3):
        write(tmp_path / "abc" / "events" / f"event-{n:05}-x.json", message(n) if n != 1 else "[broken")
    (file,) = recorded_files([tmp_path])
    (transcript,) = joined(read_pieces(file, READER))
    assert heard([transcript]) == {"abc": ["e0", "e2"]}
    assert [aside.path.name for aside in file.quarantine] == ["event-00001-x.json"]


ASKED = {"id": 0, "source": "user", "action": "message", "args": {"content": "Which?"}}
RAN = {"id": 1, "source": "agent", "action": "run", "args": {"command": "ls", "thought": ""}}
SEEN = {"id": 2, "source": "agent", "observation": "run", "content": "spruce", "cause": 1}


@pytest.mark.parametrize(
    ("run", "words"),
    [
        ({"history": [ASKED, RAN, SEEN]}, ["Which?", "", "spruce"]),
        (
            {"history": [[ASKED, {"source": "agent", "observation": "null", "content": ""}], [RAN, SEEN]]},
            ["Which?", "", "spruce"],
        ),
        ({"trajectory": [ASKED, RAN, SEEN]}, ["Which?", "", "spruce"]),
        ({"history": [message(1, "Which?")]}, ["Which?"]),
    ],
    ids=["events", "pairs", "exported", "version 1"],
)
@pytest.mark.parametrize("indent", [None, 1])
def test_a_run_holds_its_events_under_a_key(run: Any, words: list[str], indent: int | None, tmp_path: Path) -> None:
    record = {"instance_id": "sea-1"} | run | {"metrics": {"cost": 1}}
    path = write(tmp_path / "output.jsonl", record, indent=indent)
    assert reader_of(RecordedFile(path)) == READER
    one = read_one(path, READER)
    assert one.conversation_id == "output/sea-1"
    assert [m.content for m in one.messages] == words
    assert one.events[0].native == {"instance_id": "sea-1", **dict.fromkeys(run), "metrics": {"cost": 1}}


def test_runs_are_told_apart_and_what_is_no_event_of_one_is_put_aside(tmp_path: Path) -> None:
    path = write(tmp_path / "output.jsonl", {"history": [ASKED, 7]}, {"history": [ASKED], "tags": ["x"]})
    transcripts, aside = read(path, READER)
    assert [(one.conversation_id, len(one.messages)) for one in transcripts] == [("output", 1), ("output#2", 1)]
    assert aside == ["1: history 2: an event must be a JSON object, got int"]
    assert [event.kind for event in transcripts[1].events] == ["session", "tags"]
