"""Settings of memory-lancedb-pro: `settings.yaml` beside this module, with the conversions that it names."""

from collections.abc import Callable, Mapping
from typing import Any

from lcm.plugins.lancedb_pro.admission_settings import PRESETS
from lcm.plugins.settings.kinds import at_most, is_stage, milliseconds, placeholder, seconds, stage, variable
from lcm.plugins.settings.table import ABSENT, InexpressibleError, at
from lcm.plugins.settings.table_file import Conversion, read_tables

_POOL = "the plugin's store gives no more than 20, whatever candidatePoolSize says"


def _of_preset(key: str) -> Callable[[Mapping[str, Any]], Any]:
    """A setting of admission is the preset's unless it is given."""
    _, name, *member = key.split(".")

    def default(document: Mapping[str, Any]) -> Any:
        preset = at(document, "admissionControl.preset")
        value = getattr(PRESETS["balanced" if preset is ABSENT else preset], name)
        return value[member[0]] if member else value

    return default


def _captures_assistant(roles: Any) -> bool:
    if set(roles) == {"user"}:
        return False
    if set(roles) == {"user", "assistant"}:
        return True
    raise InexpressibleError("captureAssistant chooses between [user] and [user, assistant]")


def _described(definitions: Mapping[str, Any]) -> dict[str, Any]:
    return {name: {} if text is None else {"description": text} for name, text in definitions.items()}


def _descriptions(definitions: Mapping[str, Any]) -> dict[str, Any]:
    return {name: entry.get("description") for name, entry in definitions.items()}


VERSIONS = read_tables(
    "lcm.plugins.lancedb_pro",
    {
        "captures_assistant": Conversion(
            _captures_assistant, lambda is_on: ["user", "assistant"] if is_on else ["user"]
        ),
        "descriptions": Conversion(_described, _descriptions),
        "milliseconds": Conversion(milliseconds, seconds),
        "neighbours": Conversion(lambda per_result: per_result or ABSENT),
        "pool_size": Conversion(at_most(20, _POOL), lambda size: min(size, 20)),
        "secret": Conversion(placeholder, variable),
        "stage": Conversion(is_stage, stage),
    },
    {"preset": _of_preset},
)
"""Everything that the plugin's manifest has, by its version."""
