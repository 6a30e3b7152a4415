"""How much a text has to do with a prompt: how large a share of its terms the prompt's terms are.

score = sum over the distinct terms of the prompt of (times in the text) / (terms of the text); 0 where either has none.

Source: lossless-claw 0.6.3, which reads ASCII terms alone, and those of the JSON of a message's blocks with their keys;
the corrected rules are ours.
"""

import re
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from lcm.records.rules import LosslessRules

_ASCII_TERMS = bytes(byte if chr(byte) in "abcdefghijklmnopqrstuvwxyz0123456789" else 32 for byte in range(256))
"""What is no letter or digit as a blank."""
_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
_WORD = re.compile(rf"[{_CJK}]+|[^\W_{_CJK}]+")
_IS_CJK = re.compile(rf"[{_CJK}]")


def terms(text: str, rules: LosslessRules) -> list[str]:
    """Cut a text into terms.

    `corrected`: words of any script of two characters or more; what is written without spaces (Chinese, Japanese,
    Korean) as pairs of neighbours, one alone as it is. Else: runs of a-z and 0-9 of two characters or more.
    """
    return _cut(_folded(text, rules), rules)


def _ascii_words(folded: str) -> list[bytes]:
    """Runs of a-z and 0-9, those of one character too."""
    return folded.encode("utf-8", "surrogatepass").translate(_ASCII_TERMS).split()


def _folded(text: str, rules: LosslessRules) -> str:
    return text.casefold() if rules == "corrected" else text.lower()


def _cut(folded: str, rules: LosslessRules) -> list[str]:
    if rules != "corrected":
        return [word.decode() for word in _ascii_words(folded) if len(word) > 1]
    found: list[str] = []
    for word in _WORD.findall(folded):
        if not _IS_CJK.match(word):
            found += [word] if len(word) > 1 else []
        else:
            found += [word[at : at + 2] for at in range(len(word) - 1)] or [word]
    return found


class RelevanceIndex:
    """Texts by their terms: a text is cut once, if a term may be in it, and each term looked up once."""

    def __init__(self, texts: Iterable[str], rules: LosslessRules) -> None:
        self._rules: LosslessRules = rules
        self._texts = [_folded(text, rules) for text in texts]
        self._cut: dict[int, tuple[list[Any], int]] = {}
        """By the place of a text its terms, in bytes where they are ASCII, and how many those are."""
        self._shares: dict[str, tuple[npt.NDArray[np.intp], npt.NDArray[np.float64]]] = {}

    def scores(self, prompt: str) -> npt.NDArray[np.float64] | None:
        """Score each text, in order; None where the prompt has no terms."""
        asked = dict.fromkeys(terms(prompt, self._rules))
        if not asked:
            return None
        scores = np.zeros(len(self._texts))
        for term in asked:
            places, shares = self._shares.get(term) or self._look_up(term)
            scores[places] += shares
        return scores

    def _look_up(self, term: str) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.float64]]:
        places, shares = [], []
        sought = term if self._rules == "corrected" else term.encode()
        for place in [place for place, text in enumerate(self._texts) if term in text]:
            found, total = self._cut.get(place) or self._cut_at(place)
            if times := found.count(sought):
                places.append(place)
                shares.append(times / total)
        self._shares[term] = np.array(places, np.intp), np.array(shares, np.float64)
        return self._shares[term]

    def _cut_at(self, place: int) -> tuple[list[Any], int]:
        found: list[Any]
        if self._rules == "corrected":
            found = _cut(self._texts[place], self._rules)
            total = len(found)
        else:  # runs of one character, which are no terms, are counted out rather than taken out
            found = _ascii_words(self._texts[place])
            total = len(found) - [*map(len, found)].count(1)
        self._cut[place] = found, total
        return self._cut[place]
