"""Instants as prompts show them, in zones that golden vectors lack. The names are the short English ones of CLDR."""

from datetime import UTC, datetime

from lcm.compaction.lossless.source_text import prompt_time

WINTER, SUMMER = datetime(2026, 1, 5, 12, 30, tzinfo=UTC), datetime(2026, 7, 5, 12, 30, tzinfo=UTC)
ZONES = {
    "america/chicago": ("2026-01-05 06:30 CST", "2026-07-05 07:30 CDT"),
    "Pacific/Honolulu": ("2026-01-05 02:30 HST", "2026-07-05 02:30 HST"),
    "Asia/Shanghai": ("2026-01-05 20:30 GMT+8", "2026-07-05 20:30 GMT+8"),
    "America/St_Johns": ("2026-01-05 09:00 GMT-3:30", "2026-07-05 10:00 GMT-2:30"),
    "Europe/London": ("2026-01-05 12:30 GMT", "2026-07-05 13:30 GMT+1"),
    **dict.fromkeys(["No/Where", "", "../UTC", "Etc/UTC"], ("2026-01-05 12:30 UTC", "2026-07-05 12:30 UTC")),
}


def test_a_zone_has_its_american_name_or_its_distance() -> None:
    assert {zone: (prompt_time(WINTER, zone), prompt_time(SUMMER, zone)) for zone in ZONES} == ZONES
