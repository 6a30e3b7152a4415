"""How often a truth was confirmed and contradicted, by the context that it was observed in.

Source: memory-lancedb-pro, parseSupportInfo, normalizeContext and updateSupportStats.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType
from typing import Any, Literal

from lcm.javascript import is_finite_number, trim

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
