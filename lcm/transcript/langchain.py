"""LangChain messages and LangGraph states: JSON or JSONL, of messages or of states that hold them.

A message is written in one of three ways: by `messages_to_dict` (`{type, data}`), by `dumps` (`{lc, id, kwargs}`), or
as its own fields (`{type, content}`). A state has them under `messages`, alone, in `values` (an exported state or
thread), or in the `channel_values` of a `checkpoint`.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from lcm.encoding import to_json, well_formed
from lcm.records.conversation import Event, Message
from lcm.transcript.fields import as_object, kind, object_in, text_in
from lcm.transcript.identity import digest, native_id, said_at, said_beside
from lcm.transcript.parts import decompose, enclosed
from lcm.transcript.reader import RecordedItem
from lcm.transcript.recorded_file import RecordedFile

_ROLES = {
    "human": "user",
    "ai": "assistant",
    "system": "system",
    "tool": "tool",
    "function": "tool",
    "chat": "assistant",
}
_PATHS = (("messages",), ("values", "messages"), ("checkpoint", "channel_values", "messages"))
"""Where a state keeps its messages."""


@dataclass(frozen=True, slots=True)
class LangChainReader:
    """Reads one conversation a file; states that name a `thread_id` are one a thread.

    A message has its own instant, else that of the earliest state which holds it. What a state holds beside its
    messages is an event of type `state`, with null in their place. What a state before it
    in the file has said is an event of type `copy`: each checkpoint of a thread holds all that was said until then.
    """

    name = "langchain"

    def detects(self, file: RecordedFile) -> bool:
        values = [file.first] if isinstance(file.first, dict) else file.first
        return any(_is_message(value) or any(map(_is_message, _messages(value)[1][:3])) for value in values)

    def read(self, file: RecordedFile) -> Iterator[RecordedItem]:
        threads = _threads(RecordedFile(file.path), file.name)
        for line, value in file.values():
            with file.record(line):
                record = as_object(value)
                path, messages = _messages(record)
                if path:
                    yield from threads[_thread(record) or file.name].state(record, path, messages, file, line)
                else:
                    yield RecordedItem(file.name, _item(record, file.name))


@dataclass(slots=True)
class _Thread:
    """A conversation of which several states may tell; its messages go by digests."""

    conversation_id: str
    said_at: dict[tuple[int, int], datetime | None] = field(default_factory=dict)
    """The instant of the earliest state that holds each."""
    _said: set[tuple[int, int]] = field(default_factory=set)
    """What the states that were read hold."""

    def survey(self, record: dict[str, Any], messages: list[Any]) -> None:
        instant = said_beside({"state": record, **record}, "state", "checkpoint")
        for key in _keys(messages):
            known = self.said_at.get(key)
            self.said_at[key] = min(filter(None, (known, instant)), default=None)

    def state(
        self, record: dict[str, Any], path: tuple[str, ...], messages: list[Any], file: RecordedFile, line: int
    ) -> Iterator[RecordedItem]:
        yield RecordedItem(self.conversation_id, Event("state", _without(record, path)))
        for number, (native, key) in enumerate(zip(messages, _keys(messages), strict=True), start=1):
            with file.record(line, f"messages {number}: "):
                item = _item(as_object(native), self.conversation_id)
                if isinstance(item, Message):
                    told = item.created_at or self.said_at[key]
                    item = Event("copy", native) if key in self._said else replace(item, created_at=told)
                yield RecordedItem(self.conversation_id, item)
        self._said.update(_keys(messages))


def _threads(file: RecordedFile, name: str) -> dict[str, _Thread]:
    threads: dict[str, _Thread] = {}
    for _, value in file.values():
        path, messages = _messages(value)
        if path:
            named = _thread(value) or name
            threads.setdefault(named, _Thread(named)).survey(value, messages)
    return threads


def _keys(messages: list[Any]) -> list[tuple[int, int]]:
    """What each message of a state is known by: two of them may say the same."""
    times: Counter[int] = Counter()
    found = []
    for key in map(_key, messages):
        times[key] += 1
        found.append((key, times[key]))
    return found


def _key(native: object) -> int:
    """The digest of a message's id, else of all that it says."""
    if not isinstance(native, dict):
        return digest(to_json(native))
    _, key = _body(native)
    return digest(native_id((native[key] if key else native).get("id")) or to_json(native))


def _messages(record: object) -> tuple[tuple[str, ...], list[Any]]:
    """Where a state keeps its messages, and these; nothing of what is no state."""
    for path in _PATHS:
        held = record
        for key in path:
            held = held.get(key) if isinstance(held, dict) else None
        if isinstance(held, list):
            return path, held
    return (), []


def _without(record: Mapping[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    key, *rest = path
    return {**record, key: _without(record[key], tuple(rest)) if rest else None}


def _thread(state: Mapping[str, Any]) -> str:
    configurable = object_in(object_in(state, "config"), "configurable")
    holders = (state, configurable, object_in(state, "checkpoint"), object_in(state, "metadata"))
    return next(filter(None, (native_id(holder.get("thread_id")) for holder in holders)), "")


def _body(record: Mapping[str, Any]) -> tuple[str, str]:
    """The name of a message's type, and the key under which its fields stand; empty where they are the record's own."""
    named, key = kind(record), ""
    if isinstance(record.get("kwargs"), dict) and isinstance(record.get("id"), list):
        named, key = str(record["id"][-1]) if record["id"] else "", "kwargs"
    elif isinstance(record.get("data"), dict):
        key = "data"
    return well_formed(named).removesuffix("Chunk").removesuffix("Message").lower(), key


def _item(record: dict[str, Any], session_id: str) -> Message | Event:
    named, key = _body(record)
    native: dict[str, Any] = record[key] if key else record
    if named not in _ROLES or "content" not in native:
        return Event(named or "unknown", record)
    said = decompose(native, text_in(native, "role") or _ROLES[named])
    return Message(
        message_id=native_id(native.get("id")),
        role=said.role,
        content=said.content,
        session_id=session_id,
        created_at=said_at(native) or said_beside(native, "additional_kwargs", "response_metadata"),
        author=text_in(native, "name") if said.role != "tool" else None,
        parts=said.parts,
        envelope=enclosed(said.envelope, record, key) if key else said.envelope,
    )


def _is_message(value: object) -> bool:
    """Say whether a person or a model says this: other types are other formats' too."""
    if not isinstance(value, dict):
        return False
    named, key = _body(value)
    is_said = named in ("human", "ai") or (key == "kwargs" and named in _ROLES)
    return is_said and "role" not in value and "content" in (value[key] if key else value)
