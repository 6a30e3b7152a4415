"""Tokens as a share of the number of bytes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from lcm.checks import check_choice, check_range


@dataclass(frozen=True, slots=True)
class Utf8Bytes:
    """tokens = UTF-8 bytes / bytes_per_token, rounded down, and at least 1.

    Source: libravdb memory 1.3.5, mathematical reference, section 3: the sidecar's estimator, by which its gate
    measures how specific a text is. Later it counts code points (`CodePoints`); of ASCII the two are equal.
    """

    bytes_per_token: float = 4.0
    empty_tokens: int = 0
    """Of the empty text: 1 in the original, which lets nothing be free."""
    image_tokens: int | None = 1200
    """Of an image, whatever its size; None = as the text that it is written in."""

    def __post_init__(self) -> None:
        check_range(self, "bytes_per_token", gt=0)
        check_range(self, "image_tokens", ge=0, or_null=True, is_whole=True)
        check_choice(self, empty_tokens=(0, 1))

    def count(self, texts: Sequence[str]) -> list[int]:
        sizes = (len(text.encode("utf-8", "surrogatepass")) for text in texts)
        return [max(1, math.floor(size / self.bytes_per_token)) if size else self.empty_tokens for size in sizes]
