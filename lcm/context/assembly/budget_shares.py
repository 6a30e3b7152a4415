"""How the budget of a memory is shared out, before anything is recalled.

Claims in order: hard authored text, the base of the recent tail, the soft prefix, the rest of the tail. What they leave
is for guidance and recall. Source: the budget partition of libravdb memory 1.4.4, and its continuity document.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lcm.checks import check_range
from lcm.compaction.recent_tail import RecentTail, TailChoice, Turn
from lcm.errors import LcmError
from lcm.records.rules import VersionedRules

_SLACK = 1e-9


class OversizedHardError(LcmError):
    """What is authored and must always be shown takes more than it may."""

    def __init__(self, tokens: float, budget_tokens: float) -> None:
        super().__init__(
            f"hard authored text (authored.paths) takes {tokens:g} tokens as it is shown, more than the "
            f"{budget_tokens:g} that it may: shorten it, mark less of it as binding, or ask for larger budgets "
            "(measures.retention.budgets; assembly.rules=original shows it alone)"
        )
        self.tokens = tokens
        self.budget_tokens = budget_tokens


class Price(NamedTuple):
    """The tokens of one document or authored block: as shown, and as packed."""

    shown: float
    """As it is counted."""
    packed: float
    """By which it is decided whether it fits."""


class Shares(NamedTuple):
    """The budget of one context, shared out among its parts."""

    memory_tokens: float
    """The whole budget of the memory."""
    hard_tokens: float
    soft: int
    """How many soft blocks are in."""
    soft_tokens: float
    tail: TailChoice
    base_tokens: float
    tail_tokens: float
    """Of the whole tail, its base among it."""
    degraded: tuple[str, ...]
    """Why nothing but hard text and the base of the tail is shown; empty where all is well."""

    def exceeds(self, tokens: float) -> bool:
        """Whether so many are more than the memory has."""
        return tokens > self.memory_tokens + _SLACK

    @property
    def left_tokens(self) -> float:
        """For what is recalled."""
        if self.degraded:
            return 0.0
        return max(0.0, self.memory_tokens - self.hard_tokens - self.soft_tokens - self.tail_tokens)


@dataclass(frozen=True, slots=True)
class BudgetShares:
    """The fractions of a memory's budget that its parts may claim."""

    hard_fraction: float = 0.0
    """What hard authored text may take at most; 0 = all."""
    soft_fraction: float = 0.3
    """What soft authored text may take."""
    guidance_fraction: float = 0.15
    """What protected rules may take."""

    def __post_init__(self) -> None:
        check_range(self, "hard_fraction", "soft_fraction", "guidance_fraction", ge=0, le=1)

    def share(
        self,
        memory_tokens: float,
        hard: Sequence[float],
        soft: Sequence[Price],
        turns: Sequence[Turn],
        tail: RecentTail,
        rules: VersionedRules = "corrected",
        weighed: Sequence[Turn] | None = None,
    ) -> Shares:
        """Share a budget out.

        Hard text that takes more than it may is refused, and the tail cannot have what soft text could claim, so that a
        larger budget never shortens it. By the original's rules such hard text is shown with the base of the tail and
        nothing else, and the tail cannot have what soft text takes.

        Args:
            memory_tokens: the budget.
            hard: what each hard block takes.
            soft: what the soft blocks take.
            turns: the conversation.
            tail: how its tail is chosen.
            rules: `corrected`, or the original's.
            weighed: the turns with what the choice of the tail counts; None: what they take.
        Raises:
            OversizedHardError: if hard blocks take more than they may, by the corrected rules.
        """
        hard_tokens = sum(hard)
        hard_limit = memory_tokens * self.hard_fraction if self.hard_fraction > 0 else memory_tokens
        is_oversized = bool(hard) and hard_tokens > hard_limit + _SLACK
        if is_oversized and rules == "corrected":
            raise OversizedHardError(hard_tokens, hard_limit)
        base = tail.base(turns, rules)
        base_tokens = sum(turns[place].tokens for place in range(base, len(turns)))
        degraded = []
        if is_oversized and self.hard_fraction > 0:
            degraded.append(f"hard authored text takes {hard_tokens:g} tokens of {hard_limit:g}")
        must_tokens = hard_tokens + base_tokens
        if must_tokens > memory_tokens + _SLACK:
            degraded.append(f"hard authored text and the newest turns take {must_tokens:g} tokens of {memory_tokens:g}")
        if degraded:
            return Shares(
                memory_tokens, hard_tokens, 0, 0.0, TailChoice(base, base), base_tokens, base_tokens, tuple(degraded)
            )
        room = memory_tokens - must_tokens
        soft_budget = max(0.0, min(memory_tokens * self.soft_fraction, room))
        soft_count = longest_prefix((price.packed for price in soft), soft_budget)
        soft_shown = [price.shown for price in soft]
        soft_tokens = sum(soft_shown[:soft_count])
        claimed = min(soft_budget, sum(soft_shown)) if rules == "corrected" else soft_tokens
        tail_room = max(0.0, memory_tokens - hard_tokens - claimed)
        target = max(tail.target_tokens(memory_tokens), base_tokens)
        choice = tail.select(turns if weighed is None else weighed, min(target, tail_room), tail_room, rules)
        tail_tokens = sum(turns[place].tokens for place in range(choice.recent, len(turns)))
        return Shares(memory_tokens, hard_tokens, soft_count, soft_tokens, choice, base_tokens, tail_tokens, ())


def longest_prefix(costs: Iterable[float], budget_tokens: float) -> int:
    """How many of the first items fit; the first that does not ends the walk, however small those behind it are."""
    used = 0.0
    taken = 0
    for cost in costs:
        if used + cost > budget_tokens:
            break
        used += cost
        taken += 1
    return taken


def first_fit(costs: Sequence[float], budget_tokens: float) -> list[int]:
    """The places of the items that fit, each taken if it does beside those before it."""
    used = 0.0
    taken = []
    for place, cost in enumerate(costs):
        if used + cost <= budget_tokens:
            used += cost
            taken.append(place)
    return taken
