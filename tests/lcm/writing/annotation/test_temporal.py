"""Until when a statement holds; the cues of the original are in tests/golden."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from lcm.writing.annotation import expiry, temporal_type

NOW = datetime(2026, 3, 1, 9, tzinfo=UTC)


def test_next_month_expires_without_being_of_the_moment_and_nothing_ends_beyond_the_calendar() -> None:
    assert (temporal_type("see you next month"), expiry("see you next month", NOW)) == (
        "static",
        NOW + timedelta(days=30),
    )
    assert expiry("next week", datetime(9999, 12, 30, tzinfo=UTC)) is None
    assert expiry("today", datetime(9999, 12, 30, tzinfo=UTC)) == datetime(9999, 12, 30, 18, tzinfo=UTC)


@given(st.text())
def test_an_expiry_lies_ahead(text: str) -> None:
    end = expiry(text + " today", NOW)
    assert end is not None
    assert end > NOW
