"""What the folder of a point says of it besides its numbers: what it was asked for, and what it is called."""

import json
from pathlib import Path
from typing import Any

from lcm.derived import SUM, unsealed
from lcm.given import plain_bytes

POINT = "point.json"


def point_record(folder: Path) -> dict[str, Any]:
    """Its `overrides`, its `label` among the others and the `objectives` by which they are chosen, as far as it says
    so; empty where the folder holds no point, or the record is damaged."""
    path = folder / POINT
    try:
        told = json.loads(plain_bytes(path)) if path.is_file() else None
    except (OSError, RecursionError, ValueError):
        return {}
    return {} if not isinstance(told, dict) else unsealed(told, told.keys() - {SUM}) or {}
