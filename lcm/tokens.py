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

    def __post_init__(self) -> None:
        for name in ("cjk_units", "alphabet_units", "other_units"):
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(f"{name} must be > 0, got {getattr(self, name)}")
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
