"""Which messages of a session file are missing, where its words or its ids occur more than once."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from lcm.records import Message
from lcm.session.reconciliation import compared
from lcm.session.session_file import entry_id
from lcm.session.rules import Reconciliation

NOW = datetime(2026, 2, 1, tzinfo=UTC)


def said(words: str) -> list[Message]:
    """A message for each letter."""
    return [Message(f"m{place}", "user", letter, "s", NOW) for place, letter in enumerate(words)]


def missing(stored: str, live: str) -> str | None:
    """The letters that are missing by content; None where nothing is on both sides."""
    found = compared(said(stored), said(live), "content")
    return "".join(message.content for message in found.missing) if found.has_overlap else None


@pytest.mark.parametrize(
    ("stored", "live", "left"),
    [
        ("abc", "abc", ""),
        ("ab", "abc", "c"),
        ("aab", "aabab", "ab"),  # up to its third letter the file holds b once, as the store does
        ("aa", "aaa", "a"),  # up to its second letter the file holds a twice
        ("axa", "axaxaa", "xaa"),
        ("ba", "babab", "bab"),  # the a of the store is the file's first
        ("aa", "ab", None),  # the file never holds a twice
        ("", "ab", None),
        ("c", "ab", None),
    ],
)
def test_the_anchor_is_the_newest_message_that_both_hold_as_often_up_to_there(
    stored: str, live: str, left: str | None
) -> None:
    assert missing(stored, live) == left
