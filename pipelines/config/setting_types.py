"""Whether settings have the types that their components declare.

Components check ranges. A text where a number belongs would fail there in Python's words, late, or not at all.
"""

import inspect
import json
import math
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

_SCALARS: dict[Any, tuple[str, Callable[[Any], bool]]] = {
    bool: ("true or false", lambda value: isinstance(value, bool)),
    int: ("a whole number", lambda value: isinstance(value, int) and not isinstance(value, bool)),
    float: (
        "a number",
        lambda value: isinstance(value, (int, float)) and not isinstance(value, bool) and not math.isnan(value),
    ),
    str: ("text", lambda value: isinstance(value, str)),
    type(None): ("null", lambda value: value is None),
}


def misfits(node: Any, key: str, locate: Callable[[str], Any]) -> Iterator[tuple[str, str]]:
    """Every setting of a resolved node that its component cannot take: its key, and what is wrong with it.

    Args:
        node: plain data; a mapping with `_target_` describes a component.
        key: of the node itself.
        locate: finds what a `_target_` names.
    """
    if isinstance(node, Mapping):
        hints = _hints(locate(node["_target_"])) if "_target_" in node else {}
        for name, value in node.items():
            if str(name).startswith("_"):
                continue
            path = f"{key}.{name}"
            if hints and name not in hints:
                yield path, f"is no setting; choose from: {', '.join(sorted(hints))}"
            elif value is None and _is_component(hints.get(name)):
                yield path, "must be a component, got null: choose one, or set what holds it to null"
            elif not fits(value, hints.get(name, Any)):
                remedy = _bracketed(hints[name], path, value)
                yield path, f"must be {expected(hints[name])}, got {_shown(value)}{remedy}"
            else:
                yield from misfits(value, path, locate)
    elif isinstance(node, list):
        for i, value in enumerate(node):
            yield from misfits(value, f"{key}.{i}", locate)


def fits(value: Any, annotation: Any) -> bool:
    """Whether the value is what the annotation says; true as well where only the component itself can tell."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation in _SCALARS:
        return _SCALARS[annotation][1](value)
    if origin is Literal:
        return any(value == choice and type(value) is type(choice) for choice in arguments)
    if origin in (Union, types.UnionType):
        return any(fits(value, choice) for choice in arguments)
    if _is(origin, Mapping):
        return isinstance(value, Mapping) and (
            "_target_" in value or all(fits(v, arguments[1]) for v in value.values())
        )
    if _is(origin, Sequence):
        return isinstance(value, list) and all(fits(inner, arguments[0]) for inner in value)
    return True


def expected(annotation: Any) -> str:
    """What a value should be, in words."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation in _SCALARS:
        return _SCALARS[annotation][0]
    if origin is Literal:
        return f"one of: {', '.join(sorted(map(str, arguments)))}"
    if origin in (Union, types.UnionType):
        return " or ".join(expected(choice) for choice in arguments)
    if _is(origin, Mapping):
        return f"a map to {expected(arguments[1])}"
    if _is(origin, Sequence):
        return f"a list, each {expected(arguments[0])}"
    return "a component"


def _bracketed(annotation: Any, path: str, value: Any) -> str:
    """How a list is written, where its only value was given, or a command as a shell would read it."""
    is_list = _is(get_origin(annotation), Sequence) and fits([value], annotation)
    if is_list and path.endswith(".command") and isinstance(value, str):
        return f"; write its words as {path}=[{','.join(value.split())}]"
    return f"; a list of one is {path}=[{value}]" if is_list else ""


def _is_component(annotation: Any) -> bool:
    """Whether a component must stand there: other classes and what may be null are declared as such."""
    return inspect.isclass(annotation) and annotation not in _SCALARS and get_origin(annotation) is None


def _hints(target: Any) -> dict[str, Any]:
    """Parameter -> annotation; empty where the target does not name them all."""
    hints = get_type_hints(target.__init__ if inspect.isclass(target) and not is_dataclass(target) else target)
    if is_dataclass(target):
        return {field.name: hints[field.name] for field in fields(target) if field.init}
    parameters = inspect.signature(target).parameters.values()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return {}
    return {parameter.name: hints.get(parameter.name, Any) for parameter in parameters}


def _is(origin: Any, kind: type) -> bool:
    return inspect.isclass(origin) and issubclass(origin, kind)


def _shown(value: Any) -> str:
    """As it is written in YAML, text in quotes."""
    return json.dumps(value) if value is None or isinstance(value, bool) else repr(value)
