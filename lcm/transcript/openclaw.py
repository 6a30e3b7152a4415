"""OpenClaw sessions: JSONL of format 3, and the early form of pi whose entries have no ids.

A header, then one entry a line. Entries of type `message` become messages, in the order of the file; all other
entries (model changes, labels, compactions, unknown types) are skipped.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

from lcm.errors import TranscriptError
from lcm.records import Message, Transcript
from lcm.transcript.identity import native_id, recorded_instant, unique_id
from lcm.transcript.lines import first_value, json_lines, read_text, stem
from lcm.transcript.parts import decompose, rebuild


@dataclass(frozen=True, slots=True)
class OpenClawReader:
    """Reads one session a file; its id names both the conversation and the session."""

    name = "openclaw"

    def detects(self, path: Path) -> bool:
        value, is_whole_file = first_value(path, read_text(path))
        return not is_whole_file and _is_header(value)

    def read(self, path: Path) -> list[Transcript]:
        entries = json_lines(path, read_text(path))
        number, header = next(entries, (1, None))
        if not _is_header(header):
            raise TranscriptError(f'{path}:{number}: an OpenClaw session starts with a {{"type":"session"}} line')
        conversation_id = native_id(header.get("id")) or stem(path)
        messages: list[Message] = []
        for number, entry in entries:
            where = f"{path}:{number}"
            if not isinstance(entry, dict):
                raise TranscriptError(f"{where}: an entry must be a JSON object, got {type(entry).__name__}")
            if entry.get("type") == "message":
                messages.append(_message(entry, conversation_id, len(messages) + 1, where))
        return [Transcript(conversation_id, tuple(messages))]


def rebuild_entry(message: Message) -> dict[str, Any]:
    """Give back the whole line that held the message: `rebuild` with the entry's own keys around it."""
    return {**message.envelope["entry"], "message": rebuild(message)}


def _is_header(value: Any) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict) and value.get("type") == "session"


def _message(entry: dict[str, Any], conversation_id: str, position: int, where: str) -> Message:
    native = entry.get("message")
    if not isinstance(native, dict) or not isinstance(native.get("role"), str):
        raise TranscriptError(f"{where}: a message entry needs a `message` object with a `role`")
    said = decompose(native)
    return Message(
        message_id=unique_id(conversation_id, entry.get("id"), position),
        role=said.role,
        content=said.content,
        session_id=conversation_id,
        created_at=recorded_instant(entry, ("timestamp",), where) or recorded_instant(native, ("timestamp",), where),
        parts=said.parts,
        envelope={**said.envelope, "entry": {**entry, "message": None}},
    )
