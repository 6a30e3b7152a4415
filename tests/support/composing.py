"""Configurations for tests: composed once a process, and handed out as copies."""

import pickle
from collections.abc import Sequence
from functools import cache
from typing import Any

from omegaconf import DictConfig, OmegaConf

from pipelines.config import composition, conf_folder
from tests.support.roots import groups_of

PRESET_GROUPS = ("system", "experiment", "sweep")
_PLAIN = ("system=hybrid",)
"""Around the parts that are tried: the plain mix of two scores, in which most parts have work."""


def composed(overrides: Sequence[str], pipeline: str = conf_folder.EVALUATE) -> DictConfig:
    """As `composition.composed` around `system=hybrid`, where no system is named; whoever gets it may change it.

    Choices of components are laid over a copy of the default configuration, in a hundredth of a composition's time:
    `tests/test_configuration.py` holds that a choice composes to its YAML.
    """
    choices = [override.split("=") for override in overrides]
    if not all(_is_component(*choice) for choice in choices):
        is_named = any(group in ("system", "experiment") for group, *_ in choices)
        return _copy((*(() if is_named else _plain(pipeline)), *overrides), pipeline)
    config = _copy(_plain(pipeline), pipeline)
    for group, choice in choices:
        OmegaConf.update(config, group, _parsed(f"{group}/{choice}"), merge=False)
    return config


def _plain(pipeline: str) -> tuple[str, ...]:
    return _PLAIN if "system" in groups_of(pipeline) else ()


def _is_component(group: str, *choice: str) -> bool:
    return group not in PRESET_GROUPS and choice[0] in conf_folder.groups().get(group, ())


def _copy(overrides: tuple[str, ...], pipeline: str) -> DictConfig:
    config: DictConfig = pickle.loads(_composed(overrides, pipeline))  # a quarter of a deep copy's time
    return config


@cache
def _composed(overrides: tuple[str, ...], pipeline: str) -> bytes:
    return pickle.dumps(composition.composed(overrides, pipeline))


@cache
def _parsed(yaml: str) -> dict[str, Any]:
    return inherited(yaml)


def plain(name: str) -> dict[str, Any]:
    """A YAML as it is written; whoever gets it may change it."""
    written: dict[str, Any] = pickle.loads(_read(name))
    return written


@cache
def _read(name: str) -> bytes:
    return pickle.dumps(OmegaConf.to_container(OmegaConf.load(conf_folder.conf_dir() / f"{name}.yaml")))


def inherited(name: str) -> dict[str, Any]:
    """A YAML of a component, laid over those that its defaults name: of its group, or of any as a part of it."""
    own = plain(name)
    group = name.partition("/")[0]
    below = []
    for base in own.pop("defaults", []):
        if isinstance(base, dict):  # {/GROUP@PATH: CHOICE}
            ((place, choice),) = base.items()
            other, _, path = place.removeprefix("/").partition("@")
            below.append(OmegaConf.create())
            OmegaConf.update(below[-1], path, inherited(f"{other}/{choice}"))
        elif base != "_self_":
            below.append(inherited(f"{group}/{base}"))
    return OmegaConf.to_container(OmegaConf.merge(*below, own))
