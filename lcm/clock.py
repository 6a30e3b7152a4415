"""Instants: aware UTC datetimes in whole milliseconds; their one text form is sortable as text."""

import re
from datetime import UTC, datetime

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
"""The date of a message whose transcript names no time at all."""

END_OF_CLOCKS = datetime(2100, 1, 1, tzinfo=UTC)
"""A later instant is that of a clock that was not set, or of seconds read as milliseconds."""

_UNITS = ((10**17, 10**9), (10**14, 10**6), (10**11, 10**3))
"""From where on an epoch number has so many units a second: nano-, micro- and milliseconds; 10**11 is 1973 or 5138."""
_EPOCH_TEXT = re.compile(r"(\d{9,10}|\d{13})(\.\d+)?|\d{16}|\d{19}")
"""Numbers since 1973, and of smaller units since 2001: `202601050900` is none."""


class InstantError(ValueError):
    """What should be an instant is none."""


def parse_instant(value: str | float) -> datetime:
    """Read ISO 8601 text (UTC unless it names a zone) or an epoch number, which may be text too.

    The number's size tells whether it counts seconds, or milli-, micro- or nanoseconds.

    Raises:
        InstantError: if the value is neither.
    """
    if isinstance(value, bool):
        raise InstantError(f"an instant must be ISO 8601 text or an epoch number, got {value!r}")
    if isinstance(value, str) and _EPOCH_TEXT.fullmatch(value.strip()):
        value = float(value) if "." in value else int(value)
    if isinstance(value, int | float):
        try:
            seconds = value / next((units for start, units in _UNITS if abs(value) >= start), 1)
            return _to_milliseconds(datetime.fromtimestamp(seconds, UTC))
        except (OverflowError, OSError, ValueError) as err:
            raise InstantError(f"epoch number {str(value)[:40]} is outside the years 1-9999") from err
    try:
        instant = datetime.fromisoformat(value.strip().removesuffix(" UTC"))
        return _to_milliseconds(instant.replace(tzinfo=UTC) if instant.tzinfo is None else instant.astimezone(UTC))
    except (OverflowError, ValueError) as err:
        raise InstantError(f"an instant must be ISO 8601 text or an epoch number, got {value!r}") from err


def format_instant(instant: datetime) -> str:
    """`2026-01-05T09:00:00.000Z`: fixed width, so text order is time order."""
    if instant.tzinfo is None:
        raise ValueError(f"an instant needs a time zone, got {instant!r}")
    return instant.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _to_milliseconds(instant: datetime) -> datetime:
    return instant.replace(microsecond=instant.microsecond // 1000 * 1000)
