"""Sessions of agents in editors: Cursor's, and those of Cline and Roo Code.

All put what the user asked into tags, with what else the model is shown around it: the words of a message are what was
asked alone.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lcm.encoding import well_formed
from lcm.errors import TranscriptError
from lcm.records.conversation import Event, Message
from lcm.transcript.fields import as_object, id_in, kind, known_instant, object_in, recorded_instant, text_in
from lcm.transcript.parts import DecomposedMessage, decompose, texts_of, undivided
from lcm.transcript.reader import RecordedItem
from lcm.transcript.recorded_file import RecordedFile, files_within, without_ending

_SPEAKERS = ("user", "assistant")


def within(text: str, tag: str) -> list[str]:
    """What stands between a tag and its end, each time."""
    begun = (piece.partition(f"</{tag}>") for piece in text.split(f"<{tag}>")[1:])
    return [inside for inside, end, _ in begun if end]


def without(text: str, tag: str) -> str:
    """What stands outside of a tag and its end; a tag without an end is text."""
    before, *begun = text.split(f"<{tag}>")
    pieces = (piece.partition(f"</{tag}>") for piece in begun)
    return before + "".join(after if end else f"<{tag}>{inside}" for inside, end, after in pieces)


def unwrapped(native: Mapping[str, Any], role: str, said: Callable[[str], str]) -> DecomposedMessage:
    """Decompose a message whose words are what `said` makes of each of its texts; the envelope has it as recorded."""
    found = decompose({**native, "content": _told(native.get("content"), said)}, role)
    # No part stands in the place of a block: the blocks are in the envelope.
    kept = ({key: value for key, value in part.metadata.items() if key != "slot"} for part in found.parts)
    parts = (replace(part, metadata=metadata) for part, metadata in zip(found.parts, kept, strict=True))
    return undivided(dict(native), found.role, parts, found.content)


def _told(content: Any, said: Callable[[str], str]) -> Any:
    match content:
        case str():
            return said(content)
        case list():
            return [_told(block, said) for block in content]
        case {"type": "text", "text": str(text)}:
            return {**content, "text": said(text)}
    return content


_NOTICES = ("timestamp", "system_reminder", "system_notification")
"""What stands beside words that are in no `<user_query>`."""
_ASKED_AT = re.compile(
    r"<timestamp>\w+, ([A-Z][a-z]{2})[a-z]* (\d{1,2}), (\d{4}), (\d{1,2}:\d{2})\s([AP]M)"
    r" \(UTC(?:([+-])(\d{1,2})(?::(\d{2}))?)?\)</timestamp>"
)


@dataclass(frozen=True, slots=True)
class CursorReader:
    """Reads JSONL of `{"role", "message"}`, one conversation a file, which Cursor names after the session.

    Records with a `type` of their own are events. So is a user's record that holds nothing else than notices. Results
    of tools are not recorded, calls have no ids, and what the assistant says has no instant. Sub-agents,
    `<session>/subagents/*.jsonl` beside `<session>/<session>.jsonl`, are read after it, each a conversation of its own.
    """

    name = "cursor"

    def detects(self, file: RecordedFile) -> bool:
        return isinstance(file.first, list) and any(map(_is_of_cursor, file.first))

    def read(self, file: RecordedFile) -> Iterator[RecordedItem]:
        yield from _session(file, file.name)
        agents = beside_cursor(file.path)
        yield from file.reading_along(agents, lambda agent: _session(agent, f"{file.name}/agent-{agent.name}"))


def beside_cursor(session: Path) -> list[Path]:
    """The files of a session's sub-agents, which are read along with its own."""
    if session.parent.resolve().name != without_ending(session):
        return []
    return files_within(session.parent, sorted((session.parent / "subagents").glob("*.jsonl")))


def _session(file: RecordedFile, conversation_id: str) -> Iterator[RecordedItem]:
    for line, record in file.values():
        with file.record(line):
            is_said = "role" in as_object(record)
            item = _item(record, conversation_id) if is_said else Event(kind(record), record)
            yield RecordedItem(conversation_id, item)


def _item(record: dict[str, Any], session_id: str) -> Message | Event:
    native, role = record.get("message"), record["role"]
    if not isinstance(native, dict) or role not in _SPEAKERS:
        raise TranscriptError("expected a `message` object of the `role` user or assistant")
    if role == "assistant":
        said, asked_at = decompose(native, role), None
    else:
        said = unwrapped(native, role, _query)
        asked_at = next(filter(None, map(_asked_at, texts_of(native.get("content")))), None)
        if not said.content and all(part.part_type == "text" for part in said.parts):
            return Event("notice", record)
    return said.within(record, "message").message("", session_id, asked_at)


def _query(text: str) -> str:
    """What a text holds as queries; where it marks none, all but the notices in it."""
    if queries := within(text, "user_query"):
        return "\n".join(query.strip() for query in queries)
    for notice in _NOTICES:
        text = without(text, notice)
    return text.strip()


def _asked_at(text: str) -> datetime | None:
    """When it was asked: a time of day without its zone is no instant."""
    if (told := _ASKED_AT.search(text)) is None:
        return None
    month, day, year, time, half, sign, hours, minutes = told.groups(default="")
    zone = f"{sign or '+'}{hours:0>2}{minutes:0>2}"
    with suppress(ValueError):
        return datetime.strptime(f"{month} {day} {year} {time} {half} {zone}", "%b %d %Y %I:%M %p %z").astimezone(UTC)
    return None


def _is_of_cursor(value: object) -> bool:
    if not isinstance(value, dict) or "type" in value or value.get("role") not in _SPEAKERS:
        return False
    message = object_in(value, "message")
    return "role" not in message and isinstance(message.get("content"), list | str)


