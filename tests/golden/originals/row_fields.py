"""The normal form of metadata fields (None stands for "absent"), and the memory category of a row of the older
vocabulary.

Source: memory-lancedb-pro, smart-metadata, reverseMapLegacyCategory and normalizeCategory.
"""

import math
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal

from lcm.javascript import clamp01, to_number, trim, utf16_length
from lcm.records.document import MEMORY_CATEGORIES
from lcm.writing.lifecycle import fact_key, well_formed

TIERS = ("core", "working", "peripheral")
TEMPORAL_TYPES = ("static", "dynamic")
SOURCES = ("manual", "auto-capture", "reflection", "session-summary", "legacy")
LATER_SOURCES = (*SOURCES, "dreaming-engine")
"""Of 1.1.0-beta.11."""
STATES = ("pending", "confirmed", "archived")
LAYERS = ("durable", "working", "reflection", "archive")

Version = Literal["beta.10", "beta.11"]
"""Of the plugin's 1.1.0."""
MAPPED = "memory-reflection-mapped"
"""The type of a row that was made of a reflection and stands among the memories."""

COUNTS = ("injected_count", "bad_recall_count", "suppressed_until_turn")

_SUPPRESSED = "suppressed_until_ms"
_OPTIONAL_TIMES = ("valid_until", "last_injected_at", "last_confirmed_use_at")
_OPTIONAL_TEXTS = ("supersedes", "superseded_by", "canonical_id")
_ENUMERATIONS = (
    ("tier", TIERS, "working"),
    ("state", STATES, "confirmed"),
    ("memory_layer", LAYERS, "working"),
)
_ABSENT_WHEN_NONE = frozenset(
    {
        *_OPTIONAL_TIMES,
        *_OPTIONAL_TEXTS,
        _SUPPRESSED,
        "invalidated_at",
        "memory_temporal_type",
        "fact_key",
        "source_session",
        "relations",
    }
)


def number_in(given: Mapping[str, object], key: str) -> float:
    """The number under a key: null is 0, an absent key NaN."""
    return to_number(given[key]) if key in given else math.nan


def text_or_none(value: object) -> str | None:
    """Trimmed text; None for blank text, and for what is no text."""
    return trim(value) or None if isinstance(value, str) else None


def count_or(number: float, default: float) -> float:
    """Rounded down; the default for a negative number or none."""
    return math.floor(number) if math.isfinite(number) and number >= 0 else default


def time_or_none(number: float) -> int | None:
    """Epoch milliseconds, rounded down; None unless above 0."""
    return math.floor(number) if math.isfinite(number) and number > 0 else None


def one_of(value: object, names: tuple[str, ...], otherwise: str) -> str:
    return value if isinstance(value, str) and value in names else otherwise


def source_of(value: object, version: Version) -> str:
    return one_of(value, SOURCES if version == "beta.10" else LATER_SOURCES, "legacy")


def normal_form(given: Mapping[str, Any], defaults: Mapping[str, Any], version: Version) -> dict[str, Any]:
    """Every known field of `given` in normal form, or else its default; unknown keys of both."""
    fields: dict[str, Any] = {**defaults, **given}
    for key in ("l0_abstract", "l2_content"):
        fields[key] = text_or_none(given.get(key)) or defaults[key]
    overview = text_or_none(given.get("l1_overview")) or defaults.get("l1_overview")
    fields["l1_overview"] = overview or f"- {fields['l0_abstract']}"
    named = given.get("memory_category")
    fields["memory_category"] = named if isinstance(named, str) else defaults["memory_category"]
    for key, names, otherwise in _ENUMERATIONS:
        fields[key] = one_of(fields[key], names, otherwise)
    fields["source"] = source_of(fields["source"], version)
    for key in ("access_count", "last_accessed_at", *COUNTS):
        fields[key] = count_or(number_in(given, key), defaults[key])
    if version == "beta.11":
        suppressed = next((v for v in (given.get(_SUPPRESSED), defaults.get(_SUPPRESSED)) if v is not None), None)
        fields[_SUPPRESSED] = None if suppressed is None else count_or(to_number(suppressed), 0)
    fields["confidence"] = clamp01(number_in(given, "confidence"), defaults["confidence"])
    begin = time_or_none(number_in(given, "valid_from"))
    fields["valid_from"] = defaults["valid_from"] if begin is None else begin
    for key in _OPTIONAL_TIMES:
        fields[key] = time_or_none(number_in(fields, key))
    end = time_or_none(number_in(fields, "invalidated_at"))
    fields["invalidated_at"] = end if end is not None and end >= fields["valid_from"] else None
    kind = one_of(fields.get("memory_temporal_type"), TEMPORAL_TYPES, "")
    fields["memory_temporal_type"] = kind or None
    for key in _OPTIONAL_TEXTS:
        fields[key] = text_or_none(fields.get(key))
    fields["fact_key"] = (
        text_or_none(given.get("fact_key"))
        or defaults.get("fact_key")
        or fact_key(fields["memory_category"], fields["l0_abstract"])
    )
    sessions = (given.get("source_session"), defaults.get("source_session"))
    fields["source_session"] = next((session for session in sessions if isinstance(session, str)), None)
    fields["relations"] = well_formed(fields["relations"]) if isinstance(fields.get("relations"), list) else None
    return {key: value for key, value in fields.items() if value is not None or key not in _ABSENT_WHEN_NONE}


PROFILE_LENGTH = 200
"""UTF-16 units from which a fact no longer counts as a self-description."""

CATEGORY_OF: Mapping[str, str] = MappingProxyType(
    {
        "preference": "preferences",
        "fact": "cases",
        "decision": "events",
        "entity": "entities",
        "reflection": "patterns",
        "other": "patterns",
    }
)
"""What a name of the older vocabulary stands for."""

# Word boundaries are those of ASCII. Chinese has none, so its cues count wherever they stand: the original asks for
# boundaries around them too, and so hardly ever finds one.
_SELF_DESCRIPTION = re.compile(r"\b(?:my |i am |i'm |name is )\b|叫我|我的|我是", re.ASCII | re.IGNORECASE)


def memory_category(legacy: str | None, text: str, version: Version = "beta.10", row_type: object = None) -> str:
    """The memory category of a row that names none: a short self-description among the facts is a profile, any other
    fact a case, and what is unknown a pattern. Since beta.11 a name of the six stays, and a decision that was made of a
    reflection is a fact."""
    if version == "beta.11" and legacy in MEMORY_CATEGORIES:
        return legacy
    if legacy == "fact" or (version == "beta.11" and legacy == "decision" and row_type == MAPPED):
        is_profile = utf16_length(text) < PROFILE_LENGTH and _SELF_DESCRIPTION.search(text)
        return "profile" if is_profile else "cases"
    return CATEGORY_OF.get(legacy or "", "patterns")


def normalized(category: str) -> str | None:
    """One of the six categories, whatever its case and the white space around it; None for anything else."""
    name = trim(category.lower())
    return name if name in MEMORY_CATEGORIES else None
