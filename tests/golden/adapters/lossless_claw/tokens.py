"""lossless-claw's vectors onto our components."""

from typing import Any

from lcm.javascript import utf16_length
from tests.golden.components import component


def token_estimate(case: dict[str, Any]) -> dict[str, int]:
    text = text_of(case["text"])
    return {
        "utf16_units": utf16_length(text),
        "tokens": component("token_estimator=utf16_units", "token_estimator").count([text])[0],
    }


def text_of(spec: str | dict[str, Any]) -> str:
    """A text, or a unit repeated and cut to a number of UTF-16 units."""
    if isinstance(spec, str):
        return spec
    units = (spec["unit"] * (spec["chars"] + 1)).encode("utf-16-le", "surrogatepass")[: 2 * spec["chars"]]
    return units.decode("utf-16-le", "surrogatepass")
