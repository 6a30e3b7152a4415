"""How well a turn that somebody once said answers a question."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from lcm.checks import check_range
from lcm.records.query import Recalled
from lcm.retrieval.recovery import vocabulary
from lcm.retrieval.terms import Terms


class RawUserScore(NamedTuple):
    """A turn's score and what it is made of, each in [0, 1]."""

    score: float
    semantic: float
    coverage: float
    recency: float


@dataclass(frozen=True, slots=True)
class RawUserRanking:
    """score = clamp01(semantic_weight * semantic + coverage_weight * coverage + recency_weight * recency + bonus).

    semantic is the turn's score, clamped to [0, 1]; coverage the share of the question's distinct terms that it says;
    recency = exp(-recency_per_s * age). bonus = phrase_bonus for each intent phrase that it says, most_bonus in all.
    Intent phrases are runs of neighbours among the question's terms without stop words, all long enough, of the sizes
    `phrase_terms`: the first `most_phrases` different ones. Ties: coverage, then semantic, then id.

    Source: libravdb memory 1.4.4.
    """

    semantic_weight: float = 0.2
    coverage_weight: float = 0.7
    recency_weight: float = 0.1
    recency_per_s: float = 1e-5
    phrase_bonus: float = 0.01
    most_bonus: float = 0.04
    phrase_terms: Sequence[int] = (4, 3, 2)
    """In the order in which they are counted."""
    most_phrases: int = 12

    def __post_init__(self) -> None:
        names = ("semantic_weight", "coverage_weight", "recency_weight", "recency_per_s", "phrase_bonus", "most_bonus")
        check_range(self, *names, "most_phrases", ge=0)
        check_range(self, "phrase_terms", ge=1)

    def scores(self, question: str, turns: Sequence[Recalled], now: datetime, terms: Terms) -> list[RawUserScore]:
        """One score a turn, in order."""
        asked = list(dict.fromkeys(terms.of(question)))
        phrases = self._phrases(question, terms)
        return [self._score(turn, asked, phrases, now, terms) for turn in turns]

    def order(self, turns: Sequence[Recalled], scores: Sequence[RawUserScore]) -> list[int]:
        """The places of the turns, best first."""
        return sorted(
            range(len(turns)),
            key=lambda i: (-scores[i].score, -scores[i].coverage, -scores[i].semantic, turns[i].document_id),
        )

    def _score(
        self, turn: Recalled, asked: Sequence[str], phrases: Sequence[str], now: datetime, terms: Terms
    ) -> RawUserScore:
        said = terms.all_of(turn.text)
        known = set(said)
        text = " ".join(said)
        semantic = clamp01(turn.score)
        coverage = sum(term in known for term in asked) / len(asked) if asked else 0.0
        recency = math.exp(-self.recency_per_s * age_s(turn.created_at, now))
        bonus = min(self.most_bonus, self.phrase_bonus * sum(phrase in text for phrase in phrases))
        score = self.semantic_weight * semantic + self.coverage_weight * coverage + self.recency_weight * recency
        return RawUserScore(clamp01(score + bonus), semantic, coverage, recency)

    def _phrases(self, question: str, terms: Terms) -> list[str]:
        kept = [term for term in terms.all_of(question) if term not in vocabulary.words("intent_stop_words")]
        long_enough = set(terms.of(question))
        runs = (kept[start : start + size] for size in self.phrase_terms for start in range(len(kept) - size + 1))
        phrases = (" ".join(run) for run in runs if long_enough.issuperset(run))
        return list(dict.fromkeys(phrases))[: self.most_phrases]


def clamp01(value: float) -> float:
    """The nearest number in [0, 1]; 0 for what is no number."""
    return min(1.0, max(0.0, value)) if value == value else 0.0


def age_s(said_at: datetime, now: datetime) -> float:
    """Seconds since then; 0 of the future."""
    return max(0.0, (now - said_at).total_seconds())
