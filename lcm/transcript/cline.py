"""Tasks of Cline and Roo Code: a folder whose `api_conversation_history.json` is the conversation.

It is an array of messages as Anthropic's API has them, in newer versions with `ts`. Beside it lie what was shown
meanwhile (`ui_messages.json`) and notes on the task. The words of the user are without the tags around them and without
`<environment_details>`, which the host appends.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from lcm.encoding import well_formed
from lcm.errors import TranscriptError
from lcm.files import is_below
from lcm.records.conversation import Event, Message
from lcm.transcript.fields import as_object, kind, text_in
from lcm.transcript.identity import native_id, recorded_instant
from lcm.transcript.parts import DecomposedMessage, decompose
from lcm.transcript.reader import RecordedItem
from lcm.transcript.recorded_file import RecordedFile, without_ending
from lcm.transcript.wrapped import unwrapped, without

_HISTORY = "api_conversation_history"
_SHOWN = ("ui_messages", "claude_messages")
_NOTES = ("history_item", "task_metadata", "context_history")
_HOST_MARKS = {"isSummary": "summary", "isTruncationMarker": "truncation"}
_WRAPPERS = ("task", "user_message", "feedback", "answer")
_BY_USER = frozenset({"task", "user_feedback"})
"""What is said under these names the user said; the first `text` repeats the task."""


@dataclass(frozen=True, slots=True)
class ClineReader:
    """Reads one conversation a task, named by the task's folder.

    A message without `ts` has the instant of what was shown last before it, where that says its place in the history
    (`conversationHistoryIndex`), or else of what was shown with the words with which the message begins, in order.
    What was shown and the notes on the task are events, and so is what Roo Code puts in the place of messages that it
    no longer sends: a summary, or the mark of where it cut.
    """

    name = "cline"

    def detects(self, file: RecordedFile) -> bool:
        if file.shape != "document" or not isinstance(file.first, list) or not any(map(_is_message, file.first)):
            return False
        return without_ending(file.path) == _HISTORY or any(map(_is_task, file.first))

    def read(self, file: RecordedFile) -> Iterator[RecordedItem]:
        is_in_task = without_ending(file.path) == _HISTORY
        name = well_formed(file.path.resolve().parent.name) if is_in_task else file.name
        title: str | None = None
        for path in _beside(file.path, _NOTES):
            for note in _events(file, path):
                title = title or _title(note.native)
                yield RecordedItem(name, note, title)
        shown = _Shown(_beside(file.path, _SHOWN))
        for place, (line, record) in enumerate(file.values()):
            with file.record(line):
                named = _by_host(as_object(record))
                item = Event(named, record) if named else _message(record, place, name, shown)
                yield RecordedItem(name, item, title)
        for path in _beside(file.path, _SHOWN):
            yield from (RecordedItem(name, event, title) for event in _events(file, path))


def beside(history: Path) -> list[Path]:
    """The files of a task that are read along with its history."""
    return _beside(history, (*_NOTES, *_SHOWN))


def _beside(history: Path, names: tuple[str, ...]) -> list[Path]:
    if without_ending(history) != _HISTORY:
        return []
    found = (history.with_name(f"{name}.json") for name in names)
    return [path for path in found if path.is_file() and is_below(path.resolve(), [history.resolve().parent])]


def _events(file: RecordedFile, path: Path) -> Iterator[Event]:
    along = file.along(path)
    yield from file.following(along, (Event(path.stem, record) for _, record in along.values()))


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
                with suppress(TranscriptError):
                    self._add(as_object(record), is_first=number == 0)

    def _add(self, record: dict[str, Any], *, is_first: bool) -> None:
        at, place = recorded_instant(record, ("ts",)), record.get("conversationHistoryIndex")
        if at is None:
            return
        if isinstance(place, int):
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
    if role not in ("user", "assistant"):
        raise TranscriptError("expected a message of the `role` user or assistant")
    said = unwrapped(record, role, _asked) if role == "user" else decompose(record)
    return Message(
        message_id=native_id(record.get("id")),
        role=said.role,
        content=said.content,
        session_id=session_id,
        created_at=recorded_instant(record, ("ts",)) or shown.instant(place, said),
        parts=said.parts,
        envelope=said.envelope,
    )


def _asked(text: str) -> str:
    """What the user said: without what the host appends, and without the tag around the whole."""
    asked = without(text, "environment_details").strip()
    for tag in _WRAPPERS:
        start, end = f"<{tag}>", f"</{tag}>"
        if asked.startswith(start) and asked.endswith(end):
            return asked[len(start) : -len(end)].strip()
    return asked


def _title(note: object) -> str | None:
    """The first line of the task."""
    task = (text_in(note, "task") or "").strip() if isinstance(note, dict) else ""
    return task.partition("\n")[0] or None


def _is_message(value: object) -> bool:
    return isinstance(value, dict) and value.get("role") in ("user", "assistant") and "content" in value


def _is_task(value: object) -> bool:
    """Say whether this is a message that states a task."""
    content = value.get("content") if isinstance(value, dict) and value.get("role") == "user" else None
    first = content[0] if isinstance(content, list) and content else content
    text = first.get("text") if isinstance(first, dict) else first
    return isinstance(text, str) and text.lstrip().startswith("<task>") and "</task>" in text
