"""Trust: what a configuration, whoever wrote it, may have called.

A `_target_` names a component: a class or factory that stands in a YAML of the package's own `conf`, and is defined in
the module that it names; or one of a package that the user trusts, by `trust=[mypkg]` on the command line or LCM_TRUST.
Nothing is imported before its name was looked at. YAML that is found by `hydra.searchpath` sets nothing of Hydra's own
but the values of a sweep: launchers, callbacks and loggers are called too.
"""

import os
import re
import sys
from collections.abc import Iterator, Sequence
from functools import cache, partial
from typing import Any
from urllib.parse import urlsplit

from omegaconf import DictConfig, OmegaConf

from eval.configuration import renamed
from lcm import consent
from lcm.encoding import from_yaml
from lcm.errors import LcmError
from pipelines.config.conf_folder import conf_dir, groups, nodes

TARGET = "_target_"
_USERS: dict[str, tuple[Any, ...]] = {
    "executor.address": (None,),
    "executor.runtime_env": (None, {}),
    "stages.directory": (None,),
    "tracking.uri": (None, "sqlite:///mlflow.db"),
}
"""Settings that bring code, take work elsewhere, or write and remove outside the current folder, with what does none of
that: a searched YAML holds nothing else. Of MLflow's servers the host is asked for besides: see `Mlflow`."""
_OF_A_RUN = ("runtime", "overrides", "searchpath", "sweeper.params", "job.override_dirname")
"""What of Hydra's own may differ between a configuration with searched YAML and one without."""
_VARIABLE = re.compile(r"LCM_(?!.*(KEY|TOKEN|SECRET|PASSWORD))\w+")
_RESOLVERS = ("oc.create", "oc.decode", "oc.deprecated", "oc.dict.keys", "oc.dict.values")
_REMEDY = "name one that conf/ offers"
_OF_OTHERS = "if you trust the package {0} to run code, say trust=[{0}] on the command line or LCM_TRUST={0}"


@cache
def offered() -> dict[str, frozenset[str]]:
    """Group -> what the YAML of `conf` name in it at the top; under "" what they name anywhere."""
    found: dict[str, set[str]] = {"": set()}
    for path in conf_dir().glob("**/*.yaml"):
        node = from_yaml(path.read_text(encoding="utf-8"))
        found[""] |= {target for _, target in _targets(node, "")}
        if path.parent != conf_dir() and isinstance(node, dict):
            found.setdefault(path.parent.name, set()).add(str(node.get(TARGET)))
    return {group: frozenset(targets - {"None"}) for group, targets in found.items()}


def component(target: Any) -> Any:
    """The class or factory that a `_target_` names, if it may be called."""
    is_text = isinstance(target, str)
    target = _today(target) if is_text else target
    if not is_text or not (target in offered()[""] or consent.is_trusted(target)):
        package = target.partition(".")[0] if is_text else ""
        is_others = package not in ("", *consent.OWN, *sys.stdlib_module_names)
        remedy = f"{_REMEDY}, or, {_OF_OTHERS.format(package)}" if is_others else _REMEDY
        raise LcmError(f"{_shown(target)} is no component: {remedy}")
    try:
        return consent.defined(target)
    except ValueError as error:
        raise LcmError(str(error)) from error


def _today(target: str) -> str:
    """The dotted name that a component has today, whose module was merged into another one of its package since a
    configuration was saved; any other name as it is."""
    package, *rest = target.rsplit(".", 2)
    if target in offered()[""] or "." not in package:
        return target
    alike = [one for one in offered()[""] if one.startswith(f"{package}.") and one.endswith(f".{rest[-1]}")]
    return alike[0] if len(alike) == 1 else target


def today(node: Any) -> Any:
    """Plain data, each component in it named as it is today."""
    return renamed(node, _today)


def refusals(node: Any, key: str) -> Iterator[tuple[str, str]]:
    """What a resolved node at a key would have called and may not: its key, and what is wrong with it."""
    for place, inner in nodes(node, key):
        if not isinstance(inner, dict):
            continue
        for name, value in inner.items():
            if isinstance(name, str) and re.fullmatch(r"_\w+_", name) and name != TARGET:
                told = f"is no setting, got {_shown(value)}: leave it out, settings go by name alone"
                yield f"{place}.{name}", told
        if TARGET not in inner:
            continue
        target, group = inner[TARGET], place.removeprefix("memory.")
        try:
            component(target)
        except LcmError as error:
            yield f"{place}.{TARGET}", str(error)
            continue
        choices = offered().get(group, frozenset())
        if choices and target in offered()[""] and target not in choices:
            remedy = f"choose one of {', '.join(groups()[group])}"
            yield f"{place}.{TARGET}", f"{target!r} is no choice of {group}: {remedy}"


