"""What lcm does not read is refused by its name."""

import contextlib
import gzip
import io
import json
import os
import sqlite3
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from lcm.errors import TranscriptError
from lcm.transcript.foreign import foreign_name, remedy
from lcm.transcript.reading import READERS, read_transcripts
from lcm.transcript.recorded_file import RecordedFile

COPILOT = "a Copilot CLI session"
DROID, DROID_LOG = "a Droid (Factory) session", "a Droid (Factory) stream-json log"
KIMI, KIMI_STATE = "a Kimi session", "the state of a Kimi session"
QWEN = "a Qwen Code session"
SHOWN = "what Cline showed of a task, read with its api_conversation_history.json"
WITH_SESSION = "read with the file of its session"
PARQUET = "a Parquet file without columns role and content, messages, or prompt and completion"
PARTY = "a multi-party chat export"
IF_A_TALK = ': if it holds a talk, write what was said as lines {"role": ..., "content": ..., "timestamp": ...}'
AS_CHAT = ': write what was said as lines {"role": ..., "content": ..., "timestamp": ...}'
INSTRUCTIONS = "a Hugging Face style dataset of instructions"


def name_of(path: Path, content: bytes | str) -> str | None:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    name = foreign_name(RecordedFile(path))
    packed = path.with_name(f"{path.name}.gz")
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert foreign_name(RecordedFile(packed)) == name
    return name


@pytest.mark.parametrize(
    ("record", "name"),
    [
        ({"type": "session.start", "data": {"version": 1}, "id": "e1"}, COPILOT),
        ({"type": "user.message", "data": {"content": "hello"}}, COPILOT),
        ({"type": "session_start", "id": "d1", "title": "Fix"}, DROID),
        ({"type": "message", "session_id": "d1", "role": "user", "text": "hello"}, DROID_LOG),
        ({"type": "tool_call", "sessionId": "d1", "toolName": "Shell"}, DROID_LOG),
        ({"type": "metadata", "protocol_version": "1.4"}, KIMI),
        ({"type": "context.append_message", "message": {}}, KIMI),
        ({"agents": {}, "workDir": "/", "lastPrompt": "hi"}, KIMI_STATE),
        ({"sessionId": "q", "type": "assistant", "message": {"role": "model", "parts": [{"text": "hi"}]}}, QWEN),
        ({"agent:main:main": {"sessionId": "s", "updatedAt": 1}}, "OpenClaw's list of sessions"),
        ({"agentType": "general-purpose", "spawnDepth": 1}, "what Claude Code notes beside a sub-agent"),
        ({"ts": 1, "type": "say", "say": "text", "text": "hi"}, SHOWN),
        ({"ts": 1, "type": "ask", "ask": "tool"}, SHOWN),
        ({"sessionID": "s", "messageID": "m", "type": "text"}, f"a part of a message of OpenCode, {WITH_SESSION}"),
        ({"sessionID": "s", "role": "user", "time": {}}, f"a message of OpenCode without its parts, {WITH_SESSION}"),
        ({"session_meta": {}, "conversation_list": [{"sender": "a", "content": "hi"}]}, PARTY),
        ({"simulations": [], "tasks": []}, "tau2-bench results"),
        ({"features": [], "rows": []}, "a page of a Hugging Face dataset"),
        ({"instruction": "Sum", "input": "1 1", "output": "2"}, INSTRUCTIONS),
        ({"chosen": "a", "rejected": "b"}, "a Hugging Face style dataset of preferences"),
        ({"role": "_checkpoint", "id": 0}, KIMI),
        ({"mapping": {"1": {"parent": None, "message": {"fragments": []}}}}, "an export of DeepSeek"),
        ({"conversations": [{"conversation": {}, "responses": []}]}, "an export of Grok"),
        ({"runSettings": {}, "chunkedPrompt": {"chunks": []}}, "a chat of Google AI Studio"),
        ({"header": "Gemini Apps", "title": "Prompted x", "products": []}, "Google's record of activity"),
        ({"sessionId": "s", "requests": [{"message": {"text": "hi"}}]}, "a chat of VS Code"),
        ({"kind": 0, "v": {"sessionId": "s", "requests": []}}, "a chat of VS Code"),
        ({"history": [{"message": {"role": "user"}, "contextItems": []}]}, "a session of Continue"),
        ({"id": "w", "chat": {"history": {"messages": {}}}}, "an export of Open WebUI"),
        ({"messages": [{"messageId": "a", "text": "hi", "isCreatedByUser": True}]}, "an export of LibreChat"),
        ({"messages": [{"versions": [{"role": "user"}]}]}, "a conversation of LM Studio"),
        ({"name": "Ada", "is_user": True, "mes": "hi"}, "a chat of SillyTavern"),
        ({"type": "TeamState", "agent_states": {}}, "a state of AutoGen"),
        ({"source": "user", "models_usage": None, "content": "hi"}, "messages of AutoGen"),
        ({"kind": "request", "parts": [{"part_kind": "user-prompt"}]}, "messages of Pydantic AI"),
        ({"type": "message", "user": "U1", "text": "hi", "ts": "1790000000.0001"}, "an export of Slack"),
        ({"guild": {}, "channel": {}, "messages": [{"content": "hi"}]}, "an export of Discord"),
        ({"messages": [{"id": 1, "date_unixtime": "1790000000", "text": "hi"}]}, "an export of Telegram"),
        ({"some": "record"}, None),
        ({"messages": [], "history": [7], "chat": "x", "mapping": {"1": 7}, "role": ["_usage"]}, None),
    ],
)
def test_a_record_names_its_format(tmp_path: Path, record: dict[str, Any], name: str | None) -> None:
    assert name_of(tmp_path / "a", json.dumps(record)) == name
    assert name_of(tmp_path / "b", json.dumps(record, indent=1)) == name
    assert name_of(tmp_path / "c", json.dumps([record])) == name
    assert name_of(tmp_path / "d", f"{json.dumps({'other': 1})}\n{json.dumps(record)}\n") == name


