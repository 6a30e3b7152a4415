"""What a document's category, topic, relations and observations mean for its life.

Source: memory-lancedb-pro: memory-categories, deriveFactKey, appendRelation, stringifySmartMetadata, parseSupportInfo,
normalizeContext and updateSupportStats.
"""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType
from typing import Any, Literal

from lcm.javascript import WHITE_SPACE, is_finite_number, trim, utf16_length

ALWAYS_MERGED = frozenset({"profile"})
"""Merged into the nearest document of the same category, without deduplication."""
MERGED = frozenset({"preferences", "entities", "patterns"})
"""May be merged into a document that they refine."""
VERSIONED = frozenset({"preferences", "entities"})
"""Truths that are replaced over time: a newer one supersedes."""

DEFAULT_IMPORTANCE: Mapping[str, float] = MappingProxyType(
    {"profile": 0.9, "preferences": 0.8, "entities": 0.7, "events": 0.6, "cases": 0.8, "patterns": 0.85}
)
UNKNOWN_IMPORTANCE = 0.5
"""Of any other category."""


MAX_TOPIC_LENGTH = 120
"""UTF-16 units of what stands before the separator."""

_BEFORE_COLON = re.compile(r"([^\n\r\u2028\u2029]+?)[:：]")
# White space before an arrow is not of the topic, so that a full stop there is a final one; before a colon it is.
_BEFORE_ARROW = re.compile(rf"([^\n\r\u2028\u2029]{{1,{MAX_TOPIC_LENGTH}}}?)[{WHITE_SPACE}]*(?:->|=>)")
_BLANKS = re.compile(f"[{WHITE_SPACE}]+")


def fact_key(category: str, abstract: str) -> str | None:
    """The category and the topic of a preference or an entity; None for another category, or where no topic is left.

    The topic is what stands before the first colon, else before the first arrow, of 1 to 120 units on the first line;
    else the whole abstract. Case, runs of white space and final full stops, "!" and "?" do not tell topics apart.
    """
    if category not in VERSIONED:
        return None
    topic = _topic(trim(abstract))
    normal = trim(_BLANKS.sub(" ", topic.lower()).rstrip("。.!?"))
    return f"{category}:{normal}" if normal else None


def _topic(abstract: str) -> str:
    for pattern in (_BEFORE_COLON, _BEFORE_ARROW):
        found = pattern.match(abstract)
        if found and utf16_length(found[1]) <= MAX_TOPIC_LENGTH:
            return found[1]
    return abstract


_CAPS = {"sources": 20, "history": 50, "relations": 16}

Relation = dict[str, str]


def well_formed(relations: object) -> list[Relation]:
    """The relations that name a type and a target, in order; of anything but a list none."""
    if not isinstance(relations, list | tuple):
        return []
    return [{"type": row["type"], "targetId": row["targetId"]} for row in relations if _is_relation(row)]


def appended(relations: object, relation_type: str, target_id: str) -> list[Relation]:
    """The well-formed relations and one more, unless the same one is among them."""
    kept, added = well_formed(relations), {"type": relation_type, "targetId": target_id}
    return kept if added in kept else [*kept, added]


