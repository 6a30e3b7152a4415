"""Real trajectories and chats: as many messages, roles and tool calls as plain JSON counts, and each comes back.

Counting knows nothing of the readers: a few lines over `json.loads` say what every file holds. Needs LCM_DATASETS_DIR.
"""

import gzip
import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from lcm.records.conversation import Transcript
from lcm.transcript.parquet import write_parquet
from lcm.transcript.parts import rebuild_record, tool_calls
from lcm.transcript.reading import joined, read_pieces, reader_of
from lcm.transcript.recorded_file import RecordedFile

TRANSCRIPTS = Path(os.environ["LCM_DATASETS_DIR"]) / "agent_transcripts"
PATHS = [path for folder in ("swe_agent", "sharegpt", "openai_chat_tools") for path in (TRANSCRIPTS / folder).iterdir()]


def text_of(path: Path) -> str:
    return (gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()).decode()


def sessions_of(path: Path) -> list[list[dict[str, Any]]]:
    """The chat messages of each session of the file."""
    if path.parent.name == "openai_chat_tools":
        return [json.loads(line)["traj"] for line in text_of(path).splitlines()]
    whole = json.loads(text_of(path))
    if path.parent.name == "sharegpt":
        return [whole["conversations"]]
    return [whole if isinstance(whole, list) else whole["history"]]


def events_of(path: Path) -> list[Any]:
    """What the file holds beside the messages."""
    if path.parent.name == "openai_chat_tools":
        return [json.loads(line) | {"traj": None} for line in text_of(path).splitlines()]
    whole = json.loads(text_of(path))
    if isinstance(whole, list):
        return []
    header = {key: None if isinstance(value, list) else value for key, value in whole.items()}
    return [header, *whole.get("trajectory", [])]


def role_of(message: dict[str, Any]) -> str:
    return {"human": "user", "gpt": "assistant"}[message["from"]] if "from" in message else message["role"]


def read(path: Path) -> list[Transcript]:
    file = RecordedFile(path)
    found = joined(read_pieces(file, reader_of(file)))
    assert file.quarantine == []
    return found


@pytest.mark.parametrize("path", sorted(PATHS), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_recorded_file_holds_what_plain_json_counts(path: Path, tmp_path: Path) -> None:
    sessions, transcripts = sessions_of(path), read(path)
    assert [len(t.messages) for t in transcripts] == [len(session) for session in sessions]
    assert [Counter(m.role for m in t.messages) for t in transcripts] == [Counter(map(role_of, s)) for s in sessions]
    recorded_calls = [c["id"] for session in sessions for said in session for c in said.get("tool_calls") or []]
    messages = [message for t in transcripts for message in t.messages]
    called = [p.tool_call_id for m in messages if m.role == "assistant" for p in m.parts if p.part_type == "tool"]
    assert called == recorded_calls
    assert sum(map(tool_calls, messages)) == len(recorded_calls)
    answers = [p.tool_call_id for m in messages if m.role == "tool" for p in m.parts]
    assert len(answers) == sum(role_of(said) == "tool" for session in sessions for said in session)
    assert set(answers) <= set(called)
    assert [json.dumps(rebuild_record(m)) for m in messages] == [json.dumps(s) for session in sessions for s in session]
    events = [event.native for t in transcripts for event in t.events]
    assert list(map(json.dumps, events)) == list(map(json.dumps, events_of(path)))
    write_parquet(transcripts, tmp_path / "all.parquet")
    assert read(tmp_path / "all.parquet") == transcripts


def test_known_files_are_of_their_known_size() -> None:
    """The counting itself, once against figures of the datasets' own description."""
    known = {"sharegpt_test_7uOhOjo.json.gz": [916], "mini_local.traj.json": [6]}
    assert {path.name: list(map(len, sessions_of(path))) for path in PATHS if path.name in known} == known
    (airline,) = (sessions_of(path) for path in PATHS if path.name == "tau_airline_dev.jsonl.gz")
    assert (len(airline), sum(map(len, airline))) == (120, 3136)


def test_no_markup_is_among_the_words_of_a_reply() -> None:
    said = [m for path in (TRANSCRIPTS / "sharegpt").iterdir() for t in read(path) for m in t.messages]
    assert not any("</" in m.content or "<p>" in m.content for m in said if m.role == "assistant")
