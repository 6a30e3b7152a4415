"""Tokens as a share of the number of code points."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class CodePoints:
    """tokens = code points / code_points_per_token, rounded, and at least 1.

    Source: libravdb memory 1.4.4, the sidecar's two estimators: `down` for its gate and compaction, `up` for authored
    nodes. Up to 1.3.5 it counted UTF-8 bytes.
    """

    code_points_per_token: float = 4.0
    rounding: Literal["down", "up"] = "down"
    empty_tokens: int = 0
    """Of the empty text: 1 in the original, which lets nothing be free."""

    def __post_init__(self) -> None:
        if not 0 < self.code_points_per_token < math.inf:
            raise ValueError(f"code_points_per_token must be > 0, got {self.code_points_per_token}")
        if self.rounding not in ("down", "up"):
            raise ValueError(f"rounding must be 'down' or 'up', got {self.rounding!r}")
        if self.empty_tokens not in (0, 1):
            raise ValueError(f"empty_tokens must be 0 or 1, got {self.empty_tokens}")

    def count(self, texts: Sequence[str]) -> list[int]:
        whole = math.floor if self.rounding == "down" else math.ceil
        return [max(1, whole(len(text) / self.code_points_per_token)) if text else self.empty_tokens for text in texts]
