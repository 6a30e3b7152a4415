"""A dream diary to entries.

A diary is Markdown: a bullet below a heading that speaks of dreams, deep sleep or promotion is an entry when it ends in
its numbers, `- words {score=0.8 recall=3 unique=2}`.

Source: libravdb memory 1.4.4.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

MIN_TEXT_BYTES = 16
MIN_SCORE = 0.6
MIN_RECALL_COUNT = 2
MIN_UNIQUE_QUERIES = 2

_PROMOTABLE = ("deep sleep", "promot", "dream")
_HEADING = re.compile(r"#{2,6}\s+(.*)")
_FENCES = ("```", "~~~")
_BULLET = re.compile(r"[-*+]\s+(.*)\{([^{}]*)\}")
_FLOAT = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_INTEGER = re.compile(r"[+-]?[0-9]+")
_LINE_END = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class DiaryEntry:
    """One bullet of a diary, with the numbers that it ends in."""

    text: str
    score: float
    recall_count: int
    unique_queries: int
    section: str = ""
    """The heading above it, in lower case."""
    line: int = 0
    """From 1."""

    @property
    def is_admitted(self) -> bool:
        """Said at enough length, and recalled well and often enough, to be kept."""
        return (
            len(self.text.strip().encode("utf-8", "surrogatepass")) >= MIN_TEXT_BYTES
            and MIN_SCORE <= self.score < math.inf
            and self.recall_count >= MIN_RECALL_COUNT
            and self.unique_queries >= MIN_UNIQUE_QUERIES
        )


def diary_entries(diary: str) -> list[DiaryEntry]:
    """Every entry of a diary, admitted or not, in order; what stands between fences is none."""
    entries = []
    section = ""
    for line, text in _unfenced(diary):
        if heading := _HEADING.fullmatch(text):
            section = " ".join(heading[1].lower().split())
        elif any(word in section for word in _PROMOTABLE) and (entry := _entry(text, section, line)):
            entries.append(entry)
    return entries


def _unfenced(diary: str) -> Iterator[tuple[int, str]]:
    """The lines outside fences, without the space around them, and their numbers from 1."""
    is_fenced = False
    for number, line in enumerate(_LINE_END.split(diary), 1):
        text = line.strip()
        if text.startswith(_FENCES):
            is_fenced = not is_fenced
        elif not is_fenced:
            yield number, text


def _entry(text: str, section: str, line: int) -> DiaryEntry | None:
    bullet = _BULLET.fullmatch(text)
    if bullet is None or not bullet[1].strip():
        return None
    pairs = (token.partition("=") for token in re.split(r"[\s,]+", bullet[2]))
    numbers = {key.lower(): value for key, _, value in pairs}
    score = _FLOAT.match(numbers.get("score", ""))
    recall = _INTEGER.match(numbers.get("recall", numbers.get("recallcount", "")))
    unique = _INTEGER.match(numbers.get("unique", numbers.get("uniquequeries", "")))
    if score is None or recall is None or unique is None:
        return None
    return DiaryEntry(bullet[1].strip(), float(score[0]), int(recall[0]), int(unique[0]), section, line)
