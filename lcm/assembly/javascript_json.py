"""JSON text as JavaScript writes it, because its length is what tokens are counted from."""

import json
import re
from typing import Any

from lcm.encoding import is_well_formed

_WHOLE_OR_EXPONENT = re.compile(r"\d\.0(?!\d)|\de[+-]?\d")
_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_SURROGATE = re.compile("[\ud800-\udfff]")


def stringify(value: object) -> str:
    """Compact JSON in the order of the keys: non-ASCII as it is, half a surrogate pair escaped, 1.0 as 1."""
    text = _COMPACT.encode(value)
    if _WHOLE_OR_EXPONENT.search(text):
        text = _COMPACT.encode(_with_whole_numbers(value))
    if is_well_formed(text):
        return text
    joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return _SURROGATE.sub(lambda half: f"\\u{ord(half[0]):04x}", joined)


def parse(text: str) -> Any:
    """Read JSON text; NaN and Infinity are none.

    Raises:
        ValueError: if it is no JSON, or nested too deeply.
    """
    try:
        return json.loads(text, parse_constant=_refuse)
    except RecursionError as error:
        raise ValueError("JSON nested too deeply") from error


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def _with_whole_numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_whole_numbers(held) for key, held in value.items()}
    if isinstance(value, list | tuple):
        return [_with_whole_numbers(element) for element in value]
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 1e21 else value
