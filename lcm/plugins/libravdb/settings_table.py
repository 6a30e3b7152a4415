"""Settings of libravdb memory: `settings.yaml` beside this module, with the conversions that it names."""

import math
from collections.abc import Callable

from lcm.plugins.libravdb import fusion_settings
from lcm.plugins.settings.table import InexpressibleError, same
from lcm.plugins.settings.table_file import Conversion, read_tables


def _depth(name: str) -> Callable[[float], int]:
    """`topK` decides how deep the source and both passes go."""
    of_all = fusion_settings.pool_sizes if name in fusion_settings.pool_sizes({}) else fusion_settings.two_pass
    return lambda top_k: int(of_all({"topK": top_k})[name])


def _roots(paths: list[str]) -> list[str]:
    if any(character in path for path in paths for character in "*?["):
        raise InexpressibleError("the plugin's roots are folders, no globs")
    return paths


_CONVERSIONS = {
    "depth": Conversion(
        same,
        {
            **{f"source.{pool}": _depth(pool) for pool in fusion_settings.pool_sizes({})},
            **{f"fusion.{name}": _depth(name) for name in ("k1", "k2")},
            "ranking.stages.recovery.session_k": lambda top_k: max(math.ceil(top_k), 4),
            "ranking.stages.recovery.user_k": lambda top_k: max(4 * math.ceil(top_k), 8),
        },
    ),
    "roots": Conversion(_roots),
}

_DEFAULTS = {
    "coarse": lambda _: lambda document: fusion_settings.two_pass(document)["k1"],
    "second": lambda _: lambda document: fusion_settings.two_pass(document)["k2"],
}

VERSIONS = read_tables("lcm.plugins.libravdb", _CONVERSIONS, _DEFAULTS)
"""Everything that the plugin's manifest has, by its version."""
