"""Formats that are known but not read, so that a file can be refused by name."""

import csv
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from lcm.encoding import well_formed
from lcm.errors import TranscriptError
from lcm.given import opened
from lcm.transcript.database import has_tables
from lcm.transcript.fields import kind, list_in, object_in
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
_DATABASE = "a SQLite database"
_UTF_16 = "a text in UTF-16"
_MAGIC: tuple[tuple[int, bytes, str], ...] = (
    *_ARCHIVES,
    (0, b"SQLite format 3\0", _DATABASE),
    (0, b"%PDF-", "a PDF"),
    (0, b"PAR1", "a Parquet file without columns role and content, messages, or prompt and completion"),
    (0, b"ARROW1", "an Arrow file"),
    (0, b"\xff\xfe", _UTF_16),
    (0, b"\xfe\xff", _UTF_16),
)
_DATABASES: tuple[tuple[dict[str, str], str], ...] = (
    ({"ItemTable": "key value", "cursorDiskKV": "key value"}, "Cursor's own database"),
    ({"checkpoints": "thread_id checkpoint_ns checkpoint"}, "checkpoints of LangGraph"),
    ({"sessions": "id title", "messages": "session_id role parts"}, "Crush's database"),
)
"""Tables with columns, name."""
_AS_CHAT = 'write what was said as lines {"role": ..., "content": ..., "timestamp": ...}'
_IF_A_TALK = f": if it holds a talk, {_AS_CHAT}"
_HARDLY_A_TALK = ("plain text", "a binary file", "a CSV table", "a web page")
_SESSION_LIST = "OpenClaw's list of sessions"
_HOW = {
    _SESSION_LIST: ": the sessions that it lists are read",
    _UTF_16: ": save it as UTF-8",
    "Cursor's own database": ": name the transcripts of its agents, below ~/.cursor/projects",
    "checkpoints of LangGraph": ": write the messages of each thread's state as JSON, with messages_to_dict",
}
"""What is read in the place of the file, or how that is written."""
_IS_JSON = re.compile(rb"\s*(\{|\[\s*([\[{\"\]]|$))")
"""How JSON begins that may hold a talk: a log, too, begins its lines with a bracket."""
_MAYBE_JSON = (b"", b"{", b"[", b"\x1f", b"\x28")
"""How JSON begins, or what is packed, or nothing yet."""
_SHOWN_KEYS, _SHOWN_CHARACTERS = 5, 80
_WHATSAPP = re.compile(
    r"[\u200e\s]*\[?\d{1,4}[./-]\d{1,2}[./-]\d{1,4},? \d{1,2}:\d{2}[^\n]{0,12}(\] | - )[^:\n]{1,60}: "
)

_COPILOT_TYPES = frozenset({"user.message", "assistant.message", "assistant.turn_start", "tool.execution_start"})
_KIMI_TYPES = frozenset({"config.update", "turn.prompt", "usage.record"})
_KIMI_ROLES = ("_system_prompt", "_checkpoint", "_usage")


_Recognised = tuple[Callable[[Mapping[str, Any]], bool], str]


def _has(*keys: str) -> Callable[[Mapping[str, Any]], bool]:
    return lambda record: all(key in record for key in keys)


def _holds(name: str, *keys: str) -> Callable[[Mapping[str, Any]], bool]:
    """Of a record with a list: the first of its elements has these keys."""
    return lambda record: any(isinstance(held, dict) and _has(*keys)(held) for held in list_in(record, name)[:1])


def _is_copilot(record: Mapping[str, Any]) -> bool:
    named = kind(record)
    return isinstance(record.get("data"), dict) and (named.startswith("session.") or named in _COPILOT_TYPES)


def _is_droid_log(record: Mapping[str, Any]) -> bool:
    has_session = "session_id" in record or "sessionId" in record
    says = kind(record) == "message" and "text" in record and "role" in record
    return has_session and (says or (kind(record) == "tool_call" and "toolName" in record))


def _is_kimi(record: Mapping[str, Any]) -> bool:
    named = kind(record)
    is_header = named == "metadata" and "protocol_version" in record
    is_mark = record.get("role") in _KIMI_ROLES
    return is_header or is_mark or named.startswith("context.") or named in _KIMI_TYPES


def _is_deepseek(record: Mapping[str, Any]) -> bool:
    nodes = list(object_in(record, "mapping").values())[:3]
    return any("fragments" in object_in(node, "message") for node in nodes)


def _is_session_list(record: Mapping[str, Any]) -> bool:
    return any(isinstance(held, dict) and "sessionId" in held and "updatedAt" in held for held in record.values())


def _is_of_vs_code(record: Mapping[str, Any]) -> bool:
    return any("requests" in held and "sessionId" in held for held in (record, object_in(record, "v")))


def _has_parts(record: object) -> bool:
    return isinstance(record, dict) and isinstance(record.get("parts"), list)


_PIECES: tuple[_Recognised, ...] = (
    (_has("agentType", "spawnDepth"), "what Claude Code notes beside a sub-agent"),
    (
        lambda record: kind(record) in ("say", "ask") and _has("ts", kind(record))(record),
        "what Cline showed of a task, read with its api_conversation_history.json",
    ),
    (_has("sessionID", "messageID", "type"), "a part of a message of OpenCode, read with the file of its session"),
    (_has("sessionID", "role", "time"), "a message of OpenCode without its parts, read with the file of its session"),
    (_is_session_list, _SESSION_LIST),
)
"""What is read with a session, or says nothing without one."""

