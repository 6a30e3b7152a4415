"""Ids and instants of messages as the formats give them."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from lcm.encoding import is_well_formed
from lcm.errors import TranscriptError
from lcm.instants import parse_instant


def native_id(value: object) -> str | None:
    """Give a recorded id as text; None where there is none that can serve as one."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value if isinstance(value, str) and value and is_well_formed(value) else None


def unique_id(conversation_id: str, recorded_id: object, position: int) -> str:
    """Name a message within its workspace: by its recorded id, else by its place in the conversation, from 1."""
    return f"{conversation_id}:{native_id(recorded_id) or position}"


def recorded_instant(holder: Mapping[str, Any], keys: Iterable[str], where: str) -> datetime | None:
    """Read the first instant that is there.

    Raises:
        TranscriptError: if it is not ISO 8601 text or an epoch number.
    """
    value = next((holder[key] for key in keys if holder.get(key) is not None), None)
    if value is None:
        return None
    if not isinstance(value, str | int | float):
        raise TranscriptError(f"{where}: an instant must be ISO 8601 text or an epoch number, got {value!r}")
    try:
        return parse_instant(value)
    except ValueError as err:
        raise TranscriptError(f"{where}: {err}") from err
