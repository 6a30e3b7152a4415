"""Instantiation: plain data becomes components, by their settings' names alone."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

_TARGET = "_target_"


class RefusedError(Exception):
    """A component did not take its settings, or several did not; the cause of each says why."""

    def __init__(self, path: str, inner: Sequence["RefusedError"] = ()) -> None:
        super().__init__(path)
        self.path = path
        self.each: Sequence[RefusedError] = inner or [self]


def instantiated(node: Any, path: str, locate: Callable[[str], Any]) -> Any:
    """What a resolved node describes; a part that stands in two places is made twice.

    Args:
        node: plain data; a mapping with `_target_` describes a component.
        path: of the node in the configuration.
        locate: finds what a `_target_` names.
    Raises:
        RefusedError: from what the component raised, or several of its parts.
    """
    if isinstance(node, list):
        return list(_all_of({f"{path}[{i}]": inner for i, inner in enumerate(node)}, path, locate))
    if not isinstance(node, dict):
        return node
    names = [name for name in node if name != _TARGET]
    inner = _all_of({f"{path}.{name}": node[name] for name in names}, path, locate)
    settings = dict(zip(names, inner, strict=True))
    if _TARGET not in node:
        return settings
    try:
        return locate(node[_TARGET])(**settings)
    except Exception as error:
        raise RefusedError(path) from error


def _all_of(nodes: Mapping[str, Any], path: str, locate: Callable[[str], Any]) -> list[Any]:
    """What each node describes; where several are refused, all of them are told."""
    made: list[Any] = []
    refused: list[RefusedError] = []
    for place, node in nodes.items():
        try:
            made.append(instantiated(node, place, locate))
        except RefusedError as error:
            refused += error.each
    if refused:
        raise refused[0] if len(refused) == 1 else RefusedError(path, refused)
    return made
