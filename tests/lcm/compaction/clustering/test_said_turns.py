"""The messages of a context, read from its end: as a list of them all, and no more of them than a tail looks at."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.compaction.clustering import SaidTurns
from lcm.compaction.context_totals import ContextTotals
from lcm.compaction.recent_tail import RecentTail, Turn
from lcm.records.conversation import Message
from lcm.records.rules import VersionedRules
from lcm.records.summary import ContextEntry
from tests.lcm.compaction.contexts import message

ROLES = st.sampled_from(["user", "assistant", "tool", ""])
"""An entry without a role is a summary."""


@dataclass
class Window:
    """A context whose messages say how often they were read."""

    entries: ContextTotals
    roles: Sequence[str]
    conversation_id: str = "c"
    attempted: set[str] = field(default_factory=set)
    turns: dict[str, Any] = field(default_factory=dict)
    read: list[str] = field(default_factory=list)

    def messages(self, message_ids: Sequence[str]) -> list[Message]:
        self.read += message_ids
        return [message(int(one), "x" * 4 * (int(one) % 9), self.roles[int(one)]) for one in message_ids]


def window(roles: Sequence[str]) -> Window:
    entries = [
        ContextEntry(100 * place, "message" if role else "summary", str(place), place % 9, None if role else 0)
        for place, role in enumerate(roles)
    ]
    return Window(ContextTotals(entries), roles)


def said(context: Window, rules: VersionedRules = "corrected") -> SaidTurns:
    return SaidTurns(context, rules)  # type: ignore[arg-type]


@given(st.lists(ROLES, max_size=60), st.integers(0, 60), st.integers(0, 6), st.sampled_from(["corrected", "1.4.4"]))
def test_a_tail_is_that_of_the_whole_list(roles: list[str], budget: int, min_turns: int, rules: VersionedRules) -> None:
    context, tail = window(roles), RecentTail(min_turns, budget, None)
    turns = list(said(context, rules))
    standing = [entry for entry in context.entries if entry.is_message]
    assert [turn.role for turn in turns] == [roles[int(entry.item_id)] for entry in standing]
    assert list(context.entries.said) == standing
    context.turns.clear()
    assert tail.select(said(context, rules), budget, rules=rules) == tail.select(turns, budget, rules=rules)


def test_what_no_tail_looks_at_is_not_read_and_what_is_remembered_does_not_pile_up() -> None:
    context = window(["user", "assistant", ""] * 4000)
    choice = RecentTail(4, 30, None).select(said(context), 30)
    assert len(context.read) <= 2 * (8000 - choice.recent) + 16
    assert str(len(context.entries) - 2) in context.read  # the newest: the last entry is a summary
    list(said(context))
    assert len(context.turns) <= 1024 + 8


def test_what_the_tail_before_looked_at_is_not_read_again() -> None:
    context, tail = window(["user", "assistant"] * 40), RecentTail(4, 30, None)
    tail.select(said(context), 30)
    first = list(context.read)
    context.entries.extend([ContextEntry(100 * 80, "message", "80", 8, None)])
    context.roles = [*context.roles, "user"]
    tail.select(said(context), 30)
    assert context.read[len(first) :][:1] == ["80"]
    assert len(context.read) == len(set(context.read))


def test_places_are_those_of_a_list() -> None:
    turns = said(window(["user", "", "assistant"]))
    assert (turns[0], turns[1]) == (Turn(0, "user"), Turn(2, "assistant"))
    for place in (2, -1):
        with pytest.raises(IndexError):
            turns[place]
