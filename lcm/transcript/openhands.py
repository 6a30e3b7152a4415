"""OpenHands events: JSONL, an array (`trajectory.json`), or a file each in a conversation's folder `events`; and runs.

A run is an object with its events under `history` (a line of an evaluation's `output.jsonl`) or `trajectory` (what the
server exports); early ones have pairs there, an action and what was seen then.

Version 0 names what it does (`action` with `args`) and what it sees (`observation` with `content`); version 1 has a
`kind`, and says its messages in an `llm_message`. A call and its result are events of their own in both.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lcm.encoding import to_json, well_formed
from lcm.records.conversation import Event, Message, Part, Role
from lcm.transcript.fields import as_object, listed, object_in, text_in
from lcm.transcript.identity import native_id, recorded_instant
from lcm.transcript.parts import decompose, enclosed
from lcm.transcript.plain_text import plain_text
from lcm.transcript.reader import RecordedItem
from lcm.transcript.recorded_file import RecordedFile
from lcm.transcript.sessions import ConversationIds, Session, run_name, sessions

_FOLDER = "events"
_LISTS = ("history", "trajectory")
_EVENT_FILE = re.compile(r"(?:event-)?(\d+)[\w-]*\.json")
_SILENT = frozenset(
    {"null", "recall", "change_agent_state", "agent_state_changed", "condensation", "condensation_request"}
)
"""What version 0 does or sees for itself."""
_SPOKEN = ("message", "finish", "think", "system")
"""Actions of version 0 that call no tool."""


@dataclass(frozen=True, slots=True)
class OpenHandsReader:
    """Reads one conversation a file, or of a folder `events` that of all its files, named by the folder around it.

    A run is a conversation named as those of SWE-agent are, with an event of type `session` as theirs.

    A message is what was said, a call of a tool, or its result. Other events (states, condensations) are events named
    by their kinds.
    """

    name = "openhands"

    def detects(self, file: RecordedFile) -> bool:
        values = [file.first] if isinstance(file.first, dict) else file.first
        return any(_is_event(value) or _events_key(value) for value in values)

    def read(self, file: RecordedFile) -> Iterator[RecordedItem]:
        if _holds_runs(file):
            ids = ConversationIds()
            for session in sessions(file):
                yield from _run(session, file, ids.name(run_name(session.header, file)))
            return
        conversation_id = file.path.parent.parent.name if _number(file.path) is not None else file.name
        yield from _events(file, conversation_id)
        for path in beside(file.path):
            other = file.along(path)
            yield from file.following(other, _events(other, conversation_id))


def beside(first: Path) -> list[Path]:
    """The files of the events behind the first, in order; none of a file that is not the first of its folder."""
    if _number(first) is None:
        return []
    found = sorted(
        (path for path in first.parent.iterdir() if _number(path) is not None and path.is_file()), key=_place
    )
    return found[1:] if found and found[0] == first else []


def _place(path: Path) -> tuple[int, str]:
    return _number(path) or 0, path.name


def _number(path: Path) -> int | None:
    """The event's, by the name of its file."""
    named = _EVENT_FILE.fullmatch(path.name) if path.parent.name == _FOLDER else None
    return int(named[1]) if named else None


def _events(file: RecordedFile, conversation_id: str) -> Iterator[RecordedItem]:
    for line, value in file.values():
        with file.record(line):
            yield _item(value, conversation_id)


def _run(run: Session, file: RecordedFile, conversation_id: str) -> Iterator[RecordedItem]:
    yield RecordedItem(conversation_id, Event("session", run.header))
    key = next((key for key in _LISTS if key in run.lists), None)
    for element in run.elements:
        if element.key != key:
            yield RecordedItem(conversation_id, Event(well_formed(element.key), element.value))
            continue
        for event in element.value if isinstance(element.value, list) else [element.value]:
            with file.record(element.line, element.place):
                yield _item(event, conversation_id)


def _item(value: object, conversation_id: str) -> RecordedItem:
    event = as_object(value, "an event")
    item = _said(event, conversation_id) if "kind" in event else _done(event, conversation_id)
    return RecordedItem(conversation_id, item)


