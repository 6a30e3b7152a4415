"""Vectors of the configuration of lossless-claw 0.15.3 onto our table of its settings."""

from pathlib import Path
from typing import Any

from lcm.plugins.lossless_claw.settings import NEWEST, resolve
from lcm.plugins.settings.table import put


def config_resolution(case: dict[str, Any]) -> dict[str, Any]:
    resolved = resolve(case["env"], case["plugin"], home=Path("HOME"), settings=NEWEST)
    nested: dict[str, Any] = {}
    for name, value in resolved.items():
        put(nested, name, value)
    return {**nested, "incremental_max_depth": resolved["sweep_max_depth"]}
