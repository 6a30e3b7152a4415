"""A configuration as plain data, composed now or saved with a run: its values, its hash, its components by name."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from lcm.consent import OWN


def config_hash(resolved: Mapping[str, Any]) -> str:
    """Tells two configurations apart, by content: 16 hex digits."""
    canonical = json.dumps(resolved, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]


def renamed(node: Any, name: Callable[[str], str]) -> Any:
    """Settings, plain data, with the class of each component named as a function of its name."""
    if not isinstance(node, Mapping):
        return [renamed(inner, name) for inner in node] if isinstance(node, list) else node
    return {
        key: name(inner) if key == "_target_" and isinstance(inner, str) else renamed(inner, name)
        for key, inner in node.items()
    }


def by_class(node: Any) -> Any:
    """Settings with each component of ours named by its class alone, whose module may have become part of another."""
    return renamed(node, lambda name: name.rpartition(".")[2] if name.partition(".")[0] in OWN else name)


def leaves(node: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Every value of nested settings by its dotted key; a map without entries is a value."""
    if isinstance(node, Mapping) and node:
        for key, value in node.items():
            yield from leaves(value, f"{prefix}.{key}" if prefix else str(key))
    else:
        yield prefix, node
