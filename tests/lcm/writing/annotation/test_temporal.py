"""Static or dynamic, and until when."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.writing.annotation.temporal import expiry, temporal_type

NOW = datetime(2026, 3, 1, 9, tzinfo=UTC)


@pytest.mark.parametrize(
    "text", ["I am currently in Oslo", "TODAY it rains", "tonight's dinner", "我最近很忙", "现在下雨"]
)
def test_a_cue_of_the_moment_makes_a_text_dynamic(text: str) -> None:
    assert temporal_type(text) == "dynamic"


@pytest.mark.parametrize("text", ["", "I live in Oslo", "the todays of old", "a lateral move", "see you next month"])
def test_everything_else_is_static(text: str) -> None:
    assert temporal_type(text) == "static"


def test_a_cue_of_the_moment_wins_over_a_lasting_one() -> None:
    assert temporal_type("my favorite song is currently this one") == "dynamic"


@pytest.mark.parametrize(
    ("text", "hours"),
    [
        ("the day after tomorrow", 48),
        ("下周day after tomorrows", 48),
        ("tomorrow or next week", 24),
        ("下周开会", 7 * 24),
        ("this week and today", 3 * 24),
        ("next month", 30 * 24),
        ("这个月", 15 * 24),
        ("今晚", 12),
        ("Today", 18),
    ],
)
def test_the_first_cue_of_the_list_says_when_a_text_is_over(text: str, hours: int) -> None:
    assert expiry(text, NOW) == NOW + timedelta(hours=hours)


@pytest.mark.parametrize("text", ["recently", "yesterday", "last week", "this morning", "I live in Oslo"])
def test_what_names_no_end_never_expires(text: str) -> None:
    assert expiry(text, NOW) is None


def test_an_end_beyond_the_calendar_is_none() -> None:
    assert expiry("next week", datetime(9999, 12, 30, tzinfo=UTC)) is None
    assert expiry("today", datetime(9999, 12, 30, tzinfo=UTC)) == datetime(9999, 12, 30, 18, tzinfo=UTC)


@given(st.text())
def test_an_expiry_lies_ahead(text: str) -> None:
    end = expiry(text + " today", NOW)
    assert end is not None
    assert end > NOW
