"""Static or dynamic, and until when; the vectors of the original are in tests/golden."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from lcm.writing.annotation.temporal import expiry, temporal_type

NOW = datetime(2026, 3, 1, 9, tzinfo=UTC)
DYNAMIC = ("I am currently in Oslo", "TODAY it rains", "我最近很忙", "my favorite song is currently this one")
STATIC = ("", "I live in Oslo", "the todays of old", "a lateral move", "see you next month")
HOURS = {
    "the day after tomorrow": 48,
    "下周day after tomorrows": 48,
    "tomorrow or next week": 24,
    "下周开会": 7 * 24,
    "this week and today": 3 * 24,
    "next month": 30 * 24,
    "这个月": 15 * 24,
    "今晚": 12,
    "Today": 18,
}
ENDLESS = ("recently", "yesterday", "last week", "this morning", "I live in Oslo")


def test_a_cue_of_the_moment_makes_a_text_dynamic() -> None:
    assert {text for text in (*DYNAMIC, *STATIC) if temporal_type(text) == "dynamic"} == set(DYNAMIC)


def test_the_first_cue_of_the_list_says_when_a_text_is_over_and_others_never() -> None:
    assert {text: expiry(text, NOW) for text in HOURS} == {
        text: NOW + timedelta(hours=hours) for text, hours in HOURS.items()
    }
    assert [text for text in ENDLESS if expiry(text, NOW)] == []


def test_an_end_beyond_the_calendar_is_none() -> None:
    assert expiry("next week", datetime(9999, 12, 30, tzinfo=UTC)) is None
    assert expiry("today", datetime(9999, 12, 30, tzinfo=UTC)) == datetime(9999, 12, 30, 18, tzinfo=UTC)


@given(st.text())
def test_an_expiry_lies_ahead(text: str) -> None:
    end = expiry(text + " today", NOW)
    assert end is not None
    assert end > NOW
