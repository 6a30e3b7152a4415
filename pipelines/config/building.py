"""Building: nodes of a configuration become components; what one refuses is told with its key."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import yaml
from omegaconf import DictConfig, OmegaConf
from omegaconf._utils import OmegaConfDumper

from eval.measures.measure import is_timing
from lcm.encoding import from_yaml
from lcm.errors import LcmError
from pipelines.config import unused
from pipelines.config.conf_folder import EVALUATE, conf_dir, groups, slots
from pipelines.config.explanation import explained, flat, written_as
from pipelines.config.instantiation import RefusedError, instantiated
from pipelines.config.setting_types import expected, fits, misfits
from pipelines.config.trust import component, refusals

BESIDE = ("tracking", "cache", "stages", "executor", "report")
"""What changes no number; nor do measures of time."""


class _Dumper(getattr(yaml, "CDumper", yaml.Dumper)):  # type: ignore[misc]
    """libyaml's, where it is there, with OmegaConf's rule for text that would be read back as something else."""


_Dumper.add_representer(str, OmegaConfDumper.str_representer)

Check = Callable[[dict[str, Any]], object]
"""Refuses what was built, by its keys, with an LcmError; it may change what is there."""


def class_of(group: str, choice: str) -> type:
    """The class of a choice, which need not be built to be asked."""
    node = from_yaml((conf_dir() / group / f"{choice}.yaml").read_text(encoding="utf-8"))
    made: type = component(node["_target_"])
    return made


def build(config: DictConfig, key: str) -> Any:
    """The object that the node `key` describes: the one place where configuration becomes objects.

    Raises:
        LcmError: naming every setting of the wrong type, or that its component refuses.
    """
    with explained():
        if config.get(key) is None:
            choices = groups().get(key)
            remedy = f"choose one of: {', '.join(choices)}" if choices else "it cannot be left out"
            raise LcmError(f"{key} is missing: {remedy}")
        plain = OmegaConf.to_container(config[key], resolve=True, throw_on_missing=True)
        if not_ours := [(path.rpartition("."), problem) for path, problem in refusals(plain, key)]:
            told = dict.fromkeys(
                f"{written_as(config, node)}.{name}: {problem}" for (node, _, name), problem in not_ours
            )
            raise LcmError("; ".join(told))
        found = [(path, written_as(config, path), problem) for path, problem in misfits(plain, key, component)]
        wrong = {written: problem.replace(path, written) for path, written, problem in found}
        if wrong:
            raise LcmError("; ".join(f"{path} {problem}" for path, problem in wrong.items()))
        try:
            return instantiated(plain, key, component)
        except RefusedError as error:
            told = dict.fromkeys(_refused(one, one.path, config) for one in error.each)
            raise LcmError("; ".join(told)) from error


def build_all(config: DictConfig, keys: Sequence[str], *checks: Check) -> dict[str, Any]:
    """Several objects, by their keys.

    Args:
        config: composed.
        keys: of what is built.
        checks: of what was built; where something was not, a check that looks for it is passed over.
    Raises:
        LcmError: naming what each of them refuses.
    """
    built: dict[str, Any] = {}
    refused: list[LcmError] = []
    for key in keys:
        try:
            built[key] = build(config, key)
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


def _refused(error: Exception, where: str, config: DictConfig) -> str:
    """What a component says of its settings, with the key at which they are written."""
    path = written_as(config, where)
    cause: BaseException = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    message = flat(cause)
    node = OmegaConf.select(config, path)
    setting = re.split(r"\W", message)[0]
    if not (isinstance(node, DictConfig) and setting in node):
        return f"{path}: {message}"
    return written_as(config, f"{path}.{setting}") + message.removeprefix(setting)


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


def refuse_unused(
    config: DictConfig, overrides: Sequence[str], pipeline: str = EVALUATE, roots: Collection[str] = ()
) -> None:
    """Refuse what was set and what nothing in the configuration takes up, and what is taken up and not there.

    Args:
        config: composed.
        overrides: what was asked for.
        pipeline: by whom.
        roots: what that pipeline builds, where that is not everything.
    Raises:
        LcmError: naming every such override and part.
    """
    plain = as_written(config)
    found = [*unused.unread(plain, overrides, pipeline, roots)] if roots else []
    found += unused.problems(plain, overrides, slots())
    if found:
        raise LcmError("; ".join(found))
