"""Category, importance, temporal type and expiry by rule: no model, and the same for everyone.

The six categories, their importance and the temporal classifier are memory-lancedb-pro's; it leaves the category of a
text to a language model, and the rule for it is ours. It is a rough one: of the labelled messages of the sample that
its cues were not written by (`test_category_accuracy.py` among the tests) it finds the label of 60 %, where the
commonest label alone is right on 39 %; it is best at events, and misses nearly every case.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from importlib import resources
from typing import Any

import polars as pl
import yaml

from lcm.checks import check_choice
from lcm.encoding import well_formed
from lcm.records.document import MEMORY_CATEGORIES, Candidate
from lcm.writing.annotation.temporal import expiry, temporal_type
from lcm.writing.lifecycle.categories import DEFAULT_IMPORTANCE, UNKNOWN_IMPORTANCE

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
        check_choice(self, fallback=(*MEMORY_CATEGORIES, UNCATEGORISED))

    def annotate(self, candidates: Sequence[Candidate], said_at: Sequence[datetime]) -> list[Candidate]:
        categories = categories_of([candidate.text for candidate in candidates])
        return [
            self._rated(candidate, category or self.fallback, at) if candidate.category == UNCATEGORISED else candidate
            for candidate, category, at in zip(candidates, categories, said_at, strict=True)
        ]

    def _rated(self, candidate: Candidate, category: str, said_at: datetime) -> Candidate:
        statement = candidate.content or candidate.text
        return replace(
            candidate,
            category=category,
            importance=DEFAULT_IMPORTANCE.get(category, UNKNOWN_IMPORTANCE),
            temporal_type=temporal_type(statement),
            valid_until=expiry(statement, said_at) if self.expiry else None,
        )


def categories_of(texts: Sequence[str]) -> list[str | None]:
    """The category that most cues of each text speak for; None where there is no cue."""
    points = {category: cues.counts(texts) for category, cues in _cues().items()}
    best = [max(points, key=lambda category: points[category][i]) for i in range(len(texts))]
    return [category if points[category][i] else None for i, category in enumerate(best)]


@dataclass(frozen=True, slots=True)
class _Cues:
    """The cues of one category."""

    phrases: str
    """A regular expression for Polars: over all texts at once it takes an eighth of the time of Python's."""
    shapes: tuple[re.Pattern[str], ...]

    def counts(self, texts: Sequence[str]) -> list[int]:
        """How many cues each text holds."""
        found = (
            pl.Series([well_formed(text) for text in texts], dtype=pl.String).str.extract_all(self.phrases).to_list()
        )
        return [
            len({" ".join(phrase.lower().split()) for phrase in phrases})
            + sum(shape.search(text) is not None for shape in self.shapes)
            for text, phrases in zip(texts, found, strict=True)
        ]


@cache
def _cues() -> Mapping[str, _Cues]:
    content = resources.files("lcm.writing.annotation").joinpath("category_cues.yaml").read_text("utf-8")
    return {category: _compiled(entry) for category, entry in yaml.safe_load(content).items()}


def _compiled(entry: Mapping[str, Any]) -> _Cues:
    words = "|".join(r"\s+".join(map(re.escape, word.split())) for word in _longest_first(entry["words"]))
    parts = "|".join(map(re.escape, _longest_first(entry["parts"])))
    return _Cues(
        phrases=rf"(?i)(?-u:\b)(?:{words})(?-u:\b)|{parts}",
        shapes=tuple(re.compile(shape, re.ASCII | re.IGNORECASE) for shape in entry["shapes"]),
    )


def _longest_first(cues: Sequence[str]) -> list[str]:
    return sorted(cues, key=len, reverse=True)
