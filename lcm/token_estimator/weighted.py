"""Tokens as a sum of what each character costs, by its script."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from lcm.checks import check_choice, check_range
from lcm.javascript import utf16_length

EstimatorRules = Literal["corrected", "0.15"]
_CJK: Mapping[EstimatorRules, re.Pattern[str]] = {
    "corrected": re.compile("[\u2e80-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef]+"),
    "0.15": re.compile(
        "[\u3000-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uff00-\uffef"
        "\U00020000-\U0002a6df\U0002a700-\U0002b73f\U0002b740-\U0002ebef]+"
    ),
}


@dataclass(frozen=True, slots=True)
class ScriptAware:
    """tokens = ceil(the sum of what each code point costs).

    Source: lossless-claw 0.15.3, because a quarter of the length counts Chinese about six times, and emoji two to four
    times, too low. To it (`rules` 0.15) radicals, bopomofo and compatibility ideographs are any other characters, and
    rare ideographs beyond U+FFFF are Chinese ones.
    """

    cjk_tokens: float = 1.5
    """Of a Chinese, Japanese or Korean character, its punctuation and full-width forms."""
    astral_tokens: float = 2.0
    """Of a character beyond U+FFFF: emoji, rare ideographs."""
    other_tokens: float = 0.25
    image_tokens: int | None = 1200
    """Of an image, whatever its size; None = as the text that it is written in."""
    rules: EstimatorRules = "corrected"

    def __post_init__(self) -> None:
        check_range(self, "cjk_tokens", "astral_tokens", "other_tokens", gt=0)
        check_range(self, "image_tokens", ge=0, or_null=True, is_whole=True)
        check_choice(self, rules=EstimatorRules)

    def count(self, texts: Sequence[str]) -> list[int]:
        return [math.ceil(self._tokens(text)) for text in texts]

    def _tokens(self, text: str) -> float:
        if text.isascii():
            return len(text) * self.other_tokens
        bare = _CJK[self.rules].sub("", text)
        cjk, astral = len(text) - len(bare), utf16_length(bare) - len(bare)
        return astral * self.astral_tokens + cjk * self.cjk_tokens + (len(bare) - astral) * self.other_tokens
