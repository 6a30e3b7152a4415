"""Configurations for tests: composed once a process, and handed out as copies."""

import pickle
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from omegaconf import DictConfig, OmegaConf

from pipelines.config import composition, conf_folder


def composed(overrides: Sequence[str], pipeline: str = conf_folder.EVALUATE) -> DictConfig:
    """As `composition.composed`; whoever gets it may change it."""
    config: DictConfig = pickle.loads(_composed(tuple(overrides), pipeline))  # a quarter of a deep copy's time
    return config


@cache
def _composed(overrides: tuple[str, ...], pipeline: str) -> bytes:
    return pickle.dumps(composition.composed(overrides, pipeline))


def chosen(choices: Mapping[str, str], pipeline: str = conf_folder.EVALUATE) -> DictConfig:
    """As `composed` of these choices, none of them a preset, in a hundredth of its time: each YAML laid over a copy.

    `tests/test_configuration.py` holds that a choice composes to its YAML.
    """
    config = composed((), pipeline)
    for group, choice in choices.items():
        OmegaConf.update(config, group, _parsed(f"{group}/{choice}"), merge=False)
    return config


@cache
def _parsed(yaml: str) -> dict[str, Any]:
    return inherited(yaml)


def plain(name: str) -> dict[str, Any]:
    """A YAML as it is written."""
    return OmegaConf.to_container(OmegaConf.load(conf_folder.conf_dir() / f"{name}.yaml"))


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