def check_whole(whole: DictConfig, usual: DictConfig | None, named: Sequence[str]) -> None:
    """Refuse a composed configuration that says what the user alone may say, or has Hydra call what is no plugin.

    Args:
        whole: with Hydra's own settings.
        usual: Hydra's settings as they are without searched YAML; None where none was searched.
        named: keys that the command sets.
    """
    if "trust" in whole:
        value = OmegaConf.to_container(whole, resolve=False)["trust"]  # type: ignore[index, call-overload]
        raise LcmError(
            f"trust: no configuration says whom to trust, got {_shown(value)}: take it out, and say trust=[PACKAGE] on "
            f"the command line or {consent.TRUST}=PACKAGE in the environment"
        )
    own: Any = OmegaConf.to_container(whole.hydra, resolve=False)
    for key, target in _targets(own, "hydra"):
        known = ("hydra._internal.core_plugins.", "hydra_plugins.")
        if key not in ("hydra.launcher", "hydra.sweeper") or not str(target).startswith(known):
            raise LcmError(f"{key}: {_shown(target)} is no plugin of Hydra's: take it out")
    if usual is None:
        return
    for key, value in _differing(own, OmegaConf.to_container(usual, resolve=False), "hydra"):
        raise LcmError(
            f"{key}: no searched YAML sets what is Hydra's own, got {_shown(value)}: take it out, or say it on the "
            "command line"
        )
    for key, harmless in _USERS.items():
        value = OmegaConf.select(whole, key, throw_on_missing=False)
        value = OmegaConf.to_container(value) if OmegaConf.is_config(value) else value
        is_server = key == "tracking.uri" and bool(urlsplit(str(value)).hostname)
        is_said = any(one == key or one.startswith(f"{key}.") for one in named)
        if value not in harmless and not is_server and not is_said:
            raise LcmError(f"{key}: no searched YAML says so, got {_shown(value)}: say {key}=VALUE on the command line")


def check_settable(keys: Sequence[str], where: str) -> None:
    """Refuse keys that set what is Hydra's or the user's own, of overrides that a file holds, or a key of one."""
    for key in keys:
        bare = key.lstrip("+~")
        if bare == "trust" or bare.startswith(("hydra.", "hydra/", *_USERS)):
            raise LcmError(f"{where}: {key} is yours to say: take it out, or say it on the command line")


def _targets(node: Any, key: str) -> Iterator[tuple[str, Any]]:
    """Whatever a node names to be called, as Hydra or Python's logging do; with the key of what holds the name."""
    held = (one for one in nodes(node, key) if isinstance(one[1], dict))
    return ((place, inner[name]) for place, inner in held for name in (TARGET, "()") if name in inner)


def _differing(own: Any, usual: Any, key: str) -> Iterator[tuple[str, Any]]:
    if key.removeprefix("hydra.") in _OF_A_RUN:
        return
    if isinstance(own, dict) and isinstance(usual, dict):
        for name in sorted({*own, *usual}, key=str):  # what is copied from the environment before what comes of it
            yield from _differing(own.get(name), usual.get(name), f"{key}.{name}")
    elif own != usual:
        yield key, own


def _shown(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 120 else f"{text[:120]}..."


def _variable(name: str, *default: Any) -> Any:
    """`${oc.env:NAME}`: a setting of lcm's own, never what else the environment holds."""
    if not _VARIABLE.fullmatch(str(name)):
        raise LcmError(
            f"${{oc.env:{name}}}: a configuration reads no variable but lcm's own settings, LCM_...: write the value, "
            "or give it on the command line"
        )
    if str(name) not in os.environ and not default:
        raise LcmError(f"${{oc.env:{name}}}: the environment has no {name}: set it, or write {{oc.env:{name},DEFAULT}}")
    return os.environ.get(str(name), default[0] if default else None)


def _refuse(name: str, *_: Any) -> Any:
    raise LcmError(f"${{{name}:...}} is not worked out: write the value itself")


def guard_resolvers() -> None:
    """Leave of OmegaConf's resolvers those that a configuration here has a use for; whatever else would make a new
    configuration of text or of other keys is refused."""
    OmegaConf.register_new_resolver("oc.env", _variable, replace=True)
    for name in _RESOLVERS:
        OmegaConf.register_new_resolver(name, partial(_refuse, name), replace=True)
