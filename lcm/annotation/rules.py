"""Category, importance, temporal type and expiry by rule: no model, and the same for everyone.

The six categories, their importance and the temporal classifier are memory-lancedb-pro's; it leaves the category of a
text to a language model, and the rule for it is ours. It is a rough one: of the labelled messages of the sample that
its cues were not written by (`tests/lcm/annotation/test_category_accuracy.py`) it finds the label of 60 %, where the
commonest label alone is right on 39 %; it is best at events, and misses nearly every case.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from importlib import resources
from typing import Any

import yaml

from lcm.annotation.temporal import expiry, temporal_type
from lcm.lifecycle.categories import DEFAULT_IMPORTANCE, UNKNOWN_IMPORTANCE
from lcm.records import MEMORY_CATEGORIES, Candidate

UNCATEGORISED = "other"


@dataclass(frozen=True, slots=True)
class Rules:
    """Rates the candidates that name no category; one that names one was rated by its maker and stays as it is.

    A category gets a point for each of its cues (`category_cues.yaml`: English, Chinese, some Japanese) that the text
    holds, and the one with the most points wins; on a tie the first of cases, patterns, preferences, profile, events,
    entities. A text without any cue gets `fallback`.
    """

    fallback: str = UNCATEGORISED
    """One of the six, or "other": nothing is said of it, and its importance is .5."""
    expiry: bool = True
    """Let "today", "next week" and the like end a candidate's life, as memory-lancedb-pro does. It hurts lasting facts
    that only mention them: a text with "today" is over after 18 hours."""

    def __post_init__(self) -> None:
        known = (*MEMORY_CATEGORIES, UNCATEGORISED)
        if self.fallback not in known:
            raise ValueError(f"fallback must be one of {', '.join(known)}, got {self.fallback!r}")

    def annotate(self, candidates: Sequence[Candidate], said_at: Sequence[datetime]) -> list[Candidate]:
        return [
            self._rated(candidate, at) if candidate.category == UNCATEGORISED else candidate
            for candidate, at in zip(candidates, said_at, strict=True)
        ]

    def _rated(self, candidate: Candidate, said_at: datetime) -> Candidate:
        category = category_of(candidate.text) or self.fallback
        statement = candidate.content or candidate.text
        return replace(
            candidate,
            category=category,
            importance=DEFAULT_IMPORTANCE.get(category, UNKNOWN_IMPORTANCE),
            temporal_type=temporal_type(statement),
            valid_until=expiry(statement, said_at) if self.expiry else None,
        )


def category_of(text: str) -> str | None:
    """The category that most cues of a text speak for; None where there is no cue."""
    points = {category: cues.count(text) for category, cues in _cues().items()}
    best = max(points, key=points.__getitem__)
    return best if points[best] else None


@dataclass(frozen=True, slots=True)
class _Cues:
    """The cues of one category, compiled."""

    phrases: re.Pattern[str]
    shapes: tuple[re.Pattern[str], ...]

    def count(self, text: str) -> int:
        phrases = {" ".join(phrase.lower().split()) for phrase in self.phrases.findall(text)}
        return len(phrases) + sum(shape.search(text) is not None for shape in self.shapes)


@cache
def _cues() -> Mapping[str, _Cues]:
    content = resources.files("lcm.annotation").joinpath("category_cues.yaml").read_text("utf-8")
    return {category: _compiled(entry) for category, entry in yaml.safe_load(content).items()}


def _compiled(entry: Mapping[str, Any]) -> _Cues:
    words = "|".join(r"\s+".join(map(re.escape, word.split())) for word in _longest_first(entry["words"]))
    parts = "|".join(map(re.escape, _longest_first(entry["parts"])))
    return _Cues(
        phrases=re.compile(rf"\b(?:{words})\b|{parts}", re.ASCII | re.IGNORECASE),
        shapes=tuple(re.compile(shape, re.ASCII | re.IGNORECASE) for shape in entry["shapes"]),
    )


def _longest_first(cues: Sequence[str]) -> list[str]:
    return sorted(cues, key=len, reverse=True)
