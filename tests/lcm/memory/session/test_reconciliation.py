"""Which messages of a session file are missing, where its words or its ids occur more than once."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from lcm.memory.session_bootstrap import compared, entry_id
from lcm.records.conversation import Message

NOW = datetime(2026, 2, 1, tzinfo=UTC)


def said(words: str) -> list[Message]:
    """A message for each letter."""
    return [Message(f"m{place}", "user", letter, "s", NOW) for place, letter in enumerate(words)]


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
def test_the_anchor_is_the_newest_message_that_both_hold_as_often_up_to_there(stored, live, left):
    """By content; None where nothing is on both sides."""
    found = compared(said(stored), said(live), "original")
    assert (None if found is None else "".join(message.content for message in found)) == left


def with_ids(words: str, ids: Sequence[str]) -> list[Message]:
    return [
        replace(message, envelope={"record": {"id": name}} if name else {})
        for message, name in zip(said(words), ids, strict=True)
    ]


@pytest.mark.parametrize(
    ("stored", "stored_ids", "live", "live_ids", "left"),
    [
        ("ab", ["1", "2"], "abc", ["1", "2", "3"], "c"),
        ("ab", ["1", "2"], "xyc", ["1", "2", "3"], "c"),
        ("a", ["1"], "ab", ["1", "1"], "b"),
        ("ab", ["1", "1"], "ab", ["1", "1"], ""),
        ("ab", ["", ""], "ab", ["1", "2"], ""),
        ("ab", ["", ""], "ba", ["1", "2"], "a"),  # heard live in another order
        ("a", [""], "aa", ["1", "2"], "a"),
    ],
)
def test_an_entry_is_known_as_often_as_it_is_stored(stored, stored_ids, live, live_ids, left):
    found = compared(with_ids(stored, stored_ids), with_ids(live, live_ids), "corrected")
    assert "".join(message.content for message in found or ()) == left


def test_a_file_with_an_entry_without_an_id_is_compared_by_content() -> None:
    live = with_ids("ab", ["1", ""])
    assert [entry_id(message) for message in live] == ["1", ""]
    for rules in ("corrected", "original"):
        assert [message.content for message in compared(said("xa"), live, rules) or ()] == ["b"]
