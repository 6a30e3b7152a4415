"""What the readers of all formats ask of a record: objects, texts, ids and instants in it."""

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

from lcm.clock import parse_instant
from lcm.encoding import is_well_formed, to_json, well_formed
from lcm.errors import TranscriptError

_MAY_BE_INSTANTS = (
    "createdAt", "created", "create_time", "createTime", "created_time", "created_utc", "sentAt", "sent_at",
    "ts", "timestamp_ms", "time", "datetime", "date",
)  # fmt: skip
_EPOCH_FROM = 10**8
"""Seconds: a smaller number is no instant of a session, but a duration or a count."""
_MERGED_FROM = 2**17


def as_object(value: object, what: str = "a record") -> dict[str, Any]:
    """The value, which must be a JSON object.

    Raises:
        TranscriptError: if it is another.
    """
    if not isinstance(value, dict):
        raise TranscriptError(f"{what} must be a JSON object, got {type(value).__name__}")
    return value


def object_in(holder: object, *path: str) -> dict[str, Any]:
    """The object under a key, or under the last of several, each within the one before; empty where there is none."""
    for key in path:
        holder = holder.get(key) if isinstance(holder, dict) else None
    return holder if isinstance(holder, dict) else {}


def list_in(holder: object, key: str) -> list[Any]:
    """The list under a key; empty where there is none."""
    value = holder.get(key) if isinstance(holder, dict) else None
    return value if isinstance(value, list) else []


def text_in(holder: object, *keys: str) -> str | None:
    """The first text under the keys."""
    held = holder if isinstance(holder, dict) else {}
    return next((well_formed(held[key]) for key in keys if isinstance(held.get(key), str)), None)


def json_in(holder: Mapping[str, Any], *keys: str) -> str | None:
    """The first value under the keys that is not null, as JSON text."""
    return next((to_json(holder[key]) for key in keys if holder.get(key) is not None), None)


def id_in(holder: object, *keys: str) -> str:
    """The first recorded id under the keys; empty where there is none."""
    return next(filter(None, map(native_id, map(holder.get, keys))), "") if isinstance(holder, dict) else ""


def native_id(value: object) -> str:
    """Give a recorded id as text; empty where there is none that can serve as one."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value if isinstance(value, str) and is_well_formed(value) else ""


def listed(value: object) -> list[Any]:
    """A list as it is, another value as the only element, nothing as none."""
    if value is None or value == "":
        return []
    return value if isinstance(value, list) else [value]


def kind(record: object) -> str:
    """The type that a record names."""
    return text_in(record, "type") or "unknown"


class UniqueIds:
    """Names the messages of one file, each by its recorded id, else by its place in the conversation, from 1.

    An id depends on the messages before it alone, so a file that has grown gives the old ones their old ids. A
    recorded id that was given before (files copied together, a session replayed) gets a number behind it, and so does
    one that looks like the place of a message before it.
    """

    def __init__(self) -> None:
        self._given = Digests()
        self._copies: dict[str, int] = {}
        self._placed: set[str] = set()  # conversations with messages that are named by their places

    def name(self, conversation_id: str, recorded_id: str, position: int) -> str:
        message_id = wanted = f"{conversation_id}:{recorded_id or position}"
        if not recorded_id:
            self._placed.add(conversation_id)
        is_a_place = conversation_id in self._placed and _is_place(recorded_id, position)
        if is_a_place or self._given.has(wanted):
            message_id = self._numbered(wanted)
        if recorded_id or message_id != wanted:  # places alone need not be remembered
            self._given.add(message_id)
        return message_id

    def _numbered(self, wanted: str) -> str:
        while True:
            copies = self._copies[wanted] = self._copies.get(wanted, 1) + 1
            message_id = f"{wanted}#{copies}"
            if not self._given.has(message_id):
                return message_id


def _is_place(recorded_id: str, position: int) -> bool:
    """Whether the id is what a message before this position could be named by its place."""
    return recorded_id.isdecimal() and len(recorded_id) <= len(str(position)) and int(recorded_id) < position


class Digests:
    """A set of texts that grows by eight bytes each: a file of a gigabyte may hold ten million ids."""

    def __init__(self) -> None:
        self._newest: set[int] = set()
        self._sorted: list[npt.NDArray[np.uint64]] = []  # each at least twice as long as the next

    def add(self, text: str) -> bool:
        """Take a text in; returns whether it is new."""
        number = digest(text)
        if self._holds(number):
            return False
        self._newest.add(number)
        if len(self._newest) >= _MERGED_FROM:
            run = np.sort(np.fromiter(self._newest, np.uint64, len(self._newest)))
            while self._sorted and len(self._sorted[-1]) < 2 * len(run):
                run = np.sort(np.concatenate([self._sorted.pop(), run]), kind="stable")
            self._sorted.append(run)
            self._newest = set()
        return True

    def has(self, text: str) -> bool:
        return self._holds(digest(text))

    def _holds(self, number: int) -> bool:
        return number in self._newest or any(place_of(number, run) is not None for run in self._sorted)


def place_of(number: int, ascending: npt.NDArray[np.uint64]) -> int | None:
    """Where a number stands first among others."""
    at = int(ascending.searchsorted(np.uint64(number)))
    return at if at < len(ascending) and ascending[at] == number else None


def digest(text: str) -> int:
    """Eight bytes that stand for an id where there are too many to keep; never 0."""
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()) or 1


def said_at(message: Mapping[str, Any]) -> datetime | None:
    """When a message was said, in formats that do not say under which key: ISO 8601 text, or a number since 1970 in
    seconds or a smaller unit, which may be text too.

    `created_at` and `timestamp` are instants. What stands under the other keys may be anything, a duration or a name,
    and is passed over where it is no instant.

    Raises:
        TranscriptError: if what stands under those two is no instant.
    """
    if (instant := recorded_instant(message, "created_at", "timestamp")) is not None:
        return instant
    for key in _MAY_BE_INSTANTS:
        value = message.get(key)
        is_one = value > _EPOCH_FROM if isinstance(value, int | float) else isinstance(value, str)
        if is_one and (instant := known_instant(message, key)) is not None:
            return instant
    return None


def said_beside(message: Mapping[str, Any], *keys: str) -> datetime | None:
    """When it was said, as the first of the objects under the keys says; they are an application's own, and one that
    has no instant is passed over."""
    for holder in (message[key] for key in keys if isinstance(message.get(key), dict)):
        with suppress(TranscriptError):
            if (instant := said_at(holder)) is not None:
                return instant
    return None


def recorded_instant(holder: Mapping[str, Any], *keys: str) -> datetime | None:
    """Read the first instant that is there.

    Raises:
        TranscriptError: if it is not ISO 8601 text or an epoch number.
    """
    value = next((holder[key] for key in keys if holder.get(key) is not None), None)
    if value is None:
        return None
    if not isinstance(value, str | int | float):
        raise TranscriptError(f"an instant must be ISO 8601 text or an epoch number, got {value!r:.80}")
    try:
        return parse_instant(value)
    except ValueError as err:
        raise TranscriptError(str(err)) from err


def known_instant(holder: object, *keys: str) -> datetime | None:
    """The first instant that is there; None where it cannot be read either."""
    with suppress(TranscriptError):
        return recorded_instant(holder, *keys) if isinstance(holder, dict) else None
    return None
