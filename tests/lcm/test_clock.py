"""Instants: what is read, and that their text sorts."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.clock import format_instant, parse_instant

NINE = datetime(2026, 1, 5, 9, tzinfo=UTC)
INSTANTS = st.datetimes(min_value=datetime(1970, 1, 2), max_value=datetime(2200, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001


@pytest.mark.parametrize(
    "value",
    ["2026-01-05T09:00:00Z", "2026-01-05 09:00:00", "2026-01-05T10:00:00+01:00", "2026-01-05T04:00-05", 1767603600,
     1767603600000, 1767603600.0, 1767603600000000, 1767603600000000000, "1767603600", "1767603600000",
     "2026-01-05 09:00:00 UTC"],
)  # fmt: skip
def test_one_instant_in_many_forms(value: str | float) -> None:
    assert parse_instant(value) == NINE


@given(INSTANTS.filter(lambda instant: instant.year > 2001), st.sampled_from([1, 10**3, 10**6, 10**9]), st.booleans())
def test_an_epoch_number_is_read_by_its_size(instant: datetime, units: int, is_text: bool) -> None:
    number = int(instant.timestamp()) * units
    assert parse_instant(str(number) if is_text else number) == instant.replace(microsecond=0)


def test_digits_are_no_date_of_the_middle_ages() -> None:
    assert parse_instant("1712010112345").year == 2024
    assert parse_instant("20260105") == NINE.replace(hour=0)


def test_a_date_alone_is_its_midnight() -> None:
    assert parse_instant("2026-01-05") == NINE.replace(hour=0)


@pytest.mark.parametrize("value", ["yesterday", "", True, 10**400, float("nan"), -(10**21), "202601050900", "12345"])
def test_what_is_no_instant_is_refused(value: str | float) -> None:
    with pytest.raises(ValueError, match=r"instant|years 1-9999"):
        parse_instant(value)


@given(INSTANTS, INSTANTS)
def test_text_order_is_time_order_and_text_reads_back(one: datetime, two: datetime) -> None:
    one, two = (i.replace(microsecond=i.microsecond // 1000 * 1000) for i in (one, two))
    assert parse_instant(format_instant(one)) == one
    assert (format_instant(one) < format_instant(two)) == (one < two)


def test_a_zone_is_needed_to_format() -> None:
    assert format_instant(NINE.astimezone(timezone(timedelta(hours=3)))) == "2026-01-05T09:00:00.000Z"
    with pytest.raises(ValueError, match="time zone"):
        format_instant(NINE.replace(tzinfo=None))
