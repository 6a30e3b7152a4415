"""What may stand in a setting, as JSON Schema; and the conversions between our values and those of plugins."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from lcm.plugins.settings.table import ABSENT, InexpressibleError

FLAG: Mapping[str, Any] = {"type": "boolean"}
TEXT: Mapping[str, Any] = {"type": "string"}
TEXTS: Mapping[str, Any] = {"type": "array", "items": {"type": "string"}}
SHARE: Mapping[str, Any] = {"type": "number", "minimum": 0, "maximum": 1}

_PLACEHOLDER = re.compile(r"\$\{(\w+)\}")


def number(least: float | None = None, most: float | None = None) -> dict[str, Any]:
    return {"type": "number", **_range(least, most)}


def whole(least: int | None = None, most: int | None = None) -> dict[str, Any]:
    return {"type": "integer", **_range(least, most)}


def one_of(*values: str) -> dict[str, Any]:
    return {"type": "string", "enum": list(values)}


def _range(least: float | None, most: float | None) -> dict[str, float]:
    return {key: value for key, value in (("minimum", least), ("maximum", most)) if value is not None}


def milliseconds(seconds: float) -> float:
    """A plugin counts milliseconds where our key counts seconds."""
    return tidy(seconds * 1000)


def seconds(milliseconds: float) -> float:
    return milliseconds / 1000


def tidy(value: float) -> float:
    """A whole number without its fraction; what arithmetic left beyond twelve digits is none of ours."""
    rounded = float(f"{value:.12g}")
    return int(rounded) if float(rounded).is_integer() else rounded


def placeholder(variable: str | None) -> Any:
    """The plugin's host puts the value of a variable in the place of `${NAME}`, so that no key is ever written down."""
    return ABSENT if variable is None else f"${{{variable}}}"


def variable(placeholder: Any) -> Any:
    found = _PLACEHOLDER.fullmatch(placeholder) if isinstance(placeholder, str) else None
    return found[1] if found else ABSENT  # a key itself is never read into a configuration


def unless_null(value: Any) -> Any:
    return ABSENT if value is None else value


def is_stage(stage: Any) -> bool:
    """A stage that is null is left out."""
    return stage is not None


def stage(is_on: bool) -> Any:
    return ABSENT if is_on else None


def at_most(most: int, why: str) -> Callable[[Any], Any]:
    """Refuses what the plugin would quietly cut."""

    def bounded(value: Any) -> Any:
        if value > most:
            raise InexpressibleError(why)
        return value

    return bounded
