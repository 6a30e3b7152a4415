"""The form in which summary prompts show instants."""

from datetime import UTC, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

_NAMED_HOURS = {
    "AST": -4, "ADT": -3, "EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6,
    "PST": -8, "PDT": -7, "AKST": -9, "AKDT": -8, "HST": -10, "HDT": -9,
}  # fmt: skip
"""The zones that American English has short names for, and their hours from UTC: China's CST is another."""

_UNNAMED = frozenset(
    {
        "America/Dawson", "America/Whitehorse", "Canada/Yukon",
        "America/Hermosillo", "America/Mazatlan", "Mexico/BajaSur",
    }
)  # fmt: skip
"""They keep Mountain Time without its name."""

_ALEUTIAN = frozenset({"America/Adak", "America/Atka", "US/Aleutian"})

_UTC_NAMES = frozenset(
    {
        "UTC", "UCT", "Zulu", "Universal", "GMT", "GMT0", "GMT+0", "GMT-0",
        "Etc/UTC", "Etc/UCT", "Etc/Zulu", "Etc/Universal", "Etc/GMT",
    }
)  # fmt: skip
_MINUTE = timedelta(minutes=1)


def prompt_time(instant: datetime, timezone: str = "UTC") -> str:
    """`2026-01-05 09:07 EST`: minutes of a 24-hour clock, and the zone as American English shortens it.

    Zones without a short name there read `GMT+5:30`. A zone that there is not is UTC.

    Source: lossless-claw 0.6.3, which prints what JavaScript's Intl does.
    """
    zone = zone_named(timezone)
    if zone is None or zone.key in _UTC_NAMES:
        return f"{instant.astimezone(UTC).isoformat(' ')[:16]} UTC"
    local = instant.astimezone(zone)
    return f"{local:%Y-%m-%d %H:%M} {_zone_name(local, zone.key)}"


@cache
def zone_named(timezone: str) -> ZoneInfo | None:
    """The IANA zone of that name, in whichever case it is written; None where there is none."""
    try:
        return ZoneInfo(timezone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        same = (name for name in available_timezones() if name.lower() == timezone.lower())
        return next((ZoneInfo(name) for name in same), None)


def _zone_name(local: datetime, key: str) -> str:
    offset, name = local.utcoffset(), local.tzname()
    assert offset is not None and name is not None
    minutes = offset // _MINUTE
    if key in _ALEUTIAN:
        return f"HA{name[1:]}"
    if name in _NAMED_HOURS and _NAMED_HOURS[name] * 60 == minutes and key not in _UNNAMED:
        return name
    if not minutes:
        return "GMT+0" if name == "WET" or key == "Atlantic/Azores" else "GMT"
    hours, rest = divmod(abs(minutes), 60)
    return f"GMT{'-' if minutes < 0 else '+'}{hours}{f':{rest:02}' if rest else ''}"