@pytest.mark.parametrize(
    ("content", "name"),
    [
        ("# aider chat started at 2026-01-05 09:00:00\n\n#### fix it\n", "a Markdown chat history"),
        ("hello\n\n#### fix it\n\nDone.\n", "a Markdown chat history"),
        ("# Notes\n\nWords, and more words.\n", "plain text"),
        ("role,content\nuser,hello\nassistant,\"hi, you\"\n", "a CSV table"),
        ("role\tcontent\nuser\thello\n", "a CSV table"),
        ("one line, with a comma\n", "plain text"),
        ("über " * 20_000, "plain text"),
        ("a,b\n" + "ü,x\n" * 30_000, "a CSV table"),
        ('"' + "x" * 2**18 + "\n" * 2, "plain text"),
        (b"\xff\x00words", "a binary file"),
        ('{"role": "user", "content": "hello"}'.encode("utf-16"), "a text in UTF-16"),
        (b"words\0words", "a binary file"),
        ("", None),
        (" \n", None),
        ("{broken", None),
        ("\ufeff[{broken", None),
        ('[\n "broken', None),
        ("[", None),
        ("[2026-01-05 09:00:00] started\n[2026-01-05 09:00:01] done\n", "plain text"),
        ("[05.01.26, 09:00:01] Ada: hello\n", "a WhatsApp chat"),
        ("1/5/26, 9:00 AM - Chat is encrypted.\n1/5/26, 9:00 AM - Ada: hello\n", "a WhatsApp chat"),
        ("<!DOCTYPE html>\n<p>hello</p>\n", "a web page"),
        (b"%PDF-1.7\n", "a PDF"),
        (b"\xfd7zXZ\0....", "a file packed by xz"),
        (b"BZh91AY", "a file packed by bzip2"),
        (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
        (b"ARROW1\0\0", "an Arrow file"),
        (b"PAR1....PAR1", PARQUET),
    ],
)  # fmt: skip
def test_what_is_not_json_has_a_name(tmp_path: Path, content: bytes | str, name: str | None) -> None:
    assert name_of(tmp_path / "a", content) == name


def test_archives_and_databases_have_a_name(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as packed:
        packed.writestr("a", "b")
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        archive.addfile(tarfile.TarInfo("a"), io.BytesIO())
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as archive:
        archive.addfile(tarfile.TarInfo("a"), io.BytesIO())
    with sqlite3.connect(tmp_path / "a.db") as connection:
        connection.execute("CREATE TABLE a (b)")
    connection.close()
    pl.DataFrame({"text": ["a"]}).write_parquet(tmp_path / "a.parquet")
    assert {path.name: foreign_name(RecordedFile(path)) for path in tmp_path.iterdir()} == {
        "a.zip": "a zip archive",
        "a.tar": "a tar archive",
        "a.tar.gz": "a tar archive",
        "a.db": "a SQLite database",
        "a.parquet": PARQUET,
    }


@pytest.mark.parametrize(
    ("tables", "name"),
    [
        ("CREATE TABLE ItemTable (key, value); CREATE TABLE cursorDiskKV (key, value)", "Cursor's own database"),
        ("CREATE TABLE checkpoints (thread_id, checkpoint_ns, checkpoint_id, checkpoint)", "checkpoints of LangGraph"),
        ("CREATE TABLE sessions (id, title); CREATE TABLE messages (id, session_id, role, parts)", "Crush's database"),
        ("CREATE TABLE checkpoints (step, loss)", "a SQLite database"),
    ],
)
def test_a_database_is_known_by_its_tables(tmp_path: Path, tables: str, name: str) -> None:
    with contextlib.closing(sqlite3.connect(tmp_path / "a.db")) as connection:
        connection.executescript(tables)
    assert foreign_name(RecordedFile(tmp_path / "a.db")) == name
    assert remedy(name)


def test_the_refusal_names_what_it_is_and_what_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text(json.dumps({"type": "session.start", "data": {}}))
    with pytest.raises(TranscriptError) as refused:
        read_transcripts(path)
    names = ", ".join(sorted(reader.name for reader in READERS))
    assert str(refused.value) == f"{path}: {COPILOT}, which is not a format that lcm reads{AS_CHAT}; lcm reads: {names}"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ('{"some": "record"}', f"not a known transcript format (its keys: some){IF_A_TALK}"),
        ('[{"a": 1, "b": 1, "c": 1, "d": 1, "e": 1, "f": 1}]', f" (its keys: a, b, c, d, e, ...){IF_A_TALK}"),
        ("[[1, 2]]", f"not a known transcript format{IF_A_TALK}"),
        ('{"some": 1}\n{"some"', "torn at line 2 (not JSON: Expecting ':' delimiter (character 8)): copy or write it"),
        ("", "an empty file: copy it anew if it should hold a session"),
    ],
)
def test_of_an_unknown_file_its_keys_or_its_tear_and_a_remedy_are_told(tmp_path: Path, content: str, told: str) -> None:
    path = tmp_path / "any.json"
    path.write_text(content)
    with pytest.raises(TranscriptError) as refused:
        read_transcripts(path)
    assert told in str(refused.value).partition("; lcm reads: chat")[0]


