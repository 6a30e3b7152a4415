"""What the readers of all formats ask of a record."""

from collections.abc import Mapping
from typing import Any

from lcm.encoding import to_json, well_formed
from lcm.errors import TranscriptError


def as_object(value: object, what: str = "a record") -> dict[str, Any]:
    """The value, which must be a JSON object.

    Raises:
        TranscriptError: if it is another.
    """
    if not isinstance(value, dict):
        raise TranscriptError(f"{what} must be a JSON object, got {type(value).__name__}")
    return value


def object_in(holder: Mapping[str, Any], key: str) -> dict[str, Any]:
    """The object under a key; empty where there is none."""
    value = holder.get(key)
    return value if isinstance(value, dict) else {}


def text_in(holder: Mapping[str, Any], *keys: str) -> str | None:
    """The first text under the keys."""
    return next((well_formed(holder[key]) for key in keys if isinstance(holder.get(key), str)), None)


def json_in(holder: Mapping[str, Any], *keys: str) -> str | None:
    """The first value under the keys that is not null, as JSON text."""
    return next((to_json(holder[key]) for key in keys if holder.get(key) is not None), None)


def listed(value: object) -> list[Any]:
    """A list as it is, another value as the only element, nothing as none."""
    if value is None or value == "":
        return []
    return value if isinstance(value, list) else [value]


def kind(record: Mapping[str, Any]) -> str:
    """The type that a record names."""
    return text_in(record, "type") or "unknown"
