"""The recent tail: the newest turns, shown word for word.

Source: the host's tail selector of libravdb memory 1.4.4; that one unit is completed and no more, its document.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from lcm.checks import check_range
from lcm.records.rules import VersionedRules


class Turn(NamedTuple):
    """One message of a conversation, as a tail sees it."""

    tokens: float
    role: str
    bundle: str = ""
    """Turns that name the same one belong together; empty: none."""


class Turns(Protocol):
    """The turns of a conversation, in order; a sequence is such."""

    def __len__(self) -> int: ...

    def __getitem__(self, at: int, /) -> Turn: ...


class TailChoice(NamedTuple):
    """Where a tail begins; it ends with the last turn."""

    base: int
    """The place of the first turn that stands whatever the budget."""
    recent: int
    """The place of the first turn; at most `base`."""


@dataclass(frozen=True, slots=True)
class RecentTail:
    """The last `min_turns` turns, and the turns before them up to the first that does not fit.

    A message and its answer, a call and its results, and what names one bundle are a unit: the one at the boundary is
    completed, if it fits beside what else must be shown. By the rules of `1.4.4` whatever alternates between user and
    assistant comes along, at any cost: mostly the whole session.
    """

    min_turns: int = 4
    """Always in."""
    budget_tokens: int = 128
    """Of the whole tail."""
    budget_fraction: float | None = 0.3
    """Of the memory's budget: stands in the place of `budget_tokens`. None = those count."""

    def __post_init__(self) -> None:
        check_range(self, "min_turns", "budget_tokens", ge=0)
        check_range(self, "budget_fraction", ge=0, le=1, or_null=True)

    def target_tokens(self, memory_budget_tokens: float) -> float:
        """What the tail aims at, of the budget that the memory has."""
        if self.budget_fraction is None:
            return self.budget_tokens
        return self.budget_fraction * memory_budget_tokens

    def base(self, turns: Turns, rules: VersionedRules = "corrected") -> int:
        """Where the turns begin that are always in: the last `min_turns`, and the calls that their results answer."""
        if self.min_turns <= 0 or not turns:
            return len(turns)
        return _step(turns, max(0, len(turns) - self.min_turns), rules)

    def select(
        self,
        turns: Turns,
        budget_tokens: float,
        room_tokens: float = math.inf,
        rules: VersionedRules = "corrected",
    ) -> TailChoice:
        """Choose the tail of a conversation.

        Args:
            turns: in order.
            budget_tokens: up to which turns are added to the base.
            room_tokens: which the unit at the boundary may fill.
            rules: `1.4.4`, or any other.
        """
        base = self.base(turns, rules)
        if base == len(turns):
            return TailChoice(base, base)
        most, used = max(0, math.floor(budget_tokens)), sum(turns[at].tokens for at in range(base, len(turns)))
        first = base
        while first:
            step = _step(turns, first - 1, rules)
            more = sum(turns[place].tokens for place in range(step, first))
            if used + more > most:
                break
            first, used = step, used + more
        start, room = first, math.inf if rules == "1.4.4" else room_tokens - used
        while start and room >= 0 and _belong_together(turns[start - 1], turns[start], rules):
            start -= 1
            room -= turns[start].tokens
        return TailChoice(base, start if room >= 0 else first)


def _step(turns: Turns, place: int, rules: VersionedRules) -> int:
    """Where the turns begin that cannot stand without one another: a message, and the results behind it."""
    while rules != "1.4.4" and place and turns[place].role == "tool":
        place -= 1
    return place


def _belong_together(before: Turn, turn: Turn, rules: VersionedRules) -> bool:
    """By other rules than 1.4.4 units part a conversation: none begins within another."""
    if turn.bundle and before.bundle == turn.bundle:
        return True
    if rules == "1.4.4":
        return {before.role, turn.role} == {"user", "assistant"}
    return turn.role == "tool" or (before.role, turn.role) == ("user", "assistant")
