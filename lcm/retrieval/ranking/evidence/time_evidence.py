"""When: sessions near the time that a query names, and turns that tell a time where one is asked for.

A query names a time by dates, months and distances to the time of asking, which are read as spans of days.
"""

import calendar
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import NamedTuple

import numpy as np
import polars as pl

from lcm.checks import check_range
from lcm.protocols.retrieval import Batch
from lcm.retrieval.ranking.evidence.kept_rows import Numbers
from lcm.retrieval.ranking.evidence.talk import Excerpt, with_evidence
from lcm.retrieval.ranking.evidence.text_facts import FORM

COLUMNS = ("said_then", "told_when_asked", "later_if_now")
_ASKS_WHEN = re.compile(r"^\s*(?:when|how long|since when)\b|\b(?:what|which) (?:year|month|date|day|week|time)", re.I)
_ASKS_NOW = re.compile(
    r"\b(?:now|nowadays|currently|current|at present|at the moment|today|still|any ?more|no longer|these days|latest"
    r"|newest|most recent(?:ly)?|in the end|final|finally|eventually|end(?:ed)? up|settled? on|at last"
    r"|jetzt|inzwischen|mittlerweile|maintenant|ahora|actualmente|agora|сейчас|теперь)\b|现在|目前|今は|지금",
    re.I,
)
_MONTHS = {name.lower(): number for number, name in enumerate(calendar.month_name) if name}
_MONTHS |= {name.lower(): number for number, name in enumerate(calendar.month_abbr) if name}
_NUMBERS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "couple": 2, "few": 3}
_UNIT_DAYS = {"day": 1, "week": 7, "month": 30, "year": 365}
_MONTH = "|".join(sorted((name.title() for name in _MONTHS), key=len, reverse=True))
_DATE = re.compile(
    rf"(?:\b(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?)?\b(?P<month>{_MONTH})\b\.?"
    r"(?:\s+(?P<after>\d{1,2})(?:st|nd|rd|th)?\b)?"
    r"(?:,?\s*(?:of\s+)?(?P<year>(?:19|20)\d\d)\b)?"
)
_ISO = re.compile(r"\b((?:19|20)\d\d)-(\d\d?)(?:-(\d\d?))?\b")
_EAST_ASIAN = re.compile(r"((?:19|20)\d\d)\s?[年년]\s?(\d\d?)\s?[月월](?:\s?(\d\d?)\s?[日号號일])?")
_DOTTED = re.compile(r"\b(\d\d?)\.\s?(\d\d?)\.\s?((?:19|20)\d\d)\b")  # the day comes first wherever dots stand
_AGO = re.compile(rf"\b(\d+|{'|'.join(_NUMBERS)})(?:\s+of)?\s+(day|week|month|year)s?\s+ago\b", re.IGNORECASE)
_LAST = re.compile(r"\b(?:last|past|previous)\s+(week|weekend|month|year)\b", re.IGNORECASE)
_DAY = re.compile(r"\b(today|yesterday)\b", re.IGNORECASE)


class Span(NamedTuple):
    """Days since the Unix epoch; `end` is the first day behind."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class TimeEvidence:
    """Add columns.

    `said_then`: 1 of what was said in a span of days that the query names (`spans`), less the farther
    from it: 2 ** (-days / half-life), of its own behind the span, for people tell what has been, and before it;
    `told_when_asked`: 1 of a turn with a word of time, where the query asks when; `later_if_now`: how far on among all
    turns a turn was said, in [0, 1], where the query asks how things stand now, or stood in the end: what was said
    later holds.

    Source: ours.
    """

    behind_half_life_days: float = 3.0
    before_half_life_days: float = 1.0

    def __post_init__(self) -> None:
        check_range(self, "behind_half_life_days", "before_half_life_days", gt=0)

    makes = COLUMNS

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        texts, asked_at = batch.queries["text"], batch.queries["asked_at"]

        def evidence(seen: Excerpt, row: int) -> list[Numbers]:
            talk, turns, nothing = seen.talk, seen.numbers, np.zeros(len(seen))
            named = spans(texts[row], asked_at[row].date(), talk.years)
            return [
                self._nearness(talk.days[turns], named) if named else nothing,
                talk.forms[turns, FORM.index("tells_time")] if _ASKS_WHEN.search(texts[row]) else nothing,
                talk.progress[turns] if _ASKS_NOW.search(texts[row]) else nothing,
            ]

        return with_evidence(frame, batch, COLUMNS, evidence)

    def _nearness(self, days: Numbers, named: Sequence[Span]) -> Numbers:
        nearest = np.zeros(len(days))
        for start, end in named:
            before, behind = np.maximum(start - days, 0.0), np.maximum(days - end, 0.0)
            weights = 2.0 ** (-before / self.before_half_life_days - behind / self.behind_half_life_days)
            nearest = np.maximum(nearest, weights)
        return nearest


def spans(text: str, asked_on: date, years: range) -> list[Span]:
    """The spans that a text names.

    A month without a year is that month of every year talked in, a date without a year likewise. Months are read where
    they begin with a capital letter, so that "may" is none.

    Args:
        text: of a query.
        asked_on: what "last week" and "two days ago" count from.
        years: that something was said in.
    """
    return [*_dates(text, years), *_distances(text, asked_on)]


def _dates(text: str, years: range) -> Iterator[Span]:
    for found in _DATE.finditer(text):
        month = _MONTHS[found["month"].lower()]
        named = found["day"] or found["after"]
        for year in [int(found["year"])] if found["year"] else years:
            yield from _span(year, month, int(named) if named else None)
    for found in (*_ISO.finditer(text), *_EAST_ASIAN.finditer(text)):
        yield from _span(int(found[1]), int(found[2]), int(found[3]) if found[3] else None)
    for found in _DOTTED.finditer(text):
        yield from _span(int(found[3]), int(found[2]), int(found[1]))


def _distances(text: str, asked_on: date) -> Iterator[Span]:
    today = _number(asked_on)
    for found in _AGO.finditer(text):
        unit, count = _UNIT_DAYS[found[2].lower()], found[1].lower()
        distance = unit * (_NUMBERS[count] if count in _NUMBERS else min(int(count), 100 * 365 // unit))
        yield Span(today - distance - unit // 2, today - distance + unit // 2 + 1)
    for found in _LAST.finditer(text):
        unit = _UNIT_DAYS.get(found[1].lower(), 7)
        yield Span(today - 2 * unit + 1, today)
    for found in _DAY.finditer(text):
        start = today - (found[1].lower() == "yesterday")
        yield Span(start, start + 1)


def _span(year: int, month: int, day: int | None) -> Iterator[Span]:
    """The day, or the month where no day is given; nothing where there is no such day."""
    if not (1 <= month <= 12 and 1 <= year <= 9998):
        return
    length = calendar.monthrange(year, month)[1]
    if day is None:
        start = date(year, month, 1)
        yield Span(_number(start), _number(start + timedelta(days=length)))
    elif 1 <= day <= length:
        yield Span(_number(date(year, month, day)), _number(date(year, month, day)) + 1)


def _number(day: date) -> int:
    return (day - date(1970, 1, 1)).days