def _done(event: dict[str, Any], session_id: str) -> Message | Event:
    """An event of version 0."""
    action, observation = text_in(event, "action"), text_in(event, "observation")
    named = action or observation or "unknown"
    if named in _SILENT or named == "unknown":
        return Event(named, event)
    tool = object_in(event, "tool_call_metadata")
    call_id = text_in(tool, "tool_call_id") or native_id(event.get("cause" if action is None else "id")) or None
    tool_name = text_in(tool, "function_name") or named
    if action is None:
        words = plain_text({"content": event.get("content")})
        return _message(event, session_id, "tool", (Part("text", words, call_id, tool_name),), words)
    args = object_in(event, "args")
    role: Role = "system" if action == "system" else _speaker(event)
    if action in _SPOKEN:
        words = text_in(args, "content", "final_thought", "thought") or text_in(event, "message") or ""
        return _message(event, session_id, role, (Part("reasoning" if action == "think" else "text", words),), words)
    thought = text_in(args, "thought") or ""
    given = {key: value for key, value in args.items() if key != "thought"}
    call = Part("tool", None, call_id or named, tool_name, to_json(given))
    return _message(event, session_id, role, (*_texts(thought), call), thought)


def _said(event: dict[str, Any], session_id: str) -> Message | Event:
    """An event of version 1."""
    named = text_in(event, "kind") or "unknown"
    call_id, tool_name = text_in(event, "tool_call_id"), text_in(event, "tool_name")
    native = event.get("llm_message")
    if isinstance(native, dict):
        said = decompose(native, text_in(native, "role") or _speaker(event))
        envelope = enclosed(said.envelope, event, "llm_message")
        return _message(event, session_id, said.role, said.parts, said.content, envelope)
    if named == "SystemPromptEvent":
        words = plain_text({"content": event.get("system_prompt")})
        return _message(event, session_id, "system", tuple(_texts(words)), words)
    if named == "ActionEvent":
        action, call = object_in(event, "action"), object_in(event, "tool_call")
        words = "\n".join(filter(None, (plain_text({"content": event.get("thought")}), text_in(action, "message"))))
        given = text_in(call, "arguments") or to_json(action)
        parts = (
            *(Part("reasoning", text) for text in listed(text_in(event, "reasoning_content"))),
            *_texts(words),
            Part("tool", None, call_id or native_id(event.get("id")), tool_name or "unknown", given),
        )
        return _message(event, session_id, "assistant", parts, words)
    seen = next((event[key] for key in ("observation", "error", "rejection_reason") if event.get(key)), None)
    if call_id is None or seen is None:
        return Event(named, event)
    words = plain_text({"content": seen.get("content", seen) if isinstance(seen, dict) else seen})
    return _message(event, session_id, "tool", (Part("text", words, call_id, tool_name),), words)


def _texts(words: str) -> Iterator[Part]:
    if words:
        yield Part("text", words)


def _speaker(event: Mapping[str, Any]) -> Role:
    return "user" if event.get("source") == "user" else "assistant"


def _message(
    event: dict[str, Any],
    session_id: str,
    role: Role,
    parts: tuple[Part, ...],
    words: str,
    envelope: Mapping[str, Any] | None = None,
) -> Message:
    return Message(
        message_id=native_id(event.get("id")),
        role=role,
        content=words,
        session_id=session_id,
        created_at=recorded_instant(event, ("timestamp",)),
        parts=parts,
        envelope=envelope or {"native": event, "slots": {}},
    )


def _holds_runs(file: RecordedFile) -> bool:
    values = [file.first] if isinstance(file.first, dict) else file.first
    known = next((value for value in values if _is_event(value) or _events_key(value)), None)
    return known is not None and not _is_event(known)


def _events_key(run: object) -> str | None:
    """Where a run has its events; None in what is no run."""
    for key in _LISTS:
        held = run.get(key) if isinstance(run, dict) else None
        first = held[0] if isinstance(held, list) and held else None
        if _is_event(first[0] if isinstance(first, list) and first else first):
            return key
    return None


def _is_event(value: object) -> bool:
    if not isinstance(value, dict) or "source" not in value:
        return False
    is_done = isinstance(value.get("action"), str) and isinstance(value.get("args"), dict)
    is_seen = isinstance(value.get("observation"), str) and "content" in value
    return is_done or is_seen or (text_in(value, "kind") or "").endswith(("Event", "Observation"))