_HISTORY = "api_conversation_history"
_SHOWN = ("ui_messages", "claude_messages")
_NOTES = ("history_item", "task_metadata", "context_history")
_HOST_MARKS = {"isSummary": "summary", "isTruncationMarker": "truncation"}
_WRAPPERS = ("task", "user_message", "feedback", "answer")
_BY_USER = frozenset({"task", "user_feedback"})
"""What is said under these names the user said; the first `text` repeats the task."""


@dataclass(frozen=True, slots=True)
class ClineReader:
    """Reads one conversation a task of Cline or Roo Code, named by the folder of its `api_conversation_history.json`.

    That is an array of messages as Anthropic's API has them, in newer versions with `ts`. A message without it has the
    instant of what was shown last before it (`ui_messages.json`), where that says its place in the history
    (`conversationHistoryIndex`), or else of what was shown with the words with which the message begins, in order.
    What was shown and the notes on the task are events, and so is what Roo Code puts in the place of messages that it
    no longer sends: a summary, or the mark of where it cut.
    """

    name = "cline"

    def detects(self, file: RecordedFile) -> bool:
        if file.shape != "document" or not isinstance(file.first, list) or not any(map(_is_of_cline, file.first)):
            return False
        return without_ending(file.path) == _HISTORY or any(map(_is_task, file.first))

    def read(self, file: RecordedFile) -> Iterator[RecordedItem]:
        is_in_task = without_ending(file.path) == _HISTORY
        name = well_formed(file.path.resolve().parent.name) if is_in_task else file.name
        title: str | None = None
        for note in file.reading_along(_beside(file.path, _NOTES), _events):
            title = title or (text_in(note.native, "task") or "").strip().partition("\n")[0] or None
            yield RecordedItem(name, note, title)
        paths = _beside(file.path, _SHOWN)
        shown = _Shown(paths)
        for place, (line, record) in enumerate(file.values()):
            with file.record(line):
                named = _by_host(as_object(record))
                item = Event(named, record) if named else _message(record, place, name, shown)
                yield RecordedItem(name, item, title)
        yield from (RecordedItem(name, event, title) for event in file.reading_along(paths, _events))


def beside_cline(history: Path) -> list[Path]:
    """The files of a task that are read along with its history."""
    return _beside(history, (*_NOTES, *_SHOWN))


def _beside(history: Path, names: tuple[str, ...]) -> list[Path]:
    if without_ending(history) != _HISTORY:
        return []
    return files_within(history.resolve().parent, (history.with_name(f"{name}.json") for name in names))


def _events(file: RecordedFile) -> Iterator[Event]:
    return (Event(file.path.stem, record) for _, record in file.values())


class _Shown:
    """When messages were said, as far as what was shown tells it."""

    def __init__(self, paths: list[Path]) -> None:
        self._at_place: dict[int, datetime] = {}
        """What was shown last while a message was the newest of the history, -1 = before the first."""
        self._words: list[tuple[bool, str, datetime]] = []
        """What was shown of words, and whether they are the user's."""
        self._next = 0
        for path in paths:
            for number, (_, record) in enumerate(RecordedFile(path).values()):
                if (at := known_instant(record, "ts")) is not None:
                    self._add(record, at, is_first=number == 0)

    def _add(self, record: dict[str, Any], at: datetime, *, is_first: bool) -> None:
        if isinstance(place := record.get("conversationHistoryIndex"), int):
            self._at_place[place] = at
        if text := (text_in(record, "text") or "").strip():
            self._words.append((is_first or record.get("say") in _BY_USER, text, at))

    def instant(self, place: int, message: DecomposedMessage) -> datetime | None:
        """When the message at this place of the history, from 0, was said."""
        if self._at_place:
            return self._at_place.get(place - 1)
        texts = [part.text for part in message.parts if part.part_type == "text" and part.text]
        for number, (is_user, text, at) in enumerate(self._words[self._next :], start=self._next + 1):
            if is_user and message.role == "user":
                is_it = text in texts
            else:  # the call of a tool may follow what is shown
                is_it = not is_user and message.role == "assistant" and any(told.startswith(text) for told in texts)
            if is_it:
                self._next = number
                return at
        return None


def _by_host(record: dict[str, Any]) -> str | None:
    """The kind of what the host wrote itself, be it in the user's name; None for a message."""
    if "role" not in record:
        return kind(record)
    return next((named for key, named in _HOST_MARKS.items() if record.get(key) is True), None)


def _message(record: dict[str, Any], place: int, session_id: str, shown: _Shown) -> Message:
    role = record["role"]
    if role not in _SPEAKERS:
        raise TranscriptError("expected a message of the `role` user or assistant")
    said = unwrapped(record, role, _asked) if role == "user" else decompose(record)
    return said.message(id_in(record, "id"), session_id, recorded_instant(record, "ts") or shown.instant(place, said))


def _asked(text: str) -> str:
    """What the user said: without what the host appends, and without the tag around the whole."""
    asked = without(text, "environment_details").strip()
    for tag in _WRAPPERS:
        start, end = f"<{tag}>", f"</{tag}>"
        if asked.startswith(start) and asked.endswith(end):
            return asked[len(start) : -len(end)].strip()
    return asked


def _is_of_cline(value: object) -> bool:
    return isinstance(value, dict) and value.get("role") in _SPEAKERS and "content" in value


def _is_task(value: object) -> bool:
    """Say whether this is a message that states a task."""
    content = value.get("content") if isinstance(value, dict) and value.get("role") == "user" else None
    first = content[0] if isinstance(content, list) and content else content
    text = first.get("text") if isinstance(first, dict) else first
    return isinstance(text, str) and text.lstrip().startswith("<task>") and "</task>" in text
