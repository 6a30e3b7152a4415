"""The fresh tail: the newest items, which are always shown, and what they need to make sense.

Source: lossless-claw 0.6.3; a bound in tokens and the protection of calls are ours.
"""

from typing import NamedTuple

from lcm.context.assembly.shown_items import ShownItems
from lcm.records.rules import Rules


class Tail(NamedTuple):
    """The fresh tail of a context: the newest items, which are always shown."""

    start: int
    """The place of its first item."""
    before: tuple[int, ...]
    """The places of the items that it pulls in and that stay where they are."""
    order: tuple[int, ...]
    """The places of its items in the order in which they are shown, among them results from before it."""
    tokens: int


def fresh_tail(shown: ShownItems, count: int, max_tokens: int | None, rules: Rules) -> Tail:
    """Take the last `count` items, fewer where they cost more than `max_tokens`, but at least the newest; then what
    it needs to make sense.

    `corrected`: results that stand before the tail, although their call is in it and has no answer there, behind their
    call; and calls that stand before the tail, where their result is in it. `original`: results of any such call alone.
    """
    start = _start(shown, count, max_tokens)
    before = _calls_before(shown, start) if rules == "corrected" else []
    order = _with_results_before(shown, start, rules)
    return Tail(start, tuple(before), tuple(order), sum(shown[place].tokens for place in (*before, *order)))


def _start(shown: ShownItems, count: int, max_tokens: int | None) -> int:
    first = max(0, len(shown) - count)
    if max_tokens is None:
        return first
    tokens = 0
    for place in range(len(shown) - 1, first - 1, -1):
        tokens += shown[place].tokens
        if tokens > max_tokens and place < len(shown) - 1:
            return place + 1
    return first


def _calls_before(shown: ShownItems, start: int) -> list[int]:
    """The places before the tail of the nearest calls that its first results answer."""
    called: set[str] = set()
    missing: set[str] = set()
    for place in range(start, len(shown)):
        called |= set(shown[place].calls)
        missing |= set(shown[place].results) - called
    found = []
    for place in shown.naming_calls(missing, start):
        if not missing.isdisjoint(shown[place].calls):
            found.append(place)
            missing.difference_update(shown[place].calls)
            if not missing:
                break
    return found[::-1]


def _with_results_before(shown: ShownItems, start: int, rules: Rules) -> list[int]:
    tail = range(start, len(shown))
    calls = {call_id for place in tail for call_id in shown[place].calls}
    if rules == "corrected":
        calls -= {call_id for place in tail for call_id in shown[place].results}
    waiting: dict[str, list[int]] = {}
    for place in shown.naming_calls(calls, start):
        answered = next((call_id for call_id in shown[place].results if call_id in calls), None)
        if answered is not None:
            waiting.setdefault(answered, []).insert(0, place)
    whole: list[int] = []
    for place in tail:
        whole.append(place)
        for call_id in shown[place].calls:
            whole += waiting.pop(call_id, [])
    return whole
