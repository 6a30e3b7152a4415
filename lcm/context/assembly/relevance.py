"""How much a text has to do with a prompt: how large a share of its terms the prompt's terms are.

score = sum over the distinct terms of the prompt of (times in the text) / (terms of the text); 0 where either has none.

Source: lossless-claw 0.6.3, which reads ASCII terms alone, and those of the JSON of a message's blocks with their keys;
the corrected rules are ours.
"""

import re
from collections import Counter
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from lcm.records.rules import LosslessRules

_ASCII_TERM = re.compile("[a-z0-9]{2,}")
_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
_WORD = re.compile(rf"[{_CJK}]+|[^\W_{_CJK}]+")
_IS_CJK = re.compile(rf"[{_CJK}]")


def terms(text: str, rules: LosslessRules) -> list[str]:
    """Cut a text into terms.

    `corrected`: words of any script of two characters or more; what is written without spaces (Chinese, Japanese,
    Korean) as pairs of neighbours, one alone as it is. Else: runs of a-z and 0-9 of two characters or more.
    """
    if rules != "corrected":
        return _ASCII_TERM.findall(text.lower())
    found: list[str] = []
    for word in _WORD.findall(text.casefold()):
        if not _IS_CJK.match(word):
            found += [word] if len(word) > 1 else []
        else:
            found += [word[at : at + 2] for at in range(len(word) - 1)] or [word]
    return found


class RelevanceIndex:
    """Texts by their terms: each text is cut once, and each term looked up once."""

    def __init__(self, texts: Iterable[str], rules: LosslessRules) -> None:
        self._rules: LosslessRules = rules
        self._counted = [Counter(terms(text, rules)) for text in texts]
        self._totals = [counted.total() for counted in self._counted]
        self._shares: dict[str, tuple[npt.NDArray[np.intp], npt.NDArray[np.float64]]] = {}

    def scores(self, prompt: str) -> npt.NDArray[np.float64] | None:
        """Score each text, in order; None where the prompt has no terms."""
        asked = dict.fromkeys(terms(prompt, self._rules))
        if not asked:
            return None
        scores = np.zeros(len(self._counted))
        for term in asked:
            places, shares = self._shares.get(term) or self._look_up(term)
            scores[places] += shares
        return scores

    def _look_up(self, term: str) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.float64]]:
        places = [place for place, counted in enumerate(self._counted) if term in counted]
        shares = [self._counted[place][term] / self._totals[place] for place in places]
        self._shares[term] = np.array(places, np.intp), np.array(shares, np.float64)
        return self._shares[term]
