"""Vectors of the configuration of lossless-claw 0.15.3 onto our table of its settings."""

from pathlib import Path
from typing import Any

from lcm.plugins.settings.tables import named_table, put
from tests.golden.originals.lossless_claw_settings import resolve


def config_resolution(case: dict[str, Any]) -> dict[str, Any]:
    resolved = resolve(case["env"], case["plugin"], home=Path("HOME"), table=named_table("lossless_claw@0.15"))
    nested: dict[str, Any] = {}
    for name, value in resolved.items():
        put(nested, name, value)
    return {**nested, "incremental_max_depth": resolved["sweep_max_depth"]}
