"""Which recovered turns answer a question: by its words, or by time and the events that it names."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

import numpy as np

from lcm.checks import check_range
from lcm.encoding import well_formed
from lcm.protocols.models import Embedder
from lcm.records.query import Recalled
from lcm.retrieval.recovery.question import TemporalQuery, anchor_density, pattern, patterns, words
from lcm.retrieval.terms import Terms

Slot = tuple[str, ...]


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
        kept = [term for term in terms.all_of(question) if term not in words("intent_stop_words")]
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


class Witness(NamedTuple):
    """A text that speaks of one of two events."""

    side: int
    """0 or 1: of the first event or of the second."""
    pastness: float
    """In [0, 1]: 1 where nothing says that it is yet to come."""
    score: float
    """In [0, 1]."""


@dataclass(frozen=True, slots=True)
class Witnesses:
    """A text belongs to the event of which it says the larger share of the telling terms, at least `least_share`.
    Telling terms are those of a slot that are not generic and not in the other slot.

        recall = said / terms of the slot, precision = said / max(least_content, content terms of the text)
        w      = position recall * position precision * max(least_pastness, pastness), where the slot has 2 terms
                 or more: a term first said within `early_share` of the content terms counts 1, a later one
                 `late_weight`; else w = recall
        score  = clamp01(w * (1 - other_penalty + other_penalty * (1 - recall of the other slot)))

    pastness = clamp01(1 - prospective phrases / max(1, first-person markers)).

    Source: libravdb memory 1.4.4.
    """

    least_share: float = 0.5
    least_content: int = 5
    early_share: float = 0.3
    late_weight: float = 0.5
    least_pastness: float = 0.6
    other_penalty: float = 0.3
    """0 = a text that also speaks of the other event is as good a witness."""
    is_discriminative: bool = True
    """False: every term of a slot is telling."""
    weighs_position: bool = True
    """False: w = recall, wherever the terms stand and whatever is yet to come."""

    def __post_init__(self) -> None:
        check_range(self, "least_share", "early_share", "late_weight", "least_pastness", "other_penalty", ge=0, le=1)
        check_range(self, "least_content", ge=1)

    def find(self, text: str, sides: tuple[Slot, Slot], terms: Terms) -> Witness | None:
        """None: the text speaks of neither event more than of the other."""
        said = terms.of(text)
        known = set(said)
        shares = [_share(telling, known) for telling in self._telling(sides)]
        if shares[0] == shares[1] or max(shares) < self.least_share:
            return None
        side = shares.index(max(shares))
        slot, other = sides[side], sides[1 - side]
        pastness = _pastness(text)
        weight = self._weight(slot, _content(said), pastness)
        kept = 1 - self.other_penalty + self.other_penalty * (1 - _share(other, known))
        return Witness(side, pastness, clamp01(weight * kept))

    def _telling(self, sides: tuple[Slot, Slot]) -> list[Slot]:
        if not self.is_discriminative:
            return list(sides)
        vague = words("generic_nouns") | words("vague_nouns")
        return [
            tuple(term for term in slot if term not in vague and term not in sides[1 - number])
            for number, slot in enumerate(sides)
        ]

    def _weight(self, slot: Slot, content: Sequence[str], pastness: float) -> float:
        if not self.weighs_position or len(slot) < 2:
            return _share(slot, set(content))
        early = self.early_share * len(content)
        places = {term: content.index(term) for term in slot if term in content}
        weighed = sum(1.0 if place < early else self.late_weight for place in places.values())
        precision = weighed / max(self.least_content, len(content))
        return weighed / len(slot) * precision * max(self.least_pastness, pastness)


def sides(slots: Sequence[Slot]) -> tuple[Slot, Slot] | None:
    """The two events that a question compares.

    The first two slots that are neither one generic noun nor begin with one and have at most two terms; where there
    are no two such, the first two that are no single generic noun; None where there are no two of those either.
    """
    generic = words("generic_nouns")
    named = [slot for slot in slots if not (len(slot) == 1 and slot[0] in generic)]
    sharp = [slot for slot in named if not (len(slot) <= 2 and slot[0] in generic)]
    first = (sharp if len(sharp) >= 2 else named)[:2]
    return (first[0], first[1]) if len(first) == 2 else None


def best_pair(
    witnesses: Sequence[Witness | None], worth: Sequence[float], tokens: Sequence[int], budget_tokens: float
) -> tuple[int, int] | None:
    """The places of a witness of each event that fit the budget together and are worth most; ties: fewer tokens."""
    pairs = [
        (first, second)
        for first, one in enumerate(witnesses)
        for second, two in enumerate(witnesses)
        if one is not None and one.side == 0 and two is not None and two.side == 1
    ]
    fitting = [pair for pair in pairs if tokens[pair[0]] + tokens[pair[1]] <= budget_tokens]
    return min(
        fitting,
        key=lambda pair: (-(worth[pair[0]] + worth[pair[1]]), tokens[pair[0]] + tokens[pair[1]]),
        default=None,
    )


def _share(slot: Slot, known: set[str]) -> float:
    return sum(term in known for term in slot) / len(slot) if slot else 0.0


def _content(said: Sequence[str]) -> list[str]:
    left_out = words("intent_stop_words") | words("slot_stop_words")
    return list(dict.fromkeys(term for term in said if term not in left_out))


def _pastness(text: str) -> float:
    ahead = len(pattern("prospective").findall(text))
    markers = sum(len(marker.findall(text)) for marker in patterns("first_person").values())
    return clamp01(1 - ahead / max(1, markers))


class ScoredTurn(NamedTuple):
    """A turn as temporal ranking sees it; numbers in [0, 1]."""

    score: float
    semantic: float
    recency: float
    anchors: float
    coverage: float
    slots: tuple[Slot, ...]
    """Those of the question that it speaks of."""
    witness: Witness | None


class TemporalOrder(NamedTuple):
    """Turns in the order of temporal ranking; numbers are places among them."""

    order: tuple[int, ...]
    """All of them: the pair, then those chosen, then the rest by score."""
    considered: tuple[ScoredTurn, ...]
    """In the order given."""
    chosen: tuple[int, ...]
    """The pair and what was added to it, in the order of choosing."""
    pair: tuple[int, int] | None
    """A witness of each event of a comparison."""


@dataclass(frozen=True, slots=True)
class TemporalRanking:
    """score = clamp01(0.40 semantic + 0.25 recency + 0.20 anchors + 0.15 coverage, + 0.05 if the question is active).

    Of a comparison: clamp01(0.15 semantic + 0.15 recency + 0.15 coverage + 0.55 witness). coverage is the share of the
    question's slots that a turn speaks of: of each at least `slot_share` of the terms.

    The pair of witnesses worth most within the budget is chosen first, then turn by turn the one with the highest
    score + `new_slot_bonus` * slots not yet covered / slots, up to `most_chosen`, while that is at least `least_gain`.

    Source: libravdb memory 1.4.4.
    """

    witnesses: Witnesses = field(default_factory=Witnesses)
    semantic_weight: float = 0.4
    recency_weight: float = 0.25
    anchor_weight: float = 0.2
    coverage_weight: float = 0.15
    active_bonus: float = 0.05
    recency_per_s: float = 1e-5
    slot_share: float = 0.5
    comparison_semantic_weight: float = 0.15
    comparison_recency_weight: float = 0.15
    comparison_coverage_weight: float = 0.15
    comparison_witness_weight: float = 0.55
    most_chosen: int = 3
    new_slot_bonus: float = 0.25
    least_gain: float = 0.12
    blends_comparison: bool = True
    """False: a comparison is scored as any other question."""
    pairs_by_witness: bool = True
    """False: the pair is the one with the highest scores."""

    def __post_init__(self) -> None:
        names = [name for name in self.__slots__ if name.endswith(("_weight", "_bonus", "_per_s", "_gain"))]
        check_range(self, *names, ge=0)
        check_range(self, "slot_share", ge=0, le=1)
        check_range(self, "most_chosen", ge=1)

    def rank(
        self,
        question: TemporalQuery,
        turns: Sequence[Recalled],
        tokens: Sequence[int],
        budget_tokens: float,
        now: datetime,
        terms: Terms,
    ) -> TemporalOrder:
        """Order turns.

        Args:
            question: as `TemporalQueries` read it.
            turns: by cosine.
            tokens: what each costs.
            budget_tokens: what a pair of witnesses may cost.
            now: when it was asked.
            terms: how texts are compared; the question's slots are made by the same.
        """
        events = sides(question.slots) if question.is_comparison else None
        seen = tuple(self._consider(turn, question, events, now, terms) for turn in turns)
        by_score = sorted(range(len(turns)), key=lambda place: -seen[place].score)
        found = [seen[place].witness for place in by_score]
        worth = [
            (one.score if self.pairs_by_witness else seen[place].score) if one else 0.0
            for place, one in zip(by_score, found, strict=True)
        ]
        costs = [tokens[place] for place in by_score]
        best = best_pair(found, worth, costs, budget_tokens)
        pair = None if best is None else (by_score[best[0]], by_score[best[1]])
        chosen = chosen_of(seen, by_score, pair, question.slots, self.most_chosen, self.new_slot_bonus, self.least_gain)
        rest = [place for place in by_score if place not in chosen]
        return TemporalOrder((*chosen, *rest), seen, tuple(chosen), pair)

    def _consider(
        self, turn: Recalled, question: TemporalQuery, events: tuple[Slot, Slot] | None, now: datetime, terms: Terms
    ) -> ScoredTurn:
        known = set(terms.of(turn.text))
        semantic, anchors = clamp01(turn.score), anchor_density(turn.text)
        recency = math.exp(-self.recency_per_s * age_s(turn.created_at, now))
        slots = tuple(slot for slot in question.slots if self._speaks_of(slot, known))
        coverage = len(slots) / len(question.slots) if question.slots else 0.0
        witness = None if events is None else self.witnesses.find(turn.text, events, terms)
        if events is not None and self.blends_comparison:
            score = (
                self.comparison_semantic_weight * semantic
                + self.comparison_recency_weight * recency
                + self.comparison_coverage_weight * coverage
                + self.comparison_witness_weight * (witness.score if witness else 0.0)
            )
        else:
            score = (
                self.semantic_weight * semantic
                + self.recency_weight * recency
                + self.anchor_weight * anchors
                + self.coverage_weight * coverage
                + (self.active_bonus if question.is_active else 0.0)
            )
        return ScoredTurn(clamp01(score), semantic, recency, anchors, coverage, slots, witness)

    def _speaks_of(self, slot: Slot, known: set[str]) -> bool:
        return sum(term in known for term in slot) / len(slot) >= self.slot_share


def chosen_of(
    seen: Sequence[ScoredTurn],
    by_score: Sequence[int],
    pair: tuple[int, int] | None,
    slots: Sequence[Slot],
    most: int,
    new_slot_bonus: float,
    least_gain: float,
) -> list[int]:
    """The pair, then turn by turn the one that gains most: score + new_slot_bonus * slots not yet covered / slots."""
    chosen = list(pair or ())
    covered = {slot for place in chosen for slot in seen[place].slots}
    while len(chosen) < most:
        gains = {
            place: seen[place].score + new_slot_bonus * len(set(seen[place].slots) - covered) / max(1, len(slots))
            for place in by_score
            if place not in chosen
        }
        best = max(gains, key=lambda place: gains[place], default=None)
        if best is None or gains[best] < least_gain:
            break
        chosen.append(best)
        covered |= set(seen[best].slots)
    return chosen


@dataclass(frozen=True, slots=True)
class SemanticSlots:
    """score = (1 - xi) * semantic + xi * (semantic_weight * semantic + recency_weight * recency + anchor_weight *
    anchors), where xi is the question's indicator.

    A turn speaks of an event if their cosine is at least `slot_cosine`. Of the `most_considered` best turns that score
    at least `floor_score` the ones that cover events not yet covered come first, as in `TemporalRanking`; the other
    turns are left out. No pair of witnesses is sought.

    Source: libravdb memory, mathematical reference, revision 3.3, section 9; the weight of a new event is 1.4.4's.
    """

    embedder: Embedder
    semantic_weight: float = 0.6
    recency_weight: float = 0.2
    anchor_weight: float = 0.2
    recency_per_s: float = 1e-5
    slot_cosine: float = 0.5
    floor_score: float = 0.15
    most_considered: int = 10
    most_chosen: int = 3
    new_slot_bonus: float = 0.25
    least_gain: float = 0.1

    def __post_init__(self) -> None:
        check_range(self, "semantic_weight", "recency_weight", "anchor_weight", "recency_per_s", "new_slot_bonus", ge=0)
        check_range(self, "slot_cosine", "floor_score", "least_gain", ge=-1, le=1)
        check_range(self, "most_considered", "most_chosen", ge=1)

    def rank(
        self,
        question: TemporalQuery,
        turns: Sequence[Recalled],
        tokens: Sequence[int],
        budget_tokens: float,
        now: datetime,
        terms: Terms,
    ) -> TemporalOrder:
        """Order turns, as `TemporalRanking.rank` does.

        Raises:
            LcmError: if a text could not be embedded.
        """
        plain = [self._considered(turn, question.indicator, now) for turn in turns]
        by_score = sorted(range(len(turns)), key=lambda place: -plain[place].score)
        kept = [place for place in by_score if plain[place].score >= self.floor_score][: self.most_considered]
        spoken = self._slots([turns[place].text for place in kept], question.slots)
        seen = {place: plain[place]._replace(slots=slots) for place, slots in zip(kept, spoken, strict=True)}
        considered = tuple(seen.get(place, one) for place, one in enumerate(plain))
        chosen = chosen_of(
            considered, kept, None, question.slots, self.most_chosen, self.new_slot_bonus, self.least_gain
        )
        rest = [place for place in kept if place not in chosen]
        return TemporalOrder((*chosen, *rest), considered, tuple(chosen), None)

    def _considered(self, turn: Recalled, indicator: float, now: datetime) -> ScoredTurn:
        semantic, anchors = clamp01(turn.score), anchor_density(turn.text)
        recency = math.exp(-self.recency_per_s * age_s(turn.created_at, now))
        temporal = self.semantic_weight * semantic + self.recency_weight * recency + self.anchor_weight * anchors
        score = clamp01((1 - indicator) * semantic + indicator * temporal)
        return ScoredTurn(score, semantic, recency, anchors, 0.0, (), None)

    def _slots(self, texts: Sequence[str], slots: Sequence[Slot]) -> list[tuple[Slot, ...]]:
        """The slots that each text speaks of."""
        if not texts or not slots:
            return [()] * len(texts)
        asked = self.embedder.embed([well_formed(" ".join(slot)) for slot in slots], "query")
        said = self.embedder.embed([well_formed(text) for text in texts], "document")
        near = np.asarray(said @ asked.T) >= self.slot_cosine
        return [tuple(slot for slot, is_near in zip(slots, row, strict=True) if is_near) for row in near]
