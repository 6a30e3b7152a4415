"""The recent tail: worked cases, and laws."""

from hypothesis import given
from hypothesis import strategies as st

from lcm.compaction.recent_tail import RecentTail, Turn

ROLES = st.sampled_from(["user", "assistant", "tool", "system"])
TURNS = st.lists(st.builds(Turn, st.integers(0, 40), ROLES, st.sampled_from(["", "b", "c"])), max_size=14)


def tokens(turns: list[Turn], first: int) -> float:
    return sum(turn.tokens for turn in turns[first:])


def test_one_unit_completes_one_exchange_a_bundle_and_results_with_their_call() -> None:
    talk, tail = [Turn(10, "user"), Turn(10, "assistant")] * 5, RecentTail(min_turns=1)
    assert tail.select(talk, 0).recent == 10 - 2  # the answer's question comes along
    assert tail.select(talk, 35).recent == 10 - 4  # three fit, and the third has its question
    assert tail.select(talk, 35, room_tokens=39).recent == 10 - 3  # for which there is no room
    assert tail.select(talk, 0, rules="1.4.4").recent == 0  # without bound it is swallowed whole
    bundle = [Turn(10, "user"), *(Turn(10, "user", "b") for _ in range(3)), Turn(10, "user")]
    assert RecentTail(min_turns=2).select(bundle, 0).recent == 1
    results = [Turn(10, "assistant"), Turn(10, "tool"), Turn(10, "tool"), Turn(10, "assistant")]
    assert RecentTail(min_turns=2).select(results, 0).base == 0


@given(turns=TURNS, min_turns=st.integers(0, 6), budget=st.integers(0, 200), room=st.integers(0, 300))
def test_laws_of_one_unit(turns: list[Turn], min_turns: int, budget: int, room: int) -> None:
    tail = RecentTail(min_turns=min_turns)
    choice = tail.select(turns, budget, room)
    assert 0 <= choice.recent <= choice.base <= len(turns)
    assert choice.base <= max(0, len(turns) - min_turns)
    assert choice.recent == choice.base or tokens(turns, choice.recent) <= max(budget, room)
    apart = [Turn(turn.tokens, "") for turn in turns]
    assert tail.select(apart, budget).recent >= choice.recent or any(turn.role == "tool" for turn in turns)
    if choice.recent < len(turns) and choice.recent:
        assert turns[choice.recent].role != "tool"


PAIRS = st.tuples(st.integers(0, 200), st.integers(0, 200)).map(sorted)


@given(turns=TURNS, min_turns=st.integers(0, 6), budgets=PAIRS, more_room=PAIRS)
def test_a_larger_budget_never_shortens_the_tail(turns, min_turns, budgets, more_room):
    tail = RecentTail(min_turns=min_turns)
    less, more = (tail.select(turns, b, b + r).recent for b, r in zip(budgets, more_room, strict=True))
    assert more <= less
