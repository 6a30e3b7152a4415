"""When the work began that a summary tells of, and when it ended."""

import time
from collections.abc import Mapping
from typing import Any

BEGAN, ENDED = "began_unix_s", "ended_unix_s"
"""Among the seconds of a summary's timing."""


def with_times(summary: Mapping[str, Any], began_unix_s: float) -> dict[str, Any]:
    """The summary of work that ends now."""
    timing = summary.get("timing", {})
    seconds = {**timing.get("seconds", {}), BEGAN: began_unix_s, ENDED: time.time()}
    return {**summary, "timing": {**timing, "seconds": seconds}}


def times_ms(summary: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """When what a summary tells of began and ended, in milliseconds of Unix time; None where it does not tell."""
    seconds = summary.get("timing", {}).get("seconds", {})
    began, ended = (seconds.get(name) for name in (BEGAN, ENDED))
    return (None if began is None else int(1000 * began)), (None if ended is None else int(1000 * ended))
