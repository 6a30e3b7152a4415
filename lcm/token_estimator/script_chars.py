"""Tokens as a share of the length, by the script of the text."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from lcm.checks import check_range
from lcm.javascript import utf16_length

_CJK_WORDS = re.compile("[\u4e00-\u9faf\u3041-\u3096\u30a1-\u30fa\uac00-\ud7a3]")


_DENSE_ALPHABETS = re.compile("[\u0400-\u04ff\u0600-\u06ff\u0590-\u05ff]")


@dataclass(frozen=True, slots=True)
class ScriptChars:
    """tokens = ceil(UTF-16 code units / units per token of the script).

    One character decides for the whole text: Chinese, Japanese or Korean, if there is one; else Cyrillic, Arabic or
    Hebrew; else any other. Rare ideographs, half-width kana, Greek, Thai and Devanagari are others.

    Source: libravdb memory 1.3.5, the host's estimator, which budgets prompts.
    """

    cjk_units: float = 1.6
    alphabet_units: float = 2.5
    """Of Cyrillic, Arabic and Hebrew."""
    other_units: float = 4.0
    image_tokens: int | None = 1200
    """Of an image, whatever its size; None = as the text that it is written in."""

    def __post_init__(self) -> None:
        check_range(self, "cjk_units", "alphabet_units", "other_units", gt=0)
        check_range(self, "image_tokens", ge=0, or_null=True, is_whole=True)
        if not self.cjk_units <= self.alphabet_units <= self.other_units:
            raise ValueError(
                "cjk_units, alphabet_units and other_units must not fall, or more text could have fewer tokens; got "
                f"{self.cjk_units}, {self.alphabet_units}, {self.other_units}"
            )

    def count(self, texts: Sequence[str]) -> list[int]:
        return [math.ceil(utf16_length(text) / self._units(text)) for text in texts]

    def _units(self, text: str) -> float:
        if text.isascii():
            return self.other_units
        if _CJK_WORDS.search(text):
            return self.cjk_units
        return self.alphabet_units if _DENSE_ALPHABETS.search(text) else self.other_units
