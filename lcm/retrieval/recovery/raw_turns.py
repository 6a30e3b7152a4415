"""The recovery overlay: raw words beside an answer that has failed."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from lcm.protocols.retrieval import Signals
from lcm.records.query import Recalled
from lcm.retrieval.recovery.failure import FailureRule
from lcm.retrieval.recovery.raw_user import RawUserRanking
from lcm.retrieval.recovery.reserve import Reserve
from lcm.retrieval.recovery.semantic_slots import SemanticSlots
from lcm.retrieval.recovery.temporal_query import TemporalQueries
from lcm.retrieval.recovery.temporal_ranking import TemporalOrder, TemporalRanking
from lcm.retrieval.terms import Terms


class HasDim(Protocol):
    """What is asked of an embedder: how wide its vectors are."""

    @property
    def dim(self) -> int: ...


@dataclass(frozen=True, slots=True)
class RawTurnRecovery:
    """Fires on a failed answer, keeps a reserve of the budget, and ranks what was fetched.

    Turns of the asker's own session come by cosine. Turns of other sessions are ranked by `temporal`, where the
    question is about time and names events that can be told apart, else by `raw_user`. All are shown by score, a pair
    of witnesses first, or all that `temporal` chose for the events they speak of.

    Source: libravdb memory 1.4.4.
    """

    embedder: HasDim
    """Its width is that of the widest index tier."""
    failure: FailureRule = field(default_factory=FailureRule)
    reserve: Reserve = field(default_factory=Reserve)
    compared_by: Terms = field(default_factory=Terms)
    raw_user: RawUserRanking = field(default_factory=RawUserRanking)
    queries: TemporalQueries = field(default_factory=TemporalQueries)
    temporal: TemporalRanking | SemanticSlots = field(default_factory=TemporalRanking)
    puts_pair_first: bool = True
    """False: a pair of witnesses stands where its scores put it."""
    puts_chosen_first: bool = False
    """The turns that `temporal` chose, its pair among them, come first in the order of choosing. False: as in the
    original they stand where their scores put them, and choosing them changes nothing."""
    is_off = False

    def signals(self, answer: Sequence[Recalled], has_session: bool) -> Signals:
        return self.failure.signals(answer, has_session, self.embedder.dim)

    def reserve_tokens(self, prompt: str, signals: Signals, budget_tokens: int) -> int:
        if not (signals.has_failed or signals.is_elsewhere):
            return 0
        question = self.queries.read(prompt, self.compared_by)
        return self.reserve.tokens(budget_tokens, is_comparison=question.is_selected and question.is_comparison)

    def order(
        self, prompt: str, recovered: Sequence[Recalled], tokens: Sequence[int], reserve_tokens: int, now: datetime
    ) -> list[int]:
        elsewhere = [place for place, turn in enumerate(recovered) if turn.scope_class != "session"]
        turns = [recovered[place] for place in elsewhere]
        scores = [turn.score for turn in recovered]
        question = self.queries.read(prompt, self.compared_by)
        if question.is_selected:
            costs = [tokens[place] for place in elsewhere]
            ranked = self.temporal.rank(question, turns, costs, reserve_tokens, now, self.compared_by)
            order = ranked.order
            preferred = ranked.chosen if self.puts_chosen_first else self._pair(ranked)
            found = [one.score for one in ranked.considered]
        else:
            raw = self.raw_user.scores(prompt, turns, now, self.compared_by)
            order, preferred = tuple(self.raw_user.order(turns, raw)), ()
            found = [one.score for one in raw]
        for place, score in zip(elsewhere, found, strict=True):
            scores[place] = score
        own = [place for place, turn in enumerate(recovered) if turn.scope_class == "session"]
        by_score = sorted([*own, *(elsewhere[place] for place in order)], key=lambda place: -scores[place])
        first = [elsewhere[place] for place in preferred]
        return first + [place for place in by_score if place not in first]

    def _pair(self, ranked: TemporalOrder) -> tuple[int, ...]:
        return ranked.pair or () if self.puts_pair_first else ()
