"""Instantiation: plain data becomes components, without the copies that Hydra makes at every node."""

from collections.abc import Callable
from typing import Any

_TARGET = "_target_"
_OURS = ("lcm.", "eval.")


class RefusedError(Exception):
    """A component did not take its settings; the cause says why."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path


def is_ours(node: Any) -> bool:
    """Whether all that the node describes are components of this project, called with their settings by name.

    Whatever else a `_target_` may name is for Hydra, which refuses to call what could do harm.
    """
    if isinstance(node, list):
        return all(map(is_ours, node))
    if not isinstance(node, dict):
        return True
    special = {name for name in node if isinstance(name, str) and name.startswith("_") and name.endswith("_")}
    return (
        special <= {_TARGET}
        and str(node.get(_TARGET, "lcm.")).startswith(_OURS)
        and all(is_ours(inner) for inner in node.values())
    )


def instantiated(node: Any, path: str, locate: Callable[[str], Any]) -> Any:
    """What a resolved node describes; a part that stands in two places is made twice.

    Args:
        node: plain data; a mapping with `_target_` describes a component.
        path: of the node in the configuration.
        locate: finds what a `_target_` names.
    Raises:
        RefusedError: from what the component raised.
    """
    if isinstance(node, list):
        return [instantiated(inner, f"{path}[{i}]", locate) for i, inner in enumerate(node)]
    if not isinstance(node, dict):
        return node
    settings = {name: instantiated(inner, f"{path}.{name}", locate) for name, inner in node.items() if name != _TARGET}
    if _TARGET not in node:
        return settings
    try:
        return locate(node[_TARGET])(**settings)
    except Exception as error:
        raise RefusedError(path) from error
