"""Which tuned settings get lost on the way into a plugin: what cannot be told, and what it ignores."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lcm.plugins.settings.tables import Table
from lcm.plugins.settings.translation import differences, reachable
from pipelines.config.presets import restored_choices
from pipelines.steps.plugin_reach import is_of


@dataclass(frozen=True, slots=True)
class TunedSetting:
    """A key at which tuned and default configuration differ, and what became of it."""

    key: str
    default: Any
    tuned: Any
    lost: str = ""
    """Why it does not hold there; empty: the memory is told of it."""


def tuned_settings(
    default: Mapping[str, Any],
    tuned: Mapping[str, Any],
    table: Table,
    not_expressible: Sequence[Mapping[str, Any]],
    ignored: Sequence[str],
) -> list[TunedSetting]:
    """What was tuned, key by key.

    Args:
        default, tuned: configurations, every reference worked out.
        not_expressible: of the tuned one, as its export tells.
        ignored: paths of the plugin's settings that the memory says it ignores.
    """
    before, after = (restored_choices(dict(one))[0].config for one in (default, tuned))
    found = []
    for group in reachable(after):
        for one in differences(group, after[group], before.get(group)):
            lost = next(_reasons(one.key, table, not_expressible, ignored), "")
            found.append(TunedSetting(one.key, one.theirs, one.ours, lost))
    return found


def _reasons(
    key: str, table: Table, not_expressible: Sequence[Mapping[str, Any]], ignored: Sequence[str]
) -> Iterator[str]:
    for entry in not_expressible:
        if any(is_of(key, other) for other in str(entry["key"]).split(", ")):
            yield f"cannot be told: {entry['reason']}"
    for path in ignored:
        for row in table.rows:
            if is_of(row.path, path) and any(is_of(key, one.path) for one in row.keys):
                yield f"the memory ignores {row.path}"
