"""Ids and instants of messages as the formats give them."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from hashlib import blake2b
from typing import Any

from lcm.encoding import is_well_formed
from lcm.errors import TranscriptError
from lcm.instants import parse_instant


def native_id(value: object) -> str:
    """Give a recorded id as text; empty where there is none that can serve as one."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value if isinstance(value, str) and is_well_formed(value) else ""


class UniqueIds:
    """Names the messages of one file, each by its recorded id, else by its place in the conversation, from 1.

    An id depends on the messages before it alone, so a file that has grown gives the old ones their old ids. A
    recorded id that was given before (files copied together, a session replayed) gets a number behind it.
    """

    def __init__(self) -> None:
        self._given: set[bytes] = set()  # digests: a tenth of what the ids would take
        self._copies: dict[str, int] = {}

    def name(self, conversation_id: str, recorded_id: str, position: int) -> str:
        wanted = f"{conversation_id}:{recorded_id or position}"
        message_id = wanted
        while (digest := blake2b(message_id.encode(), digest_size=8).digest()) in self._given:
            copies = self._copies[wanted] = self._copies.get(wanted, 1) + 1
            message_id = f"{wanted}#{copies}"
        self._given.add(digest)
        return message_id


def recorded_instant(holder: Mapping[str, Any], keys: Iterable[str]) -> datetime | None:
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
