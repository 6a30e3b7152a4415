"""The lifecycle metadata of a plugin's row, under the plugin's own names. Instants are epoch milliseconds.

Source: memory-lancedb-pro, smart-metadata and access-tracker; isMemoryActiveAt and isMemoryExpired.
"""

import json
import logging
import math
from collections.abc import Mapping
from typing import Any

from lcm.javascript import clamp_int, to_number
from lcm.records.document import category_named
from tests.golden.originals.row_fields import (
    COUNTS,
    MAPPED,
    STATES,
    Version,
    memory_category,
    normal_form,
    one_of,
    source_of,
)

MAX_ACCESS_COUNT = 10_000
DEFAULT_CONFIDENCE = 0.7
DEFAULT_IMPORTANCE = 0.7

_MOST_IN_VAIN = 3

_SOURCE_OF_TYPE = {
    "session-summary": "session-summary",
    "memory-reflection": "reflection",
    "memory-reflection-item": "reflection",
}
_SOURCES_OF_TYPES: Mapping[Version, Mapping[str, str]] = {
    "beta.10": _SOURCE_OF_TYPE,
    "beta.11": {**_SOURCE_OF_TYPE, MAPPED: "reflection"},
}
_REFLECTIONS = ("reflection", "session-summary", "dreaming-engine")
_DURABLE_CATEGORIES = ("profile", "preferences", "events")

_log = logging.getLogger(__name__)


def parse(
    metadata: str | Mapping[str, Any] | None,
    *,
    text: str,
    category: str | None,
    timestamp_ms: float | None,
    now_ms: float,
    version: Version = "beta.10",
) -> dict[str, Any]:
    """The metadata in normal form, every field filled in that has a default; other keys stay as they are.

    Args:
        metadata: JSON text or what it decodes to; what is no object counts as empty.
        text: the row's.
        category: the row's, of the older vocabulary.
        timestamp_ms: the row's; `now_ms` where it is absent or not finite.
        now_ms: the present.
        version: whose rules.
    """
    given = object_of(metadata)
    stamp = _instant_or(timestamp_ms, now_ms)
    kind = given.get("type") if isinstance(given.get("type"), str) else None
    mapped = memory_category(category, text, version, kind)
    defaults: dict[str, Any] = {
        "l0_abstract": text,
        "l2_content": text,
        "memory_category": mapped,
        "tier": "working",
        "access_count": 0,
        "confidence": DEFAULT_CONFIDENCE,
        "last_accessed_at": stamp,
        "valid_from": stamp,
        **dict.fromkeys(COUNTS, 0),
    }
    defaults["source"] = _SOURCES_OF_TYPES[version].get(kind or "", "legacy")
    source = source_of(given.get("source", defaults["source"]), version)
    defaults["state"] = "archived" if source == "session-summary" else "confirmed"
    state = one_of(given.get("state", defaults["state"]), STATES, "confirmed")
    if version == "beta.11":
        mapped = category_named(given.get("memory_category")) or mapped
    is_reflection = source in _REFLECTIONS and not (version == "beta.11" and kind == MAPPED)
    defaults["memory_layer"] = "reflection" if is_reflection else _default_layer(state, mapped)
    return normal_form(given, defaults, version)


def build(
    metadata: str | Mapping[str, Any] | None,
    patch: Mapping[str, Any],
    *,
    text: str,
    category: str | None,
    timestamp_ms: float | None,
    now_ms: float,
    version: Version = "beta.10",
) -> dict[str, Any]:
    """The metadata in normal form with a patch over it, read by the same rules; a key that the patch lacks keeps its
    value. A given time that is none clears the field; where the patch says nothing of the last access and none is known
    (0), the row's own instant stands for it, or else the present."""
    base = parse(metadata, text=text, category=category, timestamp_ms=timestamp_ms, now_ms=now_ms, version=version)
    last = base["last_accessed_at"] or _instant_or(timestamp_ms, now_ms) or now_ms
    return normal_form(patch, base | {"last_accessed_at": last}, version)


def access(metadata: str | Mapping[str, Any] | None) -> tuple[int, float]:
    """How often and when last a row was accessed: (0..10000, instant or 0). The camelCase keys go before the others."""
    return _access_of(object_of(metadata))


def reinforced(metadata: str | Mapping[str, Any] | None, delta: int, now_ms: float) -> dict[str, Any]:
    """The metadata after `delta` more accesses, the last of them now; written under both spellings of the keys."""
    given = object_of(metadata)
    count = clamp_int(_access_of(given)[0] + delta, 0, MAX_ACCESS_COUNT)
    return given | {
        "accessCount": count,
        "access_count": count,
        "lastAccessedAt": now_ms,
        "last_accessed_at": now_ms,
    }


