"""Category, importance, temporal type and expiry of candidates by rule: no model, and the same for everyone.

The six categories, their importance and the temporal classifier are memory-lancedb-pro's; it leaves the category of a
text to a language model, and the rule for it is ours. It is a rough one: of the labelled messages of the sample that
its cues were not written by (`test_category_accuracy.py` among the tests) it finds the label of 60 %, where the
commonest label alone is right on 39 %; it is best at events, and misses nearly every case.

How long a statement holds, its temporal type and its expiry, is memory-lancedb-pro's temporal-classifier. Its static
cues (favourite, born, lives in) never change an outcome, for a dynamic cue beside them wins and static is what
everything else is: they are left out.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache
from importlib import resources
from typing import Any, Literal

import polars as pl

from lcm.checks import check_choice
from lcm.encoding import from_yaml, well_formed
from lcm.protocols.contract import Contract
from lcm.records.document import MEMORY_CATEGORIES, Candidate
from lcm.writing.lifecycle import DEFAULT_IMPORTANCE, UNKNOWN_IMPORTANCE


@dataclass(frozen=True, slots=True)
class NoAnnotation:
    """Rates nothing."""

    contract = Contract(is_off=True)

    def annotate(self, candidates: Sequence[Candidate], said_at: Sequence[datetime]) -> list[Candidate]:
        return list(candidates)


def _cue(english: str, chinese: str) -> re.Pattern[str]:
    """English cues stand as words of ASCII letters, Chinese ones anywhere."""
    return re.compile(rf"\b(?:{english})\b|{chinese}", re.ASCII | re.IGNORECASE)


_DYNAMIC = _cue(
    "today|yesterday|tomorrow|recently|currently|right now|this week|this month|last week|next week|this morning"
    "|tonight|later",
    "今天|昨天|明天|最近|正在|刚才|刚刚|这周|这个月|上周|下周|目前|现在|今晚|今早|稍后|待会",
)

_LIFETIMES = (
    (re.compile("day after tomorrow|后天", re.IGNORECASE), timedelta(hours=48)),
    (_cue("tomorrow", "明天"), timedelta(hours=24)),
    (_cue("next week", "下周"), timedelta(days=7)),
    (_cue("this week", "这周"), timedelta(days=3)),
    (_cue("next month", "下个月"), timedelta(days=30)),
    (_cue("this month", "这个月"), timedelta(days=15)),
    (_cue("tonight", "今晚"), timedelta(hours=12)),
    (_cue("today", "今天"), timedelta(hours=18)),
)
"""The first whose cue is there counts. The day after tomorrow may stand anywhere, even glued to other letters."""


def temporal_type(text: str) -> Literal["static", "dynamic"]:
    """Dynamic where a cue says that the statement is about a passing moment, else static."""
    return "dynamic" if _DYNAMIC.search(text) else "static"


def expiry(text: str, said_at: datetime) -> datetime | None:
    """When what a text says is over, judged by its cues alone; None = never.

    "Next month" sets an expiry although it does not make a text dynamic.
    """
    lifetime = next((lifetime for cue, lifetime in _LIFETIMES if cue.search(text)), None)
    if lifetime is None or said_at > datetime.max.replace(tzinfo=said_at.tzinfo) - lifetime:
        return None
    return said_at + lifetime


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
    content = resources.files("lcm.writing").joinpath("category_cues.yaml").read_text("utf-8")
    return {category: _compiled(entry) for category, entry in from_yaml(content).items()}


def _compiled(entry: Mapping[str, Any]) -> _Cues:
    words = "|".join(r"\s+".join(map(re.escape, word.split())) for word in _longest_first(entry["words"]))
    parts = "|".join(map(re.escape, _longest_first(entry["parts"])))
    return _Cues(
        phrases=rf"(?i)(?-u:\b)(?:{words})(?-u:\b)|{parts}",
        shapes=tuple(re.compile(shape, re.ASCII | re.IGNORECASE) for shape in entry["shapes"]),
    )


def _longest_first(cues: Sequence[str]) -> list[str]:
    return sorted(cues, key=len, reverse=True)
