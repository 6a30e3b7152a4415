"""Answers beside reference answers, word by word, as SQuAD's own script of version 1.1 does.

- `exact_match`: 1 if the words are the same; `f1`: of the words that both have, each as often as both have it.
- `contained`: 1 if the words of a reference stand in a row in the answer. Not SQuAD's: a long answer gains by it.

Words are lower case without ASCII punctuation and the articles a, an, the; of several references the best counts.
Two things differ. A CJK character is a word of its own, and CJK punctuation goes, for without blanks between words F1
would be exact match (so does MLQA's script). Where an answer or a reference has no words left, they are equal or not,
as version 2.0 has it: 1.1 calls F1 0 where "the" answers "the".

Source: Rajpurkar et al. 2016 (arXiv 1606.05250), `evaluate-v1.1.py`.
"""

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = {ord(mark): None for mark in string.punctuation}
_CJK_PUNCTUATION = re.compile("[\u3000-\u303f\uff00-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65]")
_CJK = re.compile("([\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff])")


def words(text: str) -> list[str]:
    """The words of an answer that count, in order."""
    plain = text.lower().translate(_PUNCTUATION)
    plain = _ARTICLES.sub(" ", plain)
    return _CJK.sub(r" \1 ", _CJK_PUNCTUATION.sub(" ", plain)).split()


def exact_match(answer: str, references: Sequence[str]) -> float:
    return _best(answer, references, lambda said, right: float(said == right))


def f1(answer: str, references: Sequence[str]) -> float:
    """The harmonic mean of precision and recall of the words, in [0, 1]."""
    return _best(answer, references, _f1)


def contained(answer: str, references: Sequence[str]) -> float:
    return _best(answer, references, lambda said, right: float(_stands_in(right, said)))


def _best(answer: str, references: Sequence[str], score: Callable[[list[str], list[str]], float]) -> float:
    if isinstance(references, str) or not references:
        raise ValueError(f"an answer is held against a list of at least one reference, got {references!r:.80}")
    said = words(answer)
    return max(score(said, words(reference)) for reference in references)


def _f1(said: list[str], right: list[str]) -> float:
    if not said or not right:
        return float(said == right)
    common = (Counter(said) & Counter(right)).total()
    return 2 * common / (len(said) + len(right))


def _stands_in(right: list[str], said: list[str]) -> bool:
    if not right:
        return not said
    return any(said[at : at + len(right)] == right for at in range(len(said) - len(right) + 1))
