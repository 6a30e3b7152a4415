"""When: sessions near the time that a query names, turns that tell a time where one is asked for, and how early."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np
import polars as pl

from lcm.protocols import Batch
from lcm.ranking.columns import with_evidence
from lcm.ranking.haystack import Haystack, Numbers
from lcm.ranking.time_expressions import Span, spans
from lcm.text_index.words import split_words

COLUMNS = ("said_then", "tells_time", "told_when_asked", "how_early")
_TIME_WORDS = frozenset((
    "yesterday", "today", "tomorrow", "tonight", "morning", "last", "next", "week", "weekend", "weeks", "month",
    "months", "year", "years", "day", "days", "ago", "since", "soon", "recently", "monday", "tuesday",
    "wednesday", "thursday", "friday", "saturday", "sunday", "january", "february", "march", "april", "may",
    "june", "july", "august", "september", "october", "november", "december", "spring", "summer", "fall",
    "autumn", "winter",
))  # fmt: skip
_ASKS_WHEN = re.compile(r"^\s*(?:when|how long|since when)\b|\b(?:what|which) (?:year|month|date|day|week|time)", re.I)


@dataclass(frozen=True, slots=True)
class TimeEvidence:
    """Add columns.

    `said_then`: 1 of what was said in a span of days that the query names (`lcm.ranking.time_expressions`), less the
    farther from it: 2 ** (-days / half-life), of its own behind the span, for people tell what has been, and before it;
    `tells_time`: 1 of a document with a word of time, and `told_when_asked` the same where the query asks when;
    `how_early`: from 1 of what was said first to 0 of what was said last.

    Source: ours.
    """

    behind_half_life_days: float = 3.0
    before_half_life_days: float = 1.0

    def __post_init__(self) -> None:
        for name in ("behind_half_life_days", "before_half_life_days"):
            if not 0 < getattr(self, name) < float("inf"):
                raise ValueError(f"{name} must be > 0, got {getattr(self, name)}")

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        texts, asked_at = batch.queries["text"], batch.queries["asked_at"]

        def evidence(haystack: Haystack, row: int) -> list[Numbers]:
            tells, early, years = _laid(haystack)
            asks_when = float(bool(_ASKS_WHEN.search(texts[row])))
            return [
                self._nearness(haystack.days, spans(texts[row], asked_at[row].date(), years)),
                tells,
                asks_when * tells,
                early,
            ]

        return with_evidence(frame, batch, COLUMNS, evidence)

    def _nearness(self, days: Numbers, named: Sequence[Span]) -> Numbers:
        nearest = np.zeros(len(days))
        for start, end in named:
            before, behind = np.maximum(start - days, 0.0), np.maximum(days - end, 0.0)
            weights = 2.0 ** (-before / self.before_half_life_days - behind / self.behind_half_life_days)
            nearest = np.maximum(nearest, weights)
        return nearest


def _laid(haystack: Haystack) -> tuple[Numbers, Numbers, range]:
    """Which documents tell a time, how early each was said, and the years of all."""
    if TimeEvidence not in haystack.kept:
        tells = np.array([float(not _TIME_WORDS.isdisjoint(split_words(text)[0])) for text in haystack.contents])
        earlier = np.searchsorted(np.sort(haystack.days), haystack.days, side="left").astype(np.float64)
        early = 1.0 - (earlier + _place_in_talk(haystack)) / max(len(haystack) - 1, 1)
        known = haystack.days[haystack.days > 0]
        years = range(_year(known.min()), _year(known.max()) + 1) if len(known) else range(0)
        haystack.kept[TimeEvidence] = tells, early, years
    tells, early, years = haystack.kept[TimeEvidence]
    return tells, early, years


def _place_in_talk(haystack: Haystack) -> Numbers:
    """For each document how many that were said at the same instant stand before it in the talk."""
    in_talk = np.empty(len(haystack), dtype=np.int64)
    in_talk[haystack.talk] = np.arange(len(haystack))
    order = np.lexsort((in_talk, haystack.days))
    sorted_days = haystack.days[order]
    found = np.empty(len(haystack))
    found[order] = np.arange(len(haystack)) - np.searchsorted(sorted_days, sorted_days, side="left")
    return found


def _year(days: float) -> int:
    return (date(1970, 1, 1) + timedelta(days=float(days))).year
