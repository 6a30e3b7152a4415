"""Gemini CLI sessions: one JSON document, or JSONL with a header and a message a line; and saved chat histories.

A message names its speaker by `type` (`user`, `gemini`, `info` …), or in a history by `role` (`user`, `model`). It
holds its thoughts and its tool calls with their results, so the words of a result stand behind the model's own.

JSONL is a log: a message is written again whenever it changed, and only the last writing is read as a message; those
before it are events. `$set` may list what the talk consists of: what it lists and was not said before is said there.
What rewinds the session (`$rewindTo`), or a list that ends earlier, undoes messages: they are a branch of their own.
Any other list (a compression) takes nothing away.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

from lcm.encoding import to_json, well_formed
from lcm.records.conversation import Event, Message, Part, Role
from lcm.transcript.branches import Stretches
from lcm.transcript.fields import (
    as_object,
    digest,
    id_in,
    json_in,
    kind,
    list_in,
    listed,
    object_in,
    recorded_instant,
    text_in,
)
from lcm.transcript.parts import plain_text, response_in, undivided
from lcm.transcript.reader import RecordedItem, Session, document, session_of
from lcm.transcript.recorded_file import RecordedFile


class _Writing(NamedTuple):
    """One place in a log where a message stands."""

    place: int
    """How many writings stand before it."""
    message_id: str
    """Empty where the message has none."""

    @property
    def key(self) -> int:
        """What stands for the message; one without an id is written once."""
        return digest(self.message_id or f"at {self.place}")


class _Log:
    """A log that writes a message anew when it changed, lists what the talk consists of, and goes back in it.

    Only digests are held of a message: of its id, and of what a list says of it.
    """

    def __init__(self) -> None:
        self._places: dict[int, int] = {}
        """The writing of each message that counts."""
        self._live: dict[int, None] = {}
        """What the talk consists of, in order; a list may have left out others without undoing them."""
        self._undone: dict[int, int] = {}
        """The number of the undoing, from 1."""
        self._undoings = 0
        self._listed: dict[int, int] = {}
        """What the writing that counts says of a message which stands in lists alone."""

    def write(self, writing: _Writing) -> None:
        """A message is written by itself: this writing counts from now on."""
        self._listed.pop(writing.key, None)
        self._undone.pop(writing.key, None)
        self._live.setdefault(writing.key)
        self._places[writing.key] = writing.place

    def state(self, writings: Sequence[tuple[_Writing, str]]) -> None:
        """A list says what the talk consists of.

        The beginning of what was said undoes the rest; any other list sums up what it leaves out. A listed message
        counts where it stood before, unless lists alone tell it and this one otherwise.

        Args:
            writings: of each message, and what it says there.
        """
        told, before = [writing.key for writing, _ in writings], list(self._live)
        if told and told == before[: len(told)]:
            self._undo(before[len(told) :])
        places: dict[int, int] = {}
        for writing, said in writings:
            says = digest(said)
            self._undone.pop(writing.key, None)
            if writing.key not in self._places or self._listed.get(writing.key, says) != says:
                self._listed[writing.key] = says
                places[writing.key] = writing.place
        self._places |= places
        self._live = dict.fromkeys(told)

    def go_back(self, message_id: str) -> None:
        """Undo the message and all behind it; everything, where it is not part of the talk."""
        keys, key = list(self._live), digest(message_id)
        self._undo(keys[keys.index(key) :] if key in self._live else keys)

    def counts(self, writing: _Writing) -> bool:
        """Whether this writing of the message is the one that counts."""
        return writing.place == self._places.get(writing.key)

    def branches(self) -> Stretches:
        """The places of what was undone: each undoing left a branch."""
        places = sorted((place, self._undone.get(key, 0)) for key, place in self._places.items())
        branches: dict[int, list[range]] = {}
        for number, run in groupby(places, key=lambda one: one[1]):
            found = [place for place, _ in run]
            branches.setdefault(number, []).append(range(found[0], found[-1] + 1))
        branches.pop(0, None)
        return Stretches(branches.values())

    def _undo(self, keys: Sequence[int]) -> None:
        self._undoings += 1
        for key in keys:
            del self._live[key]
            self._undone[key] = self._undoings


_ROLES: dict[str, Role] = {
    "user": "user", "gemini": "assistant", "model": "assistant", "assistant": "assistant",
    "info": "system", "warning": "system", "error": "system",
}  # fmt: skip

_LISTS = ("messages", "history")
"""Where a session keeps its messages."""


@dataclass(frozen=True, slots=True)
class GeminiReader:
    """Reads one conversation a file, or a session a line; the `sessionId` names it.

    What a session holds beside its messages is an event of type `session`, with null in place of its lists; an element
    of another list is an event named by the list.
    """

    name = "gemini"

    def detects(self, file: RecordedFile) -> bool:
        is_document = isinstance(file.first, dict)
        return any(_is_session(value) or (not is_document and _is_record(value)) for value in file.heads)

    def read(self, file: RecordedFile) -> Iterator[RecordedItem]:
        yield from _session(document(file), file) if isinstance(file.first, dict) else _log(file)


def _log(file: RecordedFile) -> Iterator[RecordedItem]:
    conversation_id, log = _survey(file)
    branches = log.branches()
    place, title = 0, None
    for line, value in file.values():
        with file.record(line):
            title = _title(value) or title
            if _is_session(value):
                yield from _session(session_of(line, value), file)
                continue
            if lists := _lists(value):
                header = {**value, "$set": {**value["$set"], **dict.fromkeys(lists)}}
                yield RecordedItem(conversation_id, Event("$set", header), title)
            for where, told in _told(value, lists):
                with file.record(line, where):
                    writing = _Writing(place, _message_id(told))
                    place += _is_message(told)
                    is_one = log.counts(writing) if _is_message(told) else not lists
                    item = _item(told, conversation_id) if is_one else Event(_kind(as_object(told)), told)
                    suffix = branches.suffix(*writing) if isinstance(item, Message) else ""
                    yield RecordedItem(conversation_id + suffix, item, title)


def _survey(file: RecordedFile) -> tuple[str, _Log]:
    """The id of the first header, and what became of the messages."""
    conversation_id, log, place = "", _Log(), 0
    for _, value in RecordedFile(file.path).values():
        conversation_id = conversation_id or id_in(value, "sessionId")
        if _is_session(value):
            continue
        lists = _lists(value)
        messages = [told for _, told in _told(value, lists) if _is_message(told)]
        writings = [_Writing(place + number, _message_id(told)) for number, told in enumerate(messages)]
        place += len(messages)
        if lists:
            log.state([(writing, to_json(told)) for writing, told in zip(writings, messages, strict=True)])
        elif writings:
            log.write(writings[0])
        elif target := text_in(value, "$rewindTo"):
            log.go_back(target)
    return conversation_id or file.name, log


def _lists(value: object) -> list[str]:
    """The lists of messages that a change states anew."""
    changed = {} if _is_message(value) else object_in(value, "$set")
    return [key for key in _LISTS if list_in(changed, key)]


def _told(value: Any, lists: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """The elements of the lists, each with its place; without lists the record itself."""
    if not lists:
        yield "", value
    for key in lists:
        for number, element in enumerate(value["$set"][key], start=1):
            yield f"{key} {number}: ", element


def _session(session: Session, file: RecordedFile) -> Iterator[RecordedItem]:
    name, title = id_in(session.header, "sessionId") or file.name, _title(session.header)
    yield from session.items(file, name, dict.fromkeys(_LISTS, _item), title)


def _item(record: object, session_id: str) -> Message | Event:
    record = as_object(record)
    speaker = _speaker(record)
    if speaker is None:
        return Event(_kind(record), record)
    parts = list(_parts(record))
    words = (part.text for part in parts if part.text and part.part_type == "text")
    told = "\n".join([*words, *map(well_formed, _results(record))])
    said = undivided(record, _ROLES.get(speaker, "system"), parts, told)
    return said.message(_message_id(record), session_id, recorded_instant(record, "timestamp", "ts"))


def _speaker(record: Mapping[str, Any]) -> str | None:
    """Who says the message; None where the record is none."""
    named = [name for key in ("type", "role") if isinstance(name := record.get(key), str)]
    known = next((name for name in named if name in _ROLES), None)
    is_told = named and any(key in record for key in ("content", "parts"))
    return known or (named[0] if is_told else None)


def _parts(record: Mapping[str, Any]) -> Iterator[Part]:
    """The thoughts, the words and files, and the calls, in this order."""
    yield from (Part("reasoning", text=_thought(thought)) for thought in listed(record.get("thoughts")))
    yield from map(_part, _blocks(record))
    yield from (_call(call, "result") for call in listed(record.get("toolCalls")))


def _part(block: object) -> Part:
    if isinstance(block, str):
        return Part("text", text=well_formed(block))
    if not isinstance(block, dict):
        return Part("agent")
    if isinstance(block.get("text"), str):
        return Part("reasoning" if block.get("thought") is True else "text", text=well_formed(block["text"]))
    if "functionCall" in block or "functionResponse" in block:
        return _call(block.get("functionCall", block.get("functionResponse")), "response")
    return Part("file" if "inlineData" in block or "fileData" in block else "agent")


def _call(call: object, output_key: str) -> Part:
    """A call, its result, or both."""
    held = call if isinstance(call, dict) else {}
    given, output = json_in(held, "args"), json_in(held, output_key)
    return Part("tool", None, text_in(held, "id"), text_in(held, "name"), given, output)


def _results(record: Mapping[str, Any]) -> Iterator[str]:
    """The words of what tools gave back."""
    results = [
        *(call.get("result") for call in listed(record.get("toolCalls")) if isinstance(call, dict)),
        *(block for block in _blocks(record) if isinstance(block, dict) and "functionResponse" in block),
    ]
    for entry in (entry for result in results for entry in listed(result)):
        if words := plain_text({"content": response_in(entry)}):
            yield words


def _blocks(record: Mapping[str, Any]) -> list[Any]:
    """What the message says, under whichever key and in whichever shape."""
    content = record["content"] if "content" in record else record.get("parts")
    if isinstance(content, dict) and "parts" in content:
        content = content["parts"]
    return listed(content)


def _thought(thought: object) -> str | None:
    if isinstance(thought, str):
        return well_formed(thought)
    texts = (text_in(thought, key) for key in ("subject", "description", "text"))
    return "\n".join(filter(None, texts)) or None


def _is_message(value: object) -> bool:
    return isinstance(value, dict) and _speaker(value) is not None


def _message_id(value: Any) -> str:
    """The recorded id of a message; empty for anything else."""
    return id_in(value, "id") if _is_message(value) else ""


def _title(value: object) -> str | None:
    """What the session is about, as its header or a change to that says."""
    changed = value.get("$set", value) if isinstance(value, dict) and _speaker(value) is None else None
    return text_in(changed, "summary") or None


def _kind(record: Mapping[str, Any]) -> str:
    """The type that a record names, or the change that it makes."""
    change = next((key for key in record if key.startswith("$")), None)
    named = text_in(record, "type") or change or ("session" if "sessionId" in record else "unknown")
    return well_formed(named)


def _is_session(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    lists = [value[key] for key in _LISTS if isinstance(value.get(key), list)]
    return bool(lists) and (_has_header(value) or any(_is_told(native) for told in lists for native in told[:3]))


def _is_record(value: Any) -> bool:
    """Say whether this is a header or a message of JSONL, or of a saved history."""
    return _has_header(value) or (_is_told(value) and (kind(value) == "gemini" or "parts" in value))


def _has_header(value: object) -> bool:
    return isinstance(value, dict) and "sessionId" in value and "projectHash" in value


def _is_told(native: Any) -> bool:
    """Say whether this is a message: none of other formats has both such a speaker and its words beside it."""
    if not isinstance(native, dict):
        return False
    parts = native.get("parts")
    if "role" not in native:
        return native.get("type") in tuple(_ROLES) and ("content" in native or "parts" in native)
    is_history = isinstance(parts, list) and all(isinstance(part, dict) and "type" not in part for part in parts)
    return native["role"] in ("user", "model", "gemini") and is_history
