"""Between our values and those of plugins: the conversions and the defaults that the files of settings name."""

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from lcm.plugins.settings.table import ABSENT, InexpressibleError, same

_PLACEHOLDER = re.compile(r"\$\{(\w+)\}")
_MOST_CANDIDATES = 20
_LEAST_COARSE = 8
_BY_LEAF_CHUNK = 0
"""Of `session.bootstrap_max_tokens`: the bound that the plugin works out where none is given."""
_EVICTIONS = {True: "relevance", False: "chronological"}


class Conversion(NamedTuple):
    """Between a value of ours and the plugin's."""

    write: Callable[[Any], Any] = same
    """Ours -> the plugin's."""
    read: Callable[[Any], Any] | Mapping[str, Callable[[Any], Any]] = same
    """The plugin's -> ours; by our key where a setting stands for several that differ."""


def milliseconds(seconds: float | None) -> float:
    """A plugin counts milliseconds where our key counts seconds."""
    if seconds is None:
        raise InexpressibleError("the plugin always has a bound of time")
    return tidy(seconds * 1000)


def tidy(value: float) -> float:
    """A whole number without its fraction; what arithmetic left beyond twelve digits is none of ours."""
    rounded = float(f"{value:.12g}")
    return int(rounded) if float(rounded).is_integer() else rounded


def _placeholder(variable: str | None) -> Any:
    """The plugin's host puts the value of a variable in the place of `${NAME}`, so that no key is ever written down."""
    return ABSENT if variable is None else f"${{{variable}}}"


def _variable(placeholder: Any) -> Any:
    found = _PLACEHOLDER.fullmatch(placeholder) if isinstance(placeholder, str) else None
    return found[1] if found else ABSENT  # a key itself is never read into a configuration


def _unless_null(value: Any) -> Any:
    return ABSENT if value is None else value


def _trimmed(text: str) -> str:
    """The plugin trims what it reads."""
    if text != text.strip():
        raise InexpressibleError("the plugin trims its settings: take away the blanks at the ends")
    return text


def _pool(size: int) -> int:
    if size > _MOST_CANDIDATES:
        raise InexpressibleError("the plugin's store gives no more than 20, whatever candidatePoolSize says")
    return size


def _captures_assistant(roles: Any) -> bool:
    if set(roles) == {"user"}:
        return False
    if set(roles) == {"user", "assistant"}:
        return True
    raise InexpressibleError("captureAssistant chooses between [user] and [user, assistant]")


def _described(definitions: Mapping[str, Any]) -> dict[str, Any]:
    return {name: {} if text is None else {"description": text} for name, text in definitions.items()}


def _descriptions(definitions: Mapping[str, Any]) -> dict[str, Any]:
    return {name: entry.get("description") for name, entry in definitions.items()}


def _roots(paths: list[str]) -> list[str]:
    if any(character in path for path in paths for character in "*?["):
        raise InexpressibleError("the plugin's roots are folders, no globs")
    return paths


def _coarse(top_k: float) -> int:
    """How deep the first of two passes goes."""
    return math.floor(max(2 * top_k, _LEAST_COARSE))


_DEPTHS: Mapping[str, Callable[[float], int]] = {
    "fusion.k1": _coarse,
    "fusion.k2": math.floor,
    "source.session_pool_size": math.ceil,
    "source.guidance_pool_size": _coarse,
    "source.durable_pool_size": lambda top_k: math.ceil(top_k / 2),
    "source.global_pool_size": lambda top_k: math.ceil(top_k / 4),
    "source.authored_pool_size": _coarse,
    "source.dream_pool_size": math.ceil,
    "ranking.stages.recovery.session_k": lambda top_k: max(math.ceil(top_k), 4),
    "ranking.stages.recovery.user_k": lambda top_k: max(4 * math.ceil(top_k), 8),
}
"""What follows from how many documents are wanted."""

CONVERSIONS: Mapping[str, Conversion] = {
    "captures_assistant": Conversion(_captures_assistant, lambda is_on: ["user", "assistant"] if is_on else ["user"]),
    "depth": Conversion(same, _DEPTHS),
    "descriptions": Conversion(_described, _descriptions),
    "eviction": Conversion(lambda eviction: eviction == _EVICTIONS[True], _EVICTIONS.__getitem__),
    "leaf_chunk": Conversion(lambda tokens: ABSENT if tokens == _BY_LEAF_CHUNK else _unless_null(tokens)),
    "milliseconds": Conversion(milliseconds, lambda milliseconds: milliseconds / 1000),
    "model": Conversion(_trimmed, lambda model: model or ABSENT),  # no name leaves the model to the host
    "neighbours": Conversion(lambda per_result: per_result or ABSENT),
    "pool_size": Conversion(_pool, lambda size: min(size, _MOST_CANDIDATES)),
    "roots": Conversion(_roots),
    "secret": Conversion(_placeholder, _variable),
    "stage": Conversion(lambda stage: stage is not None, lambda is_on: ABSENT if is_on else None),
    "trimmed": Conversion(_trimmed),
    "unless_null": Conversion(_unless_null),
    "words": Conversion(_unless_null, lambda items: [item.strip() for item in items if item.strip()]),
}
"""By the name that a file says under `convert`."""


def _top_k(document: Mapping[str, Any]) -> float:
    given: float = document.get("topK", 8)
    return given


DEFAULTS: Mapping[str, Callable[[Mapping[str, Any]], Any]] = {
    "coarse": lambda document: _coarse(_top_k(document)),
    "leaf_chunk": lambda _: _BY_LEAF_CHUNK,
    "second": lambda document: math.floor(_top_k(document)),
    "unbounded": lambda _: None,  # no bound is a value of ours, and no value of the plugin's
}
"""By the name that a file says under `default_by`: what the plugin takes within a document that does not set it."""