_RECORDS: tuple[_Recognised, ...] = (
    (_is_copilot, "a Copilot CLI session"),
    (lambda record: kind(record) == "session_start", "a Droid (Factory) session"),
    (_is_droid_log, "a Droid (Factory) stream-json log"),
    (_is_kimi, "a Kimi session"),
    (_has("agents", "workDir", "lastPrompt"), "the state of a Kimi session"),
    (lambda record: "sessionId" in record and _has_parts(record.get("message")), "a Qwen Code session"),
    *_PIECES,
    (_is_deepseek, "an export of DeepSeek"),
    (_holds("conversations", "conversation", "responses"), "an export of Grok"),
    (_has("chunkedPrompt"), "a chat of Google AI Studio"),
    (_has("header", "title", "products"), "Google's record of activity"),
    (_is_of_vs_code, "a chat of VS Code"),
    (_holds("history", "message", "contextItems"), "a session of Continue"),
    (lambda record: "history" in object_in(record, "chat"), "an export of Open WebUI"),
    (_holds("messages", "messageId", "isCreatedByUser"), "an export of LibreChat"),
    (_holds("messages", "versions"), "a conversation of LM Studio"),
    (_has("is_user", "mes"), "a chat of SillyTavern"),
    (_has("agent_states"), "a state of AutoGen"),
    (_has("source", "models_usage", "content"), "messages of AutoGen"),
    (
        lambda record: record.get("kind") in ("request", "response") and _has_parts(record),
        "messages of Pydantic AI",
    ),
    (lambda record: kind(record) == "message" and _has("user", "text", "ts")(record), "an export of Slack"),
    (_has("guild", "channel", "messages"), "an export of Discord"),
    (_holds("messages", "date_unixtime"), "an export of Telegram"),
    (_has("session_meta", "conversation_list"), "a multi-party chat export"),
    (_has("simulations", "tasks"), "tau2-bench results"),
    (_has("features", "rows"), "a page of a Hugging Face dataset"),
    (_has("instruction", "output"), "a Hugging Face style dataset of instructions"),
    (_has("chosen", "rejected"), "a Hugging Face style dataset of preferences"),
)
"""Asked in this order, of each of the first records."""


def remedy(name: str) -> str:
    """How what is known by that name can be read after all."""
    if name in _HOW:
        return _HOW[name]
    if name in _HARDLY_A_TALK:
        return _IF_A_TALK
    if name in (archive for *_, archive in _ARCHIVES):
        return ": unpack it first"
    if name in (piece for _, piece in _PIECES):
        return ": put it back beside its session"
    return f": {_AS_CHAT}"


def unknown(file: RecordedFile) -> str:
    """Say of a file that has no name what it holds, or where it is torn, and what to do."""
    if tear := torn(file):
        return f"not a known transcript format, torn at {tear}: copy or write it anew, or move it away"
    keys = next(([well_formed(key) for key in value] for value in file.heads if isinstance(value, dict)), [])
    shown = f"{', '.join(keys[:_SHOWN_KEYS]):.{_SHOWN_CHARACTERS}}{', ...' if len(keys) > _SHOWN_KEYS else ''}"
    return f"not a known transcript format{f' (its keys: {shown})' if keys else ''}{_IF_A_TALK}"


def torn(file: RecordedFile) -> str | None:
    """Where a file that may be JSON is none, and why; None where it is whole, or something else.

    Raises:
        TranscriptError: if it cannot be read.
    """
    if file.magic.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] not in _MAYBE_JSON:
        return None
    whole = RecordedFile(file.path)
    for _ in whole.values() if whole.shape == "lines" else whole.members():
        if whole.quarantine:
            break
    return next((f"line {lines.line} ({lines.reason})" for lines in whole.quarantine), None)


def container_name(file: RecordedFile) -> str | None:
    """Name what the file is by its first bytes, unpacked: a tar's first member may look like a transcript."""
    head = _head(file)
    return next((name for offset, magic, name in _MAGIC if head[offset:].startswith(magic)), None)


def foreign_name(file: RecordedFile) -> str | None:
    """Name the format of a file that no reader recognises; None where we do not know it either."""
    if container := container_name(file):
        known = (name for tables, name in _DATABASES if has_tables(file, **tables)) if container == _DATABASE else ()
        return next(iter(known), container)
    head = _head(file)
    records: list[dict[str, Any]] = []
    with suppress(TranscriptError):
        records += [value for value in file.heads if isinstance(value, dict)]
    for recognises, name in _RECORDS:
        if any(map(recognises, records)):
            return name
    return None if records else _text_name(head)


def _head(file: RecordedFile) -> bytes:
    """How the file begins, unpacked."""
    try:
        with opened(file.path, TranscriptError) as stream:
            return stream.read(_HEAD_BYTES)
    except OSError:
        return b""


def _text_name(head: bytes) -> str | None:
    """The name of a text; of what is torn JSON none: it may have been anything."""
    head = head.removeprefix(b"\xef\xbb\xbf")
    if not head.strip() or _IS_JSON.match(head):
        return None
    # The head may end inside a character.
    text = head.decode("utf-8", "ignore" if len(head) == _HEAD_BYTES else "replace")
    if "\0" in text or "\ufffd" in text:
        return "a binary file"
    lines = text.splitlines()[:-1] if len(head) == _HEAD_BYTES else text.splitlines()
    if any(line.startswith(("# aider chat", "#### ")) for line in lines):
        return "a Markdown chat history"
    if any(map(_WHATSAPP.match, lines[:3])):
        return "a WhatsApp chat"
    if re.match(r"\s*<(!doctype html|html)\b", text, re.IGNORECASE):
        return "a web page"
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
