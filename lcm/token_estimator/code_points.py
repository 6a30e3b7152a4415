"""Tokens as a share of the number of code points."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from lcm.checks import check_choice, check_range


@dataclass(frozen=True, slots=True)
class CodePoints:
    """tokens = code points / code_points_per_token, rounded, and at least 1.

    Source: libravdb memory 1.4.4, the sidecar's two estimators: `down` for its gate and compaction, `up` for authored
    nodes. Up to 1.3.5 it counted UTF-8 bytes, as `Utf8Bytes` does.
    """

    code_points_per_token: float = 4.0
    rounding: Literal["down", "up"] = "down"
    empty_tokens: int = 0
    """Of the empty text: 1 in the original, which lets nothing be free."""
    image_tokens: int | None = 1200
    """Of an image, whatever its size; None = as the text that it is written in."""

    def __post_init__(self) -> None:
        check_range(self, "code_points_per_token", gt=0)
        check_range(self, "image_tokens", ge=0, or_null=True, is_whole=True)
        check_choice(self, rounding=("down", "up"), empty_tokens=(0, 1))

    def count(self, texts: Sequence[str]) -> list[int]:
        whole = math.floor if self.rounding == "down" else math.ceil
        return [max(1, whole(len(text) / self.code_points_per_token)) if text else self.empty_tokens for text in texts]
