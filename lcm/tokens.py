"""How many tokens a text would cost a model."""

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Utf16Units:
    """tokens = ceil(UTF-16 code units / units_per_token).

    Source: lossless-claw estimates ceil(length / 4), and the length of a JavaScript string counts UTF-16 units.
    """

    units_per_token: float = 4.0

    def __post_init__(self) -> None:
        if not 0 < self.units_per_token < math.inf:
            raise ValueError(f"units_per_token must be > 0, got {self.units_per_token}")

    def count(self, texts: Sequence[str]) -> list[int]:
        return [math.ceil(utf16_length(text) / self.units_per_token) for text in texts]


def utf16_length(text: str) -> int:
    """The length that JavaScript reports: 2 for a character beyond U+FFFF, 1 for any other, lone surrogates too."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
