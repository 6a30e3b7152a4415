"""Building: nodes of a configuration become components; what one refuses is told with its key.

Components check ranges. Types are checked here: a text where a number belongs would fail there in Python's words, late,
or not at all.
"""

import inspect
import json
import math
import re
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import yaml
from omegaconf import DictConfig, OmegaConf
from omegaconf._utils import OmegaConfDumper
from omegaconf.errors import OmegaConfBaseException

from eval.measures.measure import is_timing
from lcm.errors import LcmError
from pipelines.config.composition import explained, flat
from pipelines.config.conf_folder import groups, shipped, written_as
from pipelines.config.trust import TARGET, component, refusals

BESIDE = ("tracking", "cache", "stages", "executor", "report")
"""What changes no number; nor do measures of time."""


class _Dumper(getattr(yaml, "CDumper", yaml.Dumper)):  # type: ignore[misc]
    """libyaml's, where it is there, with OmegaConf's rule for text that would be read back as something else."""


_Dumper.add_representer(str, OmegaConfDumper.str_representer)

PartsCheck = Callable[[dict[str, Any]], object]
"""Refuses what was built, by its keys, with an LcmError; it may change what is there."""


def class_of(group: str, choice: str) -> type:
    """The class of a choice, which need not be built to be asked."""
    made: type = component(shipped().node(group, choice)[TARGET])
    return made


def build(config: DictConfig, key: str, whole: Mapping[str, Any] | None = None) -> Any:
    """The object that the node `key` describes: the one place where configuration becomes objects; `whole` is the
    configuration as `worked_out` gives it, where more than one is built."""
    with explained():
        if config.get(key) is None:
            choices = groups().get(key)
            remedy = f"choose one of: {', '.join(choices)}" if choices else "it cannot be left out"
            raise LcmError(f"{key} is missing: {remedy}")
        if whole is None:
            whole = {key: OmegaConf.to_container(config[key], resolve=True, throw_on_missing=True)}
        plain = whole[key]
        if told := list(_told(config, plain, key)):
            raise LcmError("; ".join(dict.fromkeys(told)))
        try:
            return instantiated(plain, key, component)
        except RefusedError as error:
            told = [_refused(one, one.path, config) for one in error.each]
            raise LcmError("; ".join(dict.fromkeys(told))) from error


def _told(config: DictConfig, plain: Any, key: str) -> Iterator[str]:
    """What a resolved node names that may not be called, or else settings of another type than their components'."""
    refused = list(refusals(plain, key))
    for path, problem in refused:
        node, _, name = path.rpartition(".")
        yield f"{_written(config, node)}.{name}: {problem}"
    if refused:
        return
    for path, problem in misfits(plain, key, component):
        written = _written(config, path)
        yield f"{written} {problem.replace(path, written)}"


def _written(config: DictConfig, path: str) -> str:
    return written_as(as_written(config), path)


def build_all(
    config: DictConfig, keys: Sequence[str], *checks: PartsCheck, whole: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Several objects, by their keys; whatever they refuse is told at once. Where something was not built, a check that
    looks for it is passed over; `whole` is the configuration as `worked_out` gives it, where that is known."""
    built: dict[str, Any] = {}
    refused: list[LcmError] = []
    whole = worked_out(config) if whole is None else whole
    for key in keys:
        try:
            built[key] = build(config, key, whole)
        except LcmError as error:
            refused.append(error)
    for check in checks:
        try:
            check(built)
        except LcmError as error:
            refused.append(error)
        except KeyError:
            if not refused:
                raise
    if refused:
        told = dict.fromkeys(str(error) for error in refused)
        raise LcmError("; ".join(told)) from refused[0]
    return built


def worked_out(config: DictConfig) -> dict[str, Any] | None:
    """The configuration with every reference worked out, once for all that is built of it; None where one leads
    nowhere, which is told of the part that has it."""
    try:
        return OmegaConf.to_container(config, resolve=True, throw_on_missing=True)  # type: ignore[return-value]
    except OmegaConfBaseException:
        return None


def _refused(error: Exception, where: str, config: DictConfig) -> str:
    """What a component says of its settings, with the key at which they are written."""
    path = _written(config, where)
    cause: BaseException = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    message = flat(cause)
    node = OmegaConf.select(config, path)
    setting = re.split(r"\W", message)[0]
    if not (isinstance(node, DictConfig) and setting in node):
        return f"{path}: {message}"
    return _written(config, f"{path}.{setting}") + message.removeprefix(setting)


def flag(config: DictConfig, key: str) -> bool:
    """A setting that is true or false."""
    value = config[key]
    if not fits(value, bool):
        raise LcmError(f"{key} must be {expected(bool)}, got {value!r}")
    return bool(value)


def resolved(config: DictConfig) -> dict[str, Any]:
    """The configuration with every interpolation worked out, as plain data."""
    return OmegaConf.to_container(config, resolve=True)  # type: ignore[return-value]


def identity(plain: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a resolved configuration that the numbers depend on."""
    settings = {key: value for key, value in plain.items() if key not in BESIDE}
    measures = {name: node for name, node in settings["measures"].items() if not is_timing(node)}
    return {**settings, "measures": measures}


def as_written(config: DictConfig) -> dict[str, Any]:
    """The configuration as plain data, its references as they are written."""
    return OmegaConf.to_container(config)  # type: ignore[return-value]


def resolved_text(plain: Mapping[str, Any]) -> str:
    """A resolved configuration as YAML, letter by letter what `OmegaConf.to_yaml` writes, in a tenth of its time."""
    text: str = yaml.dump(plain, default_flow_style=False, allow_unicode=True, sort_keys=False, Dumper=_Dumper)
    return text


class RefusedError(Exception):
    """A component did not take its settings, or several did not; the cause of each says why."""

    def __init__(self, path: str, inner: Sequence["RefusedError"] = ()) -> None:
        super().__init__(path)
        self.path = path
        self.each: Sequence[RefusedError] = inner or [self]


def instantiated(node: Any, path: str, locate: Callable[[str], Any]) -> Any:
    """What a resolved node describes; a part that stands in two places is made twice. `locate` finds what a `_target_`
    names."""
    if isinstance(node, list):
        return list(_all_of({f"{path}[{i}]": inner for i, inner in enumerate(node)}, path, locate))
    if not isinstance(node, dict):
        return node
    names = [name for name in node if name != TARGET]
    inner = _all_of({f"{path}.{name}": node[name] for name in names}, path, locate)
    settings = dict(zip(names, inner, strict=True))
    if TARGET not in node:
        return settings
    try:
        return locate(node[TARGET])(**settings)
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
    """Every setting of a resolved node at a key that its component cannot take: its key, and what is wrong with it."""
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


@cache
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
