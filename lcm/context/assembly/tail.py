"""The fresh tail: the newest items, which are always shown, and what they need to make sense.

Source: lossless-claw, 0.6.3 and 0.15.3; the protection of calls is ours, and 0.6.3 knows no bound in tokens.
"""

from typing import NamedTuple

from lcm.context.assembly.shown_items import ShownItems
from lcm.records.conversation import Message
from lcm.records.rules import LosslessRules


class Tail(NamedTuple):
    """The fresh tail of a context: the newest items, which are always shown."""

    start: int
    """The place of its first item."""
    before: tuple[int, ...]
    """The places of the items that it pulls in and that stay where they are."""
    order: tuple[int, ...]
    """The places of its items in the order in which they are shown, among them results from before it."""
    tokens: int


def fresh_tail(shown: ShownItems, count: int, max_tokens: int | None, rules: LosslessRules) -> Tail:
    """Take the last `count` items, fewer where they cost more than `max_tokens`, but at least the newest; then what
    it needs to make sense.

    `corrected`: results that stand before the tail, although their call is in it and has no answer there, behind their
    call; and calls that stand before the tail, where their result is in it. `original`: results of any such call alone.
    `0.15`: nothing, but messages are counted, not items, and the newest of a user is in it whatever the bounds.
    """
    if rules == "0.15":
        start = _start_of_messages(shown, count, max_tokens)
        order = range(start, len(shown))
        return Tail(start, (), tuple(order), sum(shown[place].tokens for place in order))
    start = _start(shown, count, max_tokens)
    before = _calls_before(shown, start) if rules == "corrected" else []
    whole = _with_results_before(shown, start, rules)
    return Tail(start, tuple(before), tuple(whole), sum(shown[place].tokens for place in (*before, *whole)))


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


def _start_of_messages(shown: ShownItems, count: int, max_tokens: int | None) -> int:
    start, taken, tokens = len(shown), 0, 0
    said = (place for place in range(len(shown) - 1, -1, -1) if isinstance(shown.items[place], Message))
    asked = next((place for place in range(len(shown) - 1, -1, -1) if _is_of_user(shown, place)), None) if count else 0
    for place in said if count > 0 else ():
        if not shown[place].messages:
            continue
        is_turn_whole = asked is None or start <= asked
        is_over = max_tokens is not None and taken > 0 and tokens + shown[place].tokens > max_tokens
        if is_turn_whole and (taken >= count or is_over):
            break
        start, taken, tokens = place, taken + 1, tokens + shown[place].tokens
    return start


def _is_of_user(shown: ShownItems, place: int) -> bool:
    item = shown.items[place]
    return isinstance(item, Message) and item.role == "user"


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


def _with_results_before(shown: ShownItems, start: int, rules: LosslessRules) -> list[int]:
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
