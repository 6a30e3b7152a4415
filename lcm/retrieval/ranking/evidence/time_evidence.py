"""When: sessions near the time that a query names, and turns that tell a time where one is asked for."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from lcm.checks import check_range
from lcm.protocols.retrieval import Batch
from lcm.retrieval.ranking.columns import with_evidence
from lcm.retrieval.ranking.evidence.excerpt import Excerpt, Seen
from lcm.retrieval.ranking.evidence.haystack import Haystack, Numbers
from lcm.retrieval.ranking.evidence.text_facts import tells_time
from lcm.retrieval.ranking.evidence.time_expressions import Span, spans, year_of

COLUMNS = ("said_then", "told_when_asked", "later_if_now")
_ASKS_WHEN = re.compile(r"^\s*(?:when|how long|since when)\b|\b(?:what|which) (?:year|month|date|day|week|time)", re.I)
_ASKS_NOW = re.compile(
    r"\b(?:now|nowadays|currently|current|at present|at the moment|today|still|any ?more|no longer|these days|latest"
    r"|newest|most recent(?:ly)?|in the end|final|finally|eventually|end(?:ed)? up|settled? on|at last"
    r"|jetzt|inzwischen|mittlerweile|maintenant|ahora|actualmente|agora|сейчас|теперь)\b|现在|目前|今は|지금",
    re.I,
)


@dataclass(frozen=True, slots=True)
class TimeEvidence:
    """Add columns.

    `said_then`: 1 of what was said in a span of days that the query names (module `time_expressions`), less the farther
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

        def evidence(seen: Seen, row: int) -> list[Numbers]:
            tells, years = _of_excerpt(seen) if isinstance(seen, Excerpt) else _laid(seen)
            asks_when = float(bool(_ASKS_WHEN.search(texts[row])))
            return [
                self._nearness(seen.days, spans(texts[row], asked_at[row].date(), years)),
                asks_when * tells,
                float(bool(_ASKS_NOW.search(texts[row]))) * seen.progress,
            ]

        return with_evidence(frame, batch, COLUMNS, evidence)

    def _nearness(self, days: Numbers, named: Sequence[Span]) -> Numbers:
        nearest = np.zeros(len(days))
        for start, end in named:
            before, behind = np.maximum(start - days, 0.0), np.maximum(days - end, 0.0)
            weights = 2.0 ** (-before / self.before_half_life_days - behind / self.behind_half_life_days)
            nearest = np.maximum(nearest, weights)
        return nearest


def _laid(haystack: Haystack) -> tuple[Numbers, range]:
    """Which turns tell a time, and the years in which something was said."""
    if TimeEvidence not in haystack.cache:
        tells = np.array([tells_time(text) for text in haystack.contents], np.float64)
        known = haystack.days[haystack.days > 0]
        years = range(year_of(known.min()), year_of(known.max()) + 1) if len(known) else range(0)
        haystack.cache[TimeEvidence] = tells, years
    laid: tuple[Numbers, range] = haystack.cache[TimeEvidence]
    return laid


def _of_excerpt(seen: Excerpt) -> tuple[Numbers, range]:
    return seen.talk.facts[seen.numbers, 4].astype(np.float64), seen.talk.years
