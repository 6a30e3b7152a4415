"""Whether a conversation supports a candidate: its words, and their order, compared with single lines and sentences.

Source: memory-lancedb-pro, admission-control.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from rapidfuzz.distance import LCSseq

from lcm.javascript import clamp01, trim, utf16_length
from lcm.records.document import Candidate
from lcm.text import words_in

MIN_SENTENCE_LENGTH = 4
"""UTF-16 units of a sentence that counts as a span of its own."""

_SENTENCE_ENDS = re.compile("[。！？!?]")


class ConversationSupport(NamedTuple):
    """How well a conversation supports a candidate; each in [0, 1]."""

    confidence: float
    best: float
    """The highest F1 with one span."""
    coverage: float
    """The share of the candidate's distinct words that the conversation has."""


def spans(text: str) -> list[str]:
    """Every line, and every sentence of a line that has 4 characters, each once. A full stop ends no sentence."""
    found: dict[str, None] = {}
    for raw in text.split("\n"):
        if line := trim(raw):
            found[line] = None
            for piece in map(trim, _SENTENCE_ENDS.split(line)):
                if utf16_length(piece) >= MIN_SENTENCE_LENGTH:
                    found[piece] = None
    return list(found)


def common_length(left: Sequence[str], right: Sequence[str]) -> int:
    """The length of the longest common subsequence."""
    return int(LCSseq.similarity(left, right))


def f1(left: Sequence[str], right: Sequence[str]) -> float:
    """2 P R / (P + R) with P = common / |left| and R = common / |right|: 2 common / (|left| + |right|)."""
    return 2 * common_length(left, right) / (len(left) + len(right)) if left and right else 0.0


def support(candidate: Candidate, texts: Sequence[str]) -> ConversationSupport:
    """confidence = 0.7 best + 0.3 coverage - 0.25 (1 - coverage), bound to [0, 1].

    The candidate's words are those of its text and then its content, so that a candidate that says one supported
    sentence in both has a best F1 of about 2/3.

    Args:
        candidate: what is judged; one without words has no support at all.
        texts: the conversation, a message a text.
    """
    words = words_in(f"{candidate.text}\n{candidate.content}", "han")
    if not words:
        return ConversationSupport(0.0, 0.0, 0.0)
    missing, best = set(words), 0.0
    distinct = frozenset(words)
    for text in texts:
        message_words, pieces = _words_of(text)
        if message_words.isdisjoint(distinct):
            continue
        missing -= message_words
        for piece in pieces:
            at_most = 2 * min(len(words), len(piece)) / (len(words) + len(piece)) if piece else 0.0
            if at_most > best:
                best = max(best, f1(words, piece))
    coverage = 1 - len(missing) / len(distinct)
    return ConversationSupport(clamp01(0.7 * best + 0.3 * coverage - 0.25 * (1 - coverage), 0.0), best, coverage)


@lru_cache(maxsize=4096)
def _words_of(text: str) -> tuple[frozenset[str], list[list[str]]]:
    """The words of a message, and those of each of its spans: one message is compared with many candidates."""
    return frozenset(words_in(text, "han")), [words_in(span, "han") for span in spans(text)]