def is_suppressed(fields: Mapping[str, Any], now_ms: float) -> bool:
    """Say whether automatic recall passes a row over for now. Of 1.1.0-beta.11, as is `injected`."""
    return bool(now_ms < fields.get("suppressed_until_ms", 0))


def injected(
    fields: Mapping[str, Any],
    now_ms: float,
    *,
    suppresses: bool = True,
    suppression_ms: float = 1_800_000,
    forgets_after_ms: float = 86_400_000,
) -> dict[str, Any]:
    """What changes in a row that automatic recall puts into a prompt: it counts as accessed, and as recalled in vain
    where nobody confirmed the time before.

    Args:
        fields: its metadata; one that lacks `suppressed_until_ms` has counters of another rule, which start anew.
        now_ms: the present.
        suppresses: whether the third time in vain suppresses it.
        suppression_ms: for how long.
        forgets_after_ms: after so long without an injection none was in vain; 0 = never.
    """
    until, last = fields.get("suppressed_until_ms"), fields.get("last_injected_at")
    in_vain = fields.get("bad_recall_count", 0)
    is_of_another_rule = until is None and (in_vain > 0 or fields.get("suppressed_until_turn", 0) > 0)
    is_long_ago = last is None or now_ms - last > forgets_after_ms
    if is_of_another_rule or (forgets_after_ms > 0 and is_long_ago):
        in_vain = 0
    if last and fields.get("last_confirmed_use_at", -math.inf) < last:
        in_vain += 1
    until = until or 0
    return {
        "access_count": fields.get("access_count", 0) + 1,
        "last_accessed_at": now_ms,
        "injected_count": fields.get("injected_count", 0) + 1,
        "last_injected_at": now_ms,
        "bad_recall_count": in_vain,
        "suppressed_until_ms": max(until, now_ms + suppression_ms)
        if suppresses and in_vain >= _MOST_IN_VAIN
        else until,
        "suppressed_until_turn": 0,
    }


def lifecycle(
    parsed: Mapping[str, Any], *, importance: float | None, timestamp_ms: float | None, now_ms: float
) -> dict[str, Any]:
    """What the decay engine asks of a row, by the names of its arguments.

    Args:
        parsed: what `parse` gave.
        importance: the row's; 0.7 where it is absent or not finite.
        timestamp_ms: the row's; `now_ms` where it is absent or not finite.
        now_ms: the present.
    """
    created = _instant_or(timestamp_ms, now_ms)
    weight = DEFAULT_IMPORTANCE if importance is None or not math.isfinite(importance) else importance
    return {
        "importance": weight,
        "confidence": parsed["confidence"],
        "tier": parsed["tier"],
        "access_count": parsed["access_count"],
        "created_at_ms": created,
        "last_accessed_at_ms": parsed["last_accessed_at"] or created,
        "temporal_type": parsed.get("memory_temporal_type"),
    }


def is_active(valid_from: float, invalidated_at: float | None, at_ms: float) -> bool:
    """Say whether a row exists by then, and no other stands in its place; 0 = never invalidated."""
    return valid_from <= at_ms and (not invalidated_at or invalidated_at > at_ms)


def is_expired(valid_until: float | None, at_ms: float) -> bool:
    """Say whether the time of a row has run out: at `valid_until` itself already."""
    return valid_until is not None and valid_until <= at_ms


def _instant_or(timestamp_ms: float | None, now_ms: float) -> float:
    return now_ms if timestamp_ms is None or not math.isfinite(timestamp_ms) else timestamp_ms


def _access_of(given: Mapping[str, Any]) -> tuple[int, float]:
    count = _first_given(given, "accessCount", "access_count")
    last = _first_given(given, "lastAccessedAt", "last_accessed_at")
    return (
        clamp_int(count, 0, MAX_ACCESS_COUNT),
        last if math.isfinite(last) and last >= 0 else 0.0,
    )


def _first_given(given: Mapping[str, Any], *keys: str) -> float:
    return next((to_number(given[key]) for key in keys if given.get(key) is not None), math.nan)


def object_of(metadata: str | Mapping[str, Any] | None) -> dict[str, Any]:
    if metadata is None or metadata == "":
        return {}
    if isinstance(metadata, Mapping):
        return dict(metadata)
    try:
        value = json.loads(metadata, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        _log.warning("metadata is no JSON, taken as empty: %s", error)
        return {}
    if not isinstance(value, dict):
        _log.warning("metadata is a JSON %s, not an object; taken as empty", type(value).__name__)
        return {}
    return value


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _default_layer(state: str, mapped: str) -> str:
    if state == "archived":
        return "archive"
    return "durable" if mapped in _DURABLE_CATEGORIES else "working"
