"""What tells a configuration from the default: the choices that differ, then the settings that are not as those choices
have them, and beside them what was asked for by name."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from omegaconf import DictConfig, OmegaConf

from eval.configuration import leaves
from pipelines.config.building import BESIDE, as_written
from pipelines.config.composition import composed_whole, parsed, without_hydra
from pipelines.config.conf_folder import groups
from pipelines.config.trust import SEARCH_PATH

_PRESETS = ("system", "experiment")
"""Choices that are made of others; what they choose and set is told beside them."""
_LEFT_OUT = (*BESIDE, "sweep", "hydra")


def asked_of(config: DictConfig, overrides: Sequence[str]) -> dict[str, Any]:
    """For the summary of a run: what was asked for, and what of its configuration is not the default.

    Args:
        config: composed of the overrides.
        overrides: as `lcm evaluate` takes them; those that change no number are not told.
    """
    return {
        "overrides": [one for one in overrides if _group(one) not in _LEFT_OUT],
        "changed": changed(config, overrides),
    }


def changed(config: DictConfig, overrides: Sequence[str]) -> dict[str, Any]:
    """Each group that has another choice than by default -> that choice; each setting by its dotted key -> its value.

    A setting is told where it is not as the choices alone, those of presets among them, have it. What an override names
    is told though it be the default, as by one point of a sweep.
    """
    choosing = tuple(one for one in overrides if _is_choice(one))
    usual, chosen = _composed(())[0], _composed(choosing)[0]
    asked = {one.lstrip("+~").partition("=")[0] for one in overrides}
    choices = {
        group: choice
        for group, choice in chosen.items()
        if (group in asked or (group in groups() and choice != usual.get(group)))  # others come along with a choice
        and _group(group) not in _LEFT_OUT
    }
    searched = [one for one in choosing if _group(one) == SEARCH_PATH]
    alone = {group: choice for group, choice in choices.items() if group not in _PRESETS}
    first = (*searched, *(f"{group}={choice}" for group, choice in alone.items() if group in usual))
    there = _composed(first)[0]  # among them slots of what was chosen, which are no addition
    rest = (f"{'' if group in there else '+'}{group}={choice}" for group, choice in alone.items() if group not in usual)
    plain = _composed((*first, *rest))[1]
    before = dict(leaves({key: node for key, node in plain.items() if key not in _LEFT_OUT}))
    now = leaves({key: node for key, node in as_written(config).items() if key not in _LEFT_OUT})
    missing = object()
    settings = {key: value for key, value in now if key in asked or before.get(key, missing) != value}
    return settings | choices


@lru_cache(maxsize=16)
def _composed(choosing: tuple[str, ...]) -> tuple[Mapping[str, str | None], Mapping[str, Any]]:
    """The choices that these make, and the configuration that is made of them."""
    whole = composed_whole(choosing)
    choices: Any = OmegaConf.to_container(whole.hydra.runtime.choices)
    return choices, as_written(without_hydra(whole))


def _group(override: str) -> str:
    """The group of an override, or its whole key where that is Hydra's own."""
    key = override.lstrip("+~").partition("=")[0]
    if key == SEARCH_PATH:
        return key
    return "hydra" if key.startswith(("hydra.", "hydra/")) else key.partition("@")[0].partition(".")[0]


def _is_choice(override: str) -> bool:
    key = override.lstrip("+~").partition("=")[0].partition("@")[0]
    return key == SEARCH_PATH or (key in groups() and not isinstance(parsed([override])[0].value(), (dict, list)))
