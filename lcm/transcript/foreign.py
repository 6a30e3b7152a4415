"""Formats that are known but not read, so that a file can be refused by name."""

import csv
from collections.abc import Callable, Mapping
from typing import Any

from lcm.errors import TranscriptError
from lcm.given import opened
from lcm.transcript.fields import kind
from lcm.transcript.recorded_file import RecordedFile

_HEAD_BYTES = 2**16

_ARCHIVES: tuple[tuple[int, bytes, str], ...] = (
    (0, b"PK\x03\x04", "a zip archive"),
    (257, b"ustar", "a tar archive"),
    (0, b"\xfd7zXZ\0", "a file packed by xz"),
    (0, b"BZh", "a file packed by bzip2"),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
)
"""Offset, bytes there, name."""
_MAGIC: tuple[tuple[int, bytes, str], ...] = (
    *_ARCHIVES,
    (0, b"SQLite format 3\0", "a SQLite database"),
    (0, b"%PDF-", "a PDF"),
    (0, b"PAR1", "a Parquet file without columns role and content, messages, or prompt and completion"),
    (0, b"ARROW1", "an Arrow file"),
)
_HARDLY_A_TALK = ("plain text", "a binary file", "a CSV table")

_COPILOT_TYPES = frozenset({"user.message", "assistant.message", "assistant.turn_start", "tool.execution_start"})
_KIMI_TYPES = frozenset({"config.update", "turn.prompt", "usage.record"})


def _has(*keys: str) -> Callable[[Mapping[str, Any]], bool]:
    return lambda record: all(key in record for key in keys)


def _is_copilot(record: Mapping[str, Any]) -> bool:
    named = kind(record)
    return isinstance(record.get("data"), dict) and (named.startswith("session.") or named in _COPILOT_TYPES)


def _is_droid_log(record: Mapping[str, Any]) -> bool:
    has_session = "session_id" in record or "sessionId" in record
    says = kind(record) == "message" and "text" in record and "role" in record
    return has_session and (says or (kind(record) == "tool_call" and "toolName" in record))


def _is_shown_by_cline(record: Mapping[str, Any]) -> bool:
    return kind(record) in ("say", "ask") and "ts" in record and kind(record) in record


def _is_kimi(record: Mapping[str, Any]) -> bool:
    named = kind(record)
    is_header = named == "metadata" and "protocol_version" in record
    return is_header or named.startswith("context.") or named in _KIMI_TYPES


def _is_qwen(record: Mapping[str, Any]) -> bool:
    message = record.get("message")
    return "sessionId" in record and isinstance(message, dict) and isinstance(message.get("parts"), list)


def _is_session_list(record: Mapping[str, Any]) -> bool:
    return any(isinstance(held, dict) and "sessionId" in held and "updatedAt" in held for held in record.values())


_Recognised = tuple[Callable[[Mapping[str, Any]], bool], str]

_PIECES: tuple[_Recognised, ...] = (
    (_has("agentType", "spawnDepth"), "what Claude Code notes beside a sub-agent"),
    (_is_shown_by_cline, "what Cline showed of a task, read with its api_conversation_history.json"),
    (_has("sessionID", "messageID", "type"), "a part of a message of OpenCode, read with the file of its session"),
    (_has("sessionID", "role", "time"), "a message of OpenCode without its parts, read with the file of its session"),
    (_is_session_list, "OpenClaw's list of sessions"),
)
"""What is read with a session, or says nothing without one."""

_RECORDS: tuple[_Recognised, ...] = (
    (_is_copilot, "a Copilot CLI session"),
    (lambda record: kind(record) == "session_start", "a Droid (Factory) session"),
    (_is_droid_log, "a Droid (Factory) stream-json log"),
    (_is_kimi, "a Kimi session"),
    (_has("agents", "workDir", "lastPrompt"), "the state of a Kimi session"),
    (_is_qwen, "a Qwen Code session"),
    *_PIECES,
    (_has("session_meta", "conversation_list"), "a multi-party chat export"),
    (_has("simulations", "tasks"), "tau2-bench results"),
    (_has("features", "rows"), "a page of a Hugging Face dataset"),
    (_has("instruction", "output"), "a Hugging Face style dataset of instructions"),
    (_has("chosen", "rejected"), "a Hugging Face style dataset of preferences"),
)
"""Asked in this order, of each of the first records."""


def remedy(name: str) -> str:
    """How what is known by that name can be read after all; empty where it is hardly a talk."""
    if name in (*_HARDLY_A_TALK, *(piece for _, piece in _PIECES)):
        return ""
    if name in (archive for *_, archive in _ARCHIVES):
        return ": unpack it first"
    return ': write what was said as lines {"role": ..., "content": ..., "timestamp": ...}'


def container_name(file: RecordedFile) -> str | None:
    """Name what the file is by its first bytes, unpacked: a tar's first member may look like a transcript."""
    head = _head(file)
    return next((name for offset, magic, name in _MAGIC if head[offset:].startswith(magic)), None)


def foreign_name(file: RecordedFile) -> str | None:
    """Name the format of a file that no reader recognises; None where we do not know it either."""
    if container := container_name(file):
        return container
    head = _head(file)
    try:
        values = [file.first] if isinstance(file.first, dict) else file.first
    except TranscriptError:  # torn: it may have been anything
        return None
    records = [value for value in values if isinstance(value, dict)]
    for recognises, name in _RECORDS:
        if any(map(recognises, records)):
            return name
    return None if values else _text_name(head)


def _head(file: RecordedFile) -> bytes:
    """How the file begins, unpacked."""
    try:
        with opened(file.path, TranscriptError) as stream:
            return stream.read(_HEAD_BYTES)
    except OSError:
        return b""


def _text_name(head: bytes) -> str | None:
    if not head.strip() or head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"["):
        return None
    # The head may end inside a character.
    text = head.decode("utf-8", "ignore" if len(head) == _HEAD_BYTES else "replace")
    if "\0" in text or "\ufffd" in text:
        return "a binary file"
    lines = text.splitlines()[:-1] if len(head) == _HEAD_BYTES else text.splitlines()
    if any(line.startswith(("# aider chat", "#### ")) for line in lines):
        return "a Markdown chat history"
    return "a CSV table" if _is_table([line for line in lines if line.strip()]) else "plain text"


def _is_table(lines: list[str]) -> bool:
    """Say whether all lines have as many fields as the first, and more than one."""
    for delimiter in (",", "\t", ";"):
        try:
            widths = {len(fields) for fields in csv.reader(lines, delimiter=delimiter)}
        except csv.Error:
            continue
        if len(widths) == 1 and len(lines) > 1 and widths.pop() > 1:
            return True
    return False
