"""Plugins' defaults in our words, composed once: what the laws of tables are tried on."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from lcm.plugins.settings.tables import TABLES, VERSIONS, Table
from lcm.plugins.settings.translation import ImportedSettings
from pipelines.config.presets import RECALL, Choices, plugin_default, shipped_choices

KNOWN: Mapping[str, Table] = {
    name if table is TABLES[name] else f"{name}@{version}": table
    for name, tables in VERSIONS.items()
    for version, table in tables.items()
}
"""Every table: `NAME` of the version that is rebuilt here, `NAME@VERSION` of any other."""

MINIMAL: Mapping[str, Mapping[str, Any]] = {
    "lancedb_pro": {"embedding": {"apiKey": "${EMBED_KEY}"}},
    "lossless_claw": {},
    "libravdb": {},
}
"""The least that each plugin takes."""


@dataclass(frozen=True, slots=True)
class Plugin:
    table: Table
    base: dict[str, Any]
    """With references."""
    choices: Choices


@pytest.fixture(scope="session")
def plugins() -> dict[str, Plugin]:
    wanted: dict[str, list[str]] = {}
    for table in KNOWN.values():
        for group, known in table.choices.items():
            names = [*wanted.get(group, []), *(choice.name for choice in known)]
            wanted[group] = list(dict.fromkeys(names))
    choices = shipped_choices(wanted)
    recall = shipped_choices({RECALL: ["lossless_claw"]})[RECALL]["lossless_claw"]
    bases = {name: plugin_default(table, ImportedSettings({}, {}))[0] for name, table in KNOWN.items()}
    for name, base in bases.items():
        if name.startswith("lossless_claw"):
            base[RECALL] = recall
    return {name: Plugin(table, bases[name], choices) for name, table in KNOWN.items()}
