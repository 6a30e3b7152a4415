"""Sentences ranked by how near they are to a question: BM25 over the sentences of what was read.

Source: ours.
"""

import math
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from lcm.compaction.sentences import sentences
from lcm.retrieval.text_index.words import load_stop_words, query_words, split_words, windows

_STOP_WORDS = load_stop_words("english")
_CJK_WINDOW = 2
_QUESTION_MARKS = ("?", "？", "؟")
_TEXTS_AT_HAND = 4096


class RankedSentence(NamedTuple):
    """A sentence of a text, and how near it is to a question."""

    score: float
    """Of BM25, above 0."""
    source: int
    """The place of its text among those that were read."""
    place: int
    """Its own within that text."""
    text: str
    covered: float
    """The share of the question's words that stand in it."""


def question_words(question: str) -> set[str]:
    """The words of a question that say what it is about; all of them where only stop words are left."""
    return set(words_of(question)) or set(words_of(question, drops=False))


def words_of(text: str, *, drops: bool = True) -> list[str]:
    """Words without accents and case, CJK as overlapping pairs; stop words dropped unless nothing else is there."""
    words, runs = split_words(text)
    pairs = [pair for run in runs for pair in windows(run, _CJK_WINDOW)]
    return [*(query_words(words, _STOP_WORDS, is_alone=not pairs) if drops else words), *pairs]


def rarity(words: set[str], counted: Sequence[Counter[str]]) -> dict[str, float]:
    """Of each word: BM25's weight of how few of the counted sentences hold it."""
    spread = Counter(word for one in counted for word in one.keys() & words)
    n = len(counted)
    return {word: math.log1p((n - spread[word] + 0.5) / (spread[word] + 0.5)) for word in words}


def ranked_sentences(texts: Sequence[str], wanted: set[str], k1: float = 1.2, b: float = 0.75) -> list[RankedSentence]:
    """The sentences of texts that speak of the wanted words, the nearest first; one that repeats another is told once.

    A question is no answer: sentences that ask are told only where no other speaks of what is wanted.

    Args:
        k1: of BM25: how soon repetition stops counting.
        b: of BM25: how much long sentences are held back.
    """
    cut = [(number, place, *one) for number, text in enumerate(texts) for place, one in enumerate(counted_in(text))]
    lengths = [one.total() for *_, one in cut]
    mean = sum(lengths) / max(1, len(cut)) or 1.0
    weight = rarity(wanted, [one for *_, one in cut])
    ranked = []
    for (source, place, line, words), length in zip(cut, lengths, strict=True):
        held = sorted(words.keys() & wanted)
        spread = k1 * (1 - b + b * length / mean)
        score = math.fsum(weight[word] * words[word] * (k1 + 1) / (words[word] + spread) for word in held)
        if score > 0:
            ranked.append(RankedSentence(score, source, place, line, len(held) / len(wanted)))
    ranked.sort(key=lambda one: (-one.score, one.source, one.place))
    told = [one for one in ranked if not one.text.endswith(_QUESTION_MARKS)] or ranked
    unique: dict[str, RankedSentence] = {}
    for one in told:
        unique.setdefault(one.text, one)
    return list(unique.values())


@lru_cache(maxsize=_TEXTS_AT_HAND)
def counted_in(text: str) -> tuple[tuple[str, Counter[str]], ...]:
    """The sentences of a text, each as a line with how often each word stands in it."""
    lines = (" ".join(cut.split()) for cut in sentences(text))
    return tuple((line, Counter(words_of(line, drops=False))) for line in lines if line)