if os.environ.get("LCM_DATASETS_DIR"):
    FOLDER = Path(os.environ["LCM_DATASETS_DIR"]) / "agent_transcripts"
    NAMES = {
        "README.md": "plain text",
        "multi_agent_fixtures/claude/*/*/subagents/*.meta.json": "what Claude Code notes beside a sub-agent",
        "multi_agent_fixtures/copilot/**/*.jsonl": COPILOT,
        "multi_agent_fixtures/droid/session_store_*.jsonl": DROID,
        "multi_agent_fixtures/droid/stream_json_*.jsonl": DROID_LOG,
        "multi_agent_fixtures/kimi/*.jsonl": KIMI,
        "multi_agent_fixtures/kimi/*state.json": KIMI_STATE,
        "multi_agent_fixtures/qwen/*.jsonl": QWEN,
        "multi_party/*.json": PARTY,
        "markdown_chat/*": "a Markdown chat history",
    }

    def test_every_recording_is_read_or_refused_by_name() -> None:
        refused = {path: name for pattern, name in NAMES.items() for path in FOLDER.glob(pattern)}
        assert len(refused) >= 25
        for path in sorted(FOLDER.rglob("*")):
            file = RecordedFile(path) if path.is_file() and path.name != "MANIFEST.json" else None
            if file is not None:
                is_read = any(reader.detects(file) for reader in READERS)
                assert is_read == (path not in refused), path
                assert is_read or foreign_name(file) == refused[path], path


@pytest.mark.parametrize(
    ("name", "how"),
    [
        (COPILOT, AS_CHAT),
        ("a zip archive", ": unpack it first"),
        ("plain text", IF_A_TALK),
        ("a CSV table", IF_A_TALK),
        ("a part of a message of OpenCode, read with the file of its session", ": put it back beside its session"),
        ("OpenClaw's list of sessions", ": the sessions that it lists are read"),
        ("a text in UTF-16", ": save it as UTF-8"),
    ],
)
def test_what_is_known_is_refused_with_how_to_have_it_read(name: str, how: str) -> None:
    assert remedy(name) == how
