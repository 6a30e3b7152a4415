"""Instants as prompts show them. The names are the short English ones of CLDR."""

from datetime import UTC, datetime

import pytest

from lcm.compaction.lossless.prompt_time import prompt_time

WINTER = datetime(2026, 1, 5, 12, 30, tzinfo=UTC)
SUMMER = datetime(2026, 7, 5, 12, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("zone", "winter", "summer"),
    [
        ("UTC", "2026-01-05 12:30 UTC", "2026-07-05 12:30 UTC"),
        ("Etc/UTC", "2026-01-05 12:30 UTC", "2026-07-05 12:30 UTC"),
        ("America/Chicago", "2026-01-05 06:30 CST", "2026-07-05 07:30 CDT"),
        ("america/chicago", "2026-01-05 06:30 CST", "2026-07-05 07:30 CDT"),
        ("Pacific/Honolulu", "2026-01-05 02:30 HST", "2026-07-05 02:30 HST"),
        ("America/Anchorage", "2026-01-05 03:30 AKST", "2026-07-05 04:30 AKDT"),
        ("Asia/Shanghai", "2026-01-05 20:30 GMT+8", "2026-07-05 20:30 GMT+8"),
        ("America/Havana", "2026-01-05 07:30 GMT-5", "2026-07-05 08:30 GMT-4"),
        ("America/St_Johns", "2026-01-05 09:00 GMT-3:30", "2026-07-05 10:00 GMT-2:30"),
        ("Europe/London", "2026-01-05 12:30 GMT", "2026-07-05 13:30 GMT+1"),
        ("Asia/Kathmandu", "2026-01-05 18:15 GMT+5:45", "2026-07-05 18:15 GMT+5:45"),
        ("No/Where", "2026-01-05 12:30 UTC", "2026-07-05 12:30 UTC"),
        ("", "2026-01-05 12:30 UTC", "2026-07-05 12:30 UTC"),
        ("../UTC", "2026-01-05 12:30 UTC", "2026-07-05 12:30 UTC"),
    ],
)
def test_a_zone_has_its_american_name_or_its_distance(zone: str, winter: str, summer: str) -> None:
    assert (prompt_time(WINTER, zone), prompt_time(SUMMER, zone)) == (winter, summer)
