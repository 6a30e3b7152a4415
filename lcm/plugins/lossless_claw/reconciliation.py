"""Which messages of a session file the store lacks.

By content, as lossless-claw 0.6.3: the newest message of the file that the store holds as often as the file does up to
there is the anchor, and what follows it is missing. By ids: every entry is known by its own, and messages that were
heard live, without ids, by their words and order.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from lcm.plugins.lossless_claw.session_file import entry_id, identity
from lcm.records.conversation import Message
from lcm.records.rules import Rules


@dataclass(frozen=True, slots=True)
class SessionComparison:
    """The messages of a session file that the stored conversation lacks."""

    missing: tuple[Message, ...] = ()
    has_overlap: bool = True
    """At least one message is on both sides."""


def compared(stored: Sequence[Message], live: Sequence[Message], rules: Rules) -> SessionComparison:
    """Compare a stored conversation with the session file's.

    Args:
        stored: all of its messages, in order.
        live: those of the file, in order.
        rules: `corrected` goes by ids where the file has them; `original` by content.
    """
    if not live:
        return SessionComparison(has_overlap=False)
    if rules == "corrected" and all(map(entry_id, live)):
        return _by_ids(stored, live)
    return _by_content(stored, live)


def abandoned(stored: Sequence[Message], live: Sequence[Message], left: Sequence[Message]) -> list[Message]:
    """The stored messages that stand on a branch which the session left; those heard without ids by their words."""
    ids, words = set(map(entry_id, left)) - {""}, set(map(identity, left))
    known = set(map(entry_id, stored))
    expected = Counter(identity(message) for message in live if entry_id(message) not in known)
    found = []
    for message in stored:
        if entry_id(message):
            if entry_id(message) in ids:
                found.append(message)
        elif expected[identity(message)]:
            expected[identity(message)] -= 1
        elif identity(message) in words:
            found.append(message)
    return found


def _by_content(stored: Sequence[Message], live: Sequence[Message]) -> SessionComparison:
    known = Counter(map(identity, stored))
    said = [identity(message) for message in live]
    if stored and identity(stored[-1]) == said[-1] and known[said[-1]] == said.count(said[-1]):
        return SessionComparison()
    until_here = Counter(said)
    for place in range(len(live) - 1, -1, -1):
        if known[said[place]] and known[said[place]] == until_here[said[place]]:
            return SessionComparison(tuple(live[place + 1 :]))
        until_here[said[place]] -= 1
    return SessionComparison(has_overlap=False)


def _by_ids(stored: Sequence[Message], live: Sequence[Message]) -> SessionComparison:
    ids = Counter(filter(None, map(entry_id, stored)))
    live_messages = [identity(message) for message in stored if not entry_id(message)]
    missing, at = [], 0
    for message in live:
        if ids[entry_id(message)]:
            ids[entry_id(message)] -= 1
        elif (place := _index(live_messages, identity(message), at)) is not None:
            at = place + 1
        else:
            missing.append(message)
    return SessionComparison(tuple(missing), has_overlap=len(missing) < len(live))


def _index(live_messages: Sequence[tuple[str, str]], wanted: tuple[str, str], start: int) -> int | None:
    return next((place for place in range(start, len(live_messages)) if live_messages[place] == wanted), None)
