"""Origin: what the numbers of a point come from, and so whether they need to be found again."""

import hashlib
import importlib.util
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eval.cache.identity import libraries, source_digest
from eval.run_folder import config_hash

_OURS = ("lcm", "eval")
_ALWAYS = frozenset({"eval.experiment", "eval.run_folder"})


@dataclass(frozen=True, slots=True)
class Origin:
    """Two points of the same origin have the same numbers."""

    config_hash: str
    """Of all settings but where runs are logged."""
    dataset_digest: str
    code: str
    """Digest of the source of every component that the configuration names, and of the libraries under it."""


def origin_of(resolved: Mapping[str, Any], dataset_digest: str) -> Origin:
    """Args:
    resolved: the configuration, every interpolation worked out.
    """
    settings = {key: value for key, value in resolved.items() if key != "tracking"}
    modules = frozenset(target.rpartition(".")[0] for target in _targets(settings))
    ours = frozenset(module for module in modules if module.partition(".")[0] in _OURS)
    told = [source_digest(ours | _ALWAYS), str(libraries()), *(_source(module) for module in sorted(modules - ours))]
    code = hashlib.sha256("\x00".join(told).encode()).hexdigest()[:16]
    return Origin(config_hash(settings), dataset_digest, code)


def point_name(resolved: Mapping[str, Any]) -> str:
    """What the folder of a point is called: 12 hex digits of its settings, whatever stands beside it in a grid."""
    return config_hash({key: value for key, value in resolved.items() if key != "tracking"})[:12]


def _targets(node: Any) -> Iterator[str]:
    if isinstance(node, Mapping):
        if "_target_" in node:
            yield str(node["_target_"])
        for inner in node.values():
            yield from _targets(inner)
    elif isinstance(node, list):
        for inner in node:
            yield from _targets(inner)


def _source(module: str) -> str:
    """The source of a module from outside, by itself."""
    try:
        found = importlib.util.find_spec(module)
    except ImportError:  # of a target that is no module's
        return ""
    return "" if found is None or not found.has_location else Path(str(found.origin)).read_text(errors="replace")
