"""Tokens as a share of the length in UTF-16 code units."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from lcm.checks import check_range
from lcm.javascript import utf16_length


@dataclass(frozen=True, slots=True)
class Utf16Units:
    """tokens = ceil(UTF-16 code units / units_per_token).

    Source: lossless-claw estimates ceil(length / 4), and the length of a JavaScript string counts UTF-16 units.
    """

    units_per_token: float = 4.0
    image_tokens: int | None = 1200
    """Of an image, whatever its size; None = as the text that it is written in."""

    def __post_init__(self) -> None:
        check_range(self, "units_per_token", gt=0)
        check_range(self, "image_tokens", ge=0, or_null=True, is_whole=True)

    def count(self, texts: Sequence[str]) -> list[int]:
        return [math.ceil(utf16_length(text) / self.units_per_token) for text in texts]
