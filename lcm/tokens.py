"""How many tokens a text would cost a model."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal


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


_CJK = re.compile("[\u2e80-\u303f\u3040-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef]+")


@dataclass(frozen=True, slots=True)
class ScriptAware:
    """tokens = ceil(the sum of what each code point costs).

    Source: lossless-claw after 0.6.3, because a quarter of the length counts Chinese about six times, and emoji two to
    four times, too low.
    """

    cjk_tokens: float = 1.5
    """Of a Chinese, Japanese or Korean character, its punctuation and full-width forms."""
    astral_tokens: float = 2.0
    """Of a character beyond U+FFFF: emoji, rare ideographs."""
    other_tokens: float = 0.25

    def __post_init__(self) -> None:
        for name in ("cjk_tokens", "astral_tokens", "other_tokens"):
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(f"{name} must be > 0, got {getattr(self, name)}")

    def count(self, texts: Sequence[str]) -> list[int]:
        return [math.ceil(self._tokens(text)) for text in texts]

    def _tokens(self, text: str) -> float:
        if text.isascii():
            return len(text) * self.other_tokens
        astral = utf16_length(text) - len(text)
        cjk = sum(map(len, _CJK.findall(text)))
        return astral * self.astral_tokens + cjk * self.cjk_tokens + (len(text) - astral - cjk) * self.other_tokens


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
