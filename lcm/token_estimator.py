"""Token estimators: what a text costs, told from its length and its scripts."""

import math
import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from lcm.checks import check_choice, check_range
from lcm.javascript import utf16_length
from lcm.protocols.models import TokenEstimator


def first_tokens(text: str, most_tokens: float, token_estimator: TokenEstimator) -> str:
    """The longest beginning of whole code points that has no more tokens; empty where there is none."""
    if token_estimator.count([text])[0] <= most_tokens:
        return text
    fits = bisect_right(range(len(text)), most_tokens, key=lambda end: token_estimator.count([text[:end]])[0])
    return text[: max(0, fits - 1)]


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


@dataclass(frozen=True, slots=True)
class Recorded:
    """tokens = the recorded output tokens of what a model answered; of all else what another estimator counts.

    The output is a reply's own size; its thoughts count, which the record may not show. Nobody records the size of what
    a user says or a tool gives, nor that of a text: the other estimator counts these, and every message of a session
    without usage. An answer that is recorded as several messages is shared among them as the estimates are.

    A context that is assembled counts what messages hold: usage that stands beside them (Codex: `token_count`) is known
    to a store that took the session in from its file, and not to the assembly.
    """

    otherwise: TokenEstimator = field(default_factory=ScriptAware)
    image_tokens: int | None = 1200
    """Of an image, whatever its size; None = as the text that it is written in."""

    def __post_init__(self) -> None:
        check_range(self, "image_tokens", ge=0, or_null=True, is_whole=True)

    def count(self, texts: Sequence[str]) -> list[int]:
        return self.otherwise.count(texts)

    def shares(self, tokens: int, estimated: Sequence[int]) -> list[int]:
        """Share a recorded number among the messages of an answer: whole numbers, in all that number."""
        weights = estimated if any(estimated) else [1] * len(estimated)
        ends = [tokens * sum(weights[: place + 1]) // sum(weights) for place in range(len(weights))]
        return [end - start for start, end in zip([0, *ends], ends, strict=False)]


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
