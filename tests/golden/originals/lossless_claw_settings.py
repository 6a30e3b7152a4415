"""What lossless-claw works with, its configuration read as leniently as it reads it.

An environment variable wins over the plugin's configuration, and that over the default.

Source: lossless-claw 0.6.3 and 0.15.3.
"""

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lcm.javascript import is_finite_number, trim
from lcm.memory.session import tokens_by_leaf_chunk
from lcm.plugins.settings.environment import from_environment, is_usable, listed, provider, whole_number
from lcm.plugins.settings.tables import ABSENT, TABLES, Row, Table, at

_NAMES = {
    "dbPath": "database_path",
    "largeFileThresholdTokens": "large_file_token_threshold",
    "cacheAwareCompaction.cacheTTLSeconds": "cache_aware_compaction.cache_ttl_seconds",
}
"""As the resolved configuration calls a setting, where that is not its name in small letters."""
_OLDER = {
    "dbPath": "databasePath",
    "largeFileThresholdTokens": "largeFileTokenThreshold",
    "sweepMaxDepth": "incrementalMaxDepth",
}
_CUT = ("hotCachePressureFactor", "hotCacheBudgetHeadroomRatio", "criticalBudgetPressureRatio")
"""What is used of these lies between the bounds of the manifest."""
_HUMP = re.compile(r"(?<!^)(?<!\.)(?=[A-Z])")
_TABLE = TABLES["lossless_claw"]


def resolve(
    env: Mapping[str, str],
    plugin: Mapping[str, Any],
    home: Path | None = None,
    timezone: str = "UTC",
    table: Table = _TABLE,
) -> dict[str, Any]:
    """What the plugin works with.

    Args:
        env: environment variables.
        plugin: its configuration, under its own key names; whatever cannot be used counts as missing.
        home: where the default database lies; None: the user's.
        timezone: the machine's.
        table: of a version.
    Returns:
        A value for each setting by its dotted name; one without a default only where it was given.
    """
    resolved = {}
    for row in (row for row in table.rows if row.keys or (row.no_key and row.path not in _OLDER.values())):
        given = from_environment(row, env)
        if given is None:
            given = _from_plugin(row, plugin)
        if row.path == "timezone" and given is None:
            given = timezone
        name = _NAMES.get(row.path, _HUMP.sub("_", row.path).lower())
        resolved[name] = _used(row, _default(row) if given is None else given)
    state = trim(env.get("OPENCLAW_STATE_DIR", "")) if table is not _TABLE else ""
    folder = Path(state) if state else (home or Path.home()) / ".openclaw"
    for name, file in (("database_path", "lcm.db"), ("large_files_dir", "lcm-files")):
        if name in resolved and resolved[name] is None:
            resolved[name] = str(folder / file)
    chunk = resolved["leaf_chunk_tokens"]
    if "dynamic_leaf_chunk_tokens.max" in resolved:
        most = resolved["dynamic_leaf_chunk_tokens.max"]
        resolved["dynamic_leaf_chunk_tokens.max"] = max(chunk, math.floor(2 * chunk) if most is None else most)
    if resolved["bootstrap_max_tokens"] is None:
        resolved["bootstrap_max_tokens"] = tokens_by_leaf_chunk(chunk)
    return {name: value for name, value in resolved.items() if value is not None}


def _default(row: Row) -> Any:
    default = row.default_in({})
    return None if default is ABSENT or row.path == "bootstrapMaxTokens" else default


def _used(row: Row, value: Any) -> Any:
    """What the plugin works with where this is given."""
    if row.path == "hostFallbackMode" and value not in ("error", "capture-only"):
        return _default(row)
    if not is_finite_number(value):
        return value
    if row.outside == "raised":
        return max(row.schema["minimum"], math.floor(value))
    if row.path.endswith(_CUT):
        return min(row.schema.get("maximum", math.inf), max(row.schema["minimum"], value))
    return value


def _from_plugin(row: Row, plugin: Mapping[str, Any]) -> Any:
    found = (at(plugin, path) for path in (row.path, _OLDER.get(row.path)) if path)
    values = (_from_json(row, None if value is ABSENT else value) for value in found)
    return next((value for value in values if value is not None and is_usable(row, value)), None)


def _from_json(row: Row, value: object) -> Any:
    kind = row.schema["type"]
    if row.from_text == "providers":
        items = value if isinstance(value, list) else []
        named = [provider(one.get("provider"), one.get("model")) for one in items if isinstance(one, dict)]
        return [one for one in named if one] or None
    if kind == "boolean":
        is_text = isinstance(value, str)
        return {"true": True, "false": False}.get(str(value)) if is_text else value if isinstance(value, bool) else None
    if kind == "array" and row.schema["items"]["type"] == "object":
        return value if isinstance(value, list) else None
    if kind == "array":
        return listed(value) if isinstance(value, str) else _texts(value) if isinstance(value, list) else None
    if kind in ("number", "integer"):
        return value if is_finite_number(value) else whole_number(value) if isinstance(value, str) else None
    text = trim(value) or None if isinstance(value, str) else None
    return text.lower() if text and "enum" in row.schema and not row.from_text else text


def _texts(items: list[Any]) -> list[str]:
    return [trim(item) for item in items if isinstance(item, str) and trim(item)]
