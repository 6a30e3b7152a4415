"""LangChain messages and LangGraph states: JSON or JSONL, of messages or of states that hold them.

A message is written in one of three ways: by `messages_to_dict` (`{type, data}`), by `dumps` (`{lc, id, kwargs}`), or
as its own fields (`{type, content}`). A state has them under `messages`, alone, in `values` (an exported state or
thread), or in the `channel_values` of a `checkpoint`.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import cycle
from typing import Any, NamedTuple

from lcm.encoding import to_json, well_formed
from lcm.records.conversation import Event, Message
from lcm.transcript.fields import as_object, digest, id_in, kind, object_in, said_at, said_beside, text_in
from lcm.transcript.parts import decompose
from lcm.transcript.reader import RecordedItem
from lcm.transcript.recorded_file import RecordedFile

_ROLES = {
    "human": "user", "ai": "assistant", "chat": "assistant", "system": "system", "tool": "tool", "function": "tool",
}  # fmt: skip
_PATHS = (("messages",), ("values", "messages"), ("checkpoint", "channel_values", "messages"))
"""Where a state keeps its messages."""


@dataclass(frozen=True, slots=True)
class LangChainReader:
    """Reads one conversation a file; states that name a `thread_id` are one a thread.

    Each checkpoint of a thread holds all that was said until then. A message is said in the newest state that holds it,
    as it is written there; in any other it is an event of type `copy`. What the newest state of all no longer holds was
    removed, or left by a fork: such messages are a branch with those that went at once. A message has its own instant,
    else that of the earliest state which holds it. What a state holds beside its messages is an event of type `state`,
    with null in their place.
    """

    name = "langchain"

    def detects(self, file: RecordedFile) -> bool:
        return any(_is_message(value) or any(map(_is_message, _messages(value)[1][:3])) for value in file.heads)

    def read(self, file: RecordedFile) -> Iterator[RecordedItem]:
        threads = _threads(file)
        for line, value in file.values():
            with file.record(line):
                record = as_object(value)
                if path := _messages(record)[0]:
                    named = _configured(record, "thread_id") or file.name
                    yield from threads[named].state(record, path, file, line)
                else:
                    yield RecordedItem(file.name, _item(record, file.name))


class _State(NamedTuple):
    """One state of a thread."""

    instant: datetime | None
    many: int
    """Messages."""
    graph: str
    """Of a thread's subgraphs each keeps states of its own; empty = the graph itself."""


class _Told(NamedTuple):
    """What the states of a thread tell of one message."""

    newest: int
    """The rank of the newest state that holds it."""
    earliest: datetime | None
    """The instant of the earliest."""
    is_kept: bool
    """A newest state of all holds it."""


@dataclass(slots=True)
class _Thread:
    """A conversation of which several states may tell; its messages go by digests."""

    conversation_id: str
    states: list[_State] = field(default_factory=list)
    """In the order of the file."""
    _in_file: Iterator[tuple[int, _State]] = field(default_factory=lambda: iter(()))
    """The states with their ranks, the oldest's 0, in the order of the file, again and again."""
    _told: dict[tuple[int, int], _Told] = field(default_factory=dict)
    _newest: dict[str, int] = field(default_factory=dict)
    """The rank of the newest state that holds any message, by graph."""
    _branches: dict[int, str] = field(default_factory=dict)
    """What a branch adds to the conversation's id, by the rank of the newest state that holds it."""

    def rank(self) -> None:
        """Put the states in order: by their instants, else as the file has them, which may be the newest first."""
        places = list(range(len(self.states)))
        if self.states[0].many > self.states[-1].many:
            places.reverse()
        instants = {place: instant for place in places if (instant := self.states[place].instant) is not None}
        if len(instants) == len(places):
            places.sort(key=instants.__getitem__)
        ranks = {place: rank for rank, place in enumerate(places)}
        self._in_file = cycle([(ranks[place], state) for place, state in enumerate(self.states)])
        self._newest = {self.states[place].graph: rank for rank, place in enumerate(places) if self.states[place].many}

    def survey(self, messages: list[Any]) -> None:
        """Take in which messages the next state of the file holds; all states were ranked before."""
        rank, state = next(self._in_file)
        is_newest = rank == self._newest.get(state.graph)
        for key in _keys(messages):
            known = self._told.get(key, _Told(rank, None, False))
            earliest = min(filter(None, (known.earliest, state.instant)), default=None)
            self._told[key] = _Told(max(known.newest, rank), earliest, known.is_kept or is_newest)

    def state(
        self, record: dict[str, Any], path: tuple[str, ...], file: RecordedFile, line: int
    ) -> Iterator[RecordedItem]:
        """The next state of the file; all were surveyed before."""
        yield RecordedItem(self.conversation_id, Event("state", _without(record, path)))
        (rank, _), messages = next(self._in_file), _messages(record)[1]
        for number, (native, key) in enumerate(zip(messages, _keys(messages), strict=True), start=1):
            with file.record(line, f"messages {number}: "):
                item, suffix, told = _item(as_object(native), self.conversation_id), "", self._told[key]
                if isinstance(item, Message) and rank < told.newest:
                    item = Event("copy", native)
                    file.copies += 1
                elif isinstance(item, Message):
                    item = replace(item, created_at=item.created_at or told.earliest)
                    left = f"~{item.message_id or number}"
                    suffix = "" if told.is_kept else self._branches.setdefault(rank, left)
                yield RecordedItem(self.conversation_id + suffix, item)


def _threads(file: RecordedFile) -> dict[str, _Thread]:
    threads: dict[str, _Thread] = {}
    for record, messages in _states(file):
        named = _configured(record, "thread_id") or file.name
        instant = said_beside({"state": record, **record}, "state", "checkpoint")
        state = _State(instant, len(messages), _configured(record, "checkpoint_ns"))
        threads.setdefault(named, _Thread(named)).states.append(state)
    for thread in threads.values():
        thread.rank()
    for record, messages in _states(file):
        threads[_configured(record, "thread_id") or file.name].survey(messages)
    return threads


def _states(file: RecordedFile) -> Iterator[tuple[dict[str, Any], list[Any]]]:
    """The states of a file, each with its messages."""
    for _, value in RecordedFile(file.path).values():
        path, messages = _messages(value)
        if path:
            yield value, messages


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
    return digest(id_in(native[key] if key else native, "id") or to_json(native))


def _messages(record: object) -> tuple[tuple[str, ...], list[Any]]:
    """Where a state keeps its messages, and these; nothing of what is no state."""
    for path in _PATHS:
        held = object_in(record, *path[:-1]).get(path[-1])
        if isinstance(held, list):
            return path, held
    return (), []


def _without(record: Mapping[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    key, *rest = path
    return {**record, key: _without(record[key], tuple(rest)) if rest else None}


def _configured(state: Mapping[str, Any], key: str) -> str:
    paths = ((), ("config", "configurable"), ("checkpoint",), ("metadata",))
    return next(filter(None, (id_in(object_in(state, *path), key) for path in paths)), "")


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
    if key:
        said = said.within(record, key)
    instant = said_at(native) or said_beside(native, "additional_kwargs", "response_metadata")
    return said.message(
        id_in(native, "id"), session_id, instant, text_in(native, "name") if said.role != "tool" else None
    )


def _is_message(value: object) -> bool:
    """Say whether a person or a model says this: other types are other formats' too."""
    if not isinstance(value, dict):
        return False
    named, key = _body(value)
    is_said = named in ("human", "ai") or (key == "kwargs" and named in _ROLES)
    return is_said and "role" not in value and "content" in (value[key] if key else value)
