"""lossless-claw's vectors onto our components."""

import hashlib
from typing import Any

from lcm.encoding import well_formed
from lcm.javascript import utf16_length
from tests.golden.components import component


def token_estimate(case: dict[str, Any]) -> dict[str, int]:
    text = text_of(case["text"])
    return {
        "utf16_units": utf16_length(text),
        "tokens": component("system=lossless_claw", "token_estimator").count([text])[0],
    }


def text_of(spec: str | dict[str, Any]) -> str:
    """A text, or a unit repeated and cut to a number of UTF-16 units."""
    if isinstance(spec, str):
        return spec
    return cut(spec["unit"] * (spec["chars"] + 1), spec["chars"])


def cut(text: str, count: int) -> str:
    return text.encode("utf-16-le", "surrogatepass")[: 2 * count].decode("utf-16-le", "surrogatepass")


def digest(text: str) -> str:
    return hashlib.sha256(well_formed(text).encode()).hexdigest()
