"""Numbers, texts and JSON as JavaScript has them.

Two of the original systems are written in it: their rows hold what Number() made of them, and their tokens are counted
from the length of the JSON text that it writes.
"""

import json
import math
import re
from collections.abc import Sequence
from typing import Any, Literal, TypeGuard

from lcm.encoding import is_well_formed

WHITE_SPACE = "\t\n\v\f\r \xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"  # fmt: skip  # noqa: E501
"""What JavaScript trims. Python's strip() takes other control characters, and leaves U+FEFF."""

_DECIMAL = re.compile(r"[+-]?(?:Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)")
_RADIX = re.compile(r"0(?:[xX][0-9a-fA-F]+|[oO][0-7]+|[bB][01]+)")

_WHOLE_OR_EXPONENT = re.compile(r"\d\.0(?!\d)|\de[+-]?\d")
_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_SURROGATE = re.compile("[\ud800-\udfff]")


def trim(text: str) -> str:
    return text.strip(WHITE_SPACE)


def is_finite_number(value: object) -> TypeGuard[float]:
    """Say whether a decoded JSON value is a number itself: nothing is converted, and true is none."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(_as_float(value))


def to_number(value: object) -> float:
    """The number that a decoded JSON value is converted to; NaN where there is none.

    null is 0, true is 1; a text is read as a literal (decimal, 0x, 0o, 0b, Infinity; blank is 0); a list as its items
    joined by commas, so that [] is 0 and [4] is 4; an object is not a number.
    """
    if value is None:
        return 0.0
    if isinstance(value, int | float):
        return _as_float(value)
    if isinstance(value, str):
        return _read_literal(trim(value))
    if isinstance(value, Sequence):
        return _read_literal(trim(_joined(value)))
    return math.nan


def _as_float(value: int | float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _read_literal(text: str) -> float:
    if not text:
        return 0.0
    if _RADIX.fullmatch(text):
        return _as_float(int(text, 0))
    return float(text) if _DECIMAL.fullmatch(text) else math.nan


def _joined(items: Sequence[object]) -> str:
    return ",".join(_shown(item) for item in items)


def _shown(item: object) -> str:
    if item is None:
        return ""
    if isinstance(item, str):
        return item
    if isinstance(item, bool) or not isinstance(item, int | float | Sequence):
        return "no number"
    return _joined(item) if isinstance(item, Sequence) else repr(item)


def clamp01(value: float, fallback: float) -> float:
    """Bound to [0, 1]; what is not finite becomes the fallback, as it is, or 0 where that is not finite either."""
    if not math.isfinite(value):
        return fallback if math.isfinite(fallback) else 0.0
    return min(1.0, max(0.0, value))


def clamp01_with_floor(value: float, floor: float) -> float:
    """Bound to [floor, 1], the floor being bound to [0, 1] itself; what is not finite becomes the floor."""
    low = clamp01(floor, 0.0)
    return max(low, clamp01(value, low))


def clamp_int(value: float, low: int, high: int) -> int:
    """Round down and bound to [low, high]; what is not finite becomes low."""
    return min(high, max(low, math.floor(value))) if math.isfinite(value) else low


def utf16_length(text: str) -> int:
    """The length that JavaScript reports: 2 for a character beyond U+FFFF, 1 for any other, lone surrogates too."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


Half = Literal["kept", "replaced", "dropped"]
"""What becomes of half a character at a cut: it stays, half a surrogate pair; U+FFFD stands in its place; it goes."""


def first_units(text: str, units: int, half: Half) -> str:
    """The first so many UTF-16 units of a text, as JavaScript cuts it; it may cut a character beyond U+FFFF in two.

    Halves that stand in the text itself are kept, but for `replaced`, which leaves none.
    """
    if text.isascii():
        return text[:units]
    kept = text[: units + 1].encode("utf-16-le", "surrogatepass")
    around = kept[2 * units - 2 : 2 * units + 2].decode("utf-16-le", "ignore")
    is_cut = max(around, default="") > "\uffff"
    end = units - 1 if half == "dropped" and is_cut else units
    return kept[: 2 * end].decode("utf-16-le", "replace" if half == "replaced" else "surrogatepass")


def last_units(text: str, units: int) -> str:
    """The last so many UTF-16 code units; a character that would be cut in two is left out."""
    if utf16_length(text) <= units:
        return text
    return text.encode("utf-16-le", "surrogatepass")[-2 * units :].decode("utf-16-le", "ignore")


def stringify(value: object) -> str:
    """Compact JSON in the order of the keys: non-ASCII as it is, half a surrogate pair escaped, 1.0 as 1."""
    text = _COMPACT.encode(value)
    if not isinstance(value, str) and _WHOLE_OR_EXPONENT.search(text):
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