def capped(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata as it is stored: the last 20 sources, 50 of the history, 16 relations."""
    stored = dict(metadata)
    for key, most in _CAPS.items():
        if isinstance(stored.get(key), list | tuple):
            stored[key] = list(stored[key])[-most:]
    return stored


def _is_relation(row: object) -> bool:
    return isinstance(row, Mapping) and isinstance(row.get("type"), str) and isinstance(row.get("targetId"), str)


GENERAL = "general"
MAX_SLICES = 8
NEUTRAL_STRENGTH = 0.5
"""Where nothing was observed."""

CONTEXT_OF: Mapping[str, str] = MappingProxyType(
    {
        alias: context
        for context, aliases in {
            "morning": "早上 上午 早晨",
            "afternoon": "下午",
            "evening": "傍晚 晚上",
            "night": "深夜 夜晚 凌晨",
            "weekday": "工作日 平时",
            "weekend": "周末 假日 休息日",
            "work": "工作 上班 办公",
            "leisure": "休闲 放松 休息",
            "summer": "夏天 夏季",
            "winter": "冬天 冬季",
            "travel": "旅行 出差 旅游",
        }.items()
        for alias in aliases.split()
    }
)
"""Chinese labels and the contexts that they name."""


@dataclass(frozen=True, slots=True)
class ContextSupport:
    """How often a document was confirmed or contradicted in one context."""

    context: str
    confirmations: float
    contradictions: float
    strength: float
    """confirmations / (confirmations + contradictions), as of the last update."""
    last_observed_at: float
    """Epoch milliseconds."""


@dataclass(frozen=True, slots=True)
class Support:
    """How often a document was confirmed or contradicted, in every context."""

    global_strength: float = NEUTRAL_STRENGTH
    total_observations: float = 0
    """May exceed those of the slices: evidence of dropped slices counts in the update that dropped them."""
    slices: tuple[ContextSupport, ...] = ()


def normalized_context(label: object) -> str:
    """A label in lower case without white space around it, aliases resolved; blank or no text: general."""
    name = trim(label).lower() if isinstance(label, str) else ""
    return CONTEXT_OF.get(name, name) or GENERAL


def read_support(info: object, now_ms: float) -> Support:
    """The support that a row's metadata hold.

    Args:
        info: `support_info`: slices by context, or of older rows two counters, which become one general slice.
        now_ms: when a slice that does not say so was last observed.
    """
    if not isinstance(info, Mapping):
        return Support()
    rows = info.get("slices")
    if not isinstance(rows, list | tuple):
        return _of_counters(_count(info.get("confirmations")), _count(info.get("contradictions")), now_ms)
    return Support(
        global_strength=_strength(info.get("global_strength")),
        total_observations=_count(info.get("total_observations")),
        slices=tuple(_slice(row, now_ms) for row in rows if _names_a_context(row)),
    )


def support_info(support: Support) -> dict[str, Any]:
    """The support as metadata hold it: what `read_support` reads back."""
    return {**asdict(support), "slices": [asdict(known) for known in support.slices]}


def observe(support: Support, label: object, event: Literal["support", "contradict"], now_ms: float) -> Support:
    """The support after one more observation in the context of that label.

    Of more than 8 slices the most recently observed stay, latest first.
    """
    context = normalized_context(label)
    slices = list(support.slices)
    place = next((i for i, known in enumerate(slices) if known.context == context), None)
    if place is None:
        place = len(slices)
        slices.append(ContextSupport(context, 0, 0, NEUTRAL_STRENGTH, now_ms))
    slices[place] = _counted(slices[place], event, now_ms)
    confirmations = sum(known.confirmations for known in slices)
    total = confirmations + sum(known.contradictions for known in slices)
    if len(slices) > MAX_SLICES:
        slices = sorted(slices, key=lambda known: -known.last_observed_at)[:MAX_SLICES]
    return Support(_share(confirmations, total), total, tuple(slices))


def _counted(known: ContextSupport, event: Literal["support", "contradict"], now_ms: float) -> ContextSupport:
    confirmations = known.confirmations + (event == "support")
    contradictions = known.contradictions + (event == "contradict")
    return replace(
        known,
        confirmations=confirmations,
        contradictions=contradictions,
        strength=_share(confirmations, confirmations + contradictions),
        last_observed_at=now_ms,
    )


def _of_counters(confirmations: float, contradictions: float, now_ms: float) -> Support:
    total = confirmations + contradictions
    if not total > 0:
        return Support()
    strength = _share(confirmations, total)
    return Support(strength, total, (ContextSupport(GENERAL, confirmations, contradictions, strength, now_ms),))


def _names_a_context(row: object) -> bool:
    return isinstance(row, Mapping) and isinstance(row.get("context"), str)


def _slice(row: Mapping[str, Any], now_ms: float) -> ContextSupport:
    last = row.get("last_observed_at")
    return ContextSupport(
        context=row["context"],
        confirmations=_count(row.get("confirmations")),
        contradictions=_count(row.get("contradictions")),
        strength=_strength(row.get("strength")),
        last_observed_at=last if is_finite_number(last) else now_ms,
    )


def _count(value: object) -> float:
    return value if is_finite_number(value) and value >= 0 else 0


def _strength(value: object) -> float:
    return value if is_finite_number(value) and 0 <= value <= 1 else NEUTRAL_STRENGTH


def _share(part: float, total: float) -> float:
    return part / total if total > 0 else NEUTRAL_STRENGTH
