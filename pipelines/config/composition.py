"""Composition: overrides that were found right become configurations, by Hydra's Compose API; what many have in common
is composed once."""

import pickle
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import yaml
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.errors import HydraException, OverrideParseException
from omegaconf import DictConfig, OmegaConf, open_dict
from omegaconf.errors import MissingMandatoryValue, OmegaConfBaseException

from lcm import faults
from lcm.errors import LcmError
from pipelines.config import trust
from pipelines.config.check import SEARCH_PATH, checked
from pipelines.config.conf_folder import EVALUATE, conf_dir, config_name
from pipelines.config.overrides import key_of, no_override

CONFIGURATION_ERRORS = (HydraException, OmegaConfBaseException, yaml.YAMLError, ValueError)


def composed(overrides: Sequence[str], pipeline: str = EVALUATE) -> DictConfig:
    """Compose the configuration of a pipeline.

    Raises:
        WrongOverridesError: naming every override that is wrong, its value and the remedy.
        LcmError: if a YAML is wrong.
    """
    return without_hydra(composed_whole(overrides, pipeline))


def composed_whole(overrides: Sequence[str], pipeline: str = EVALUATE) -> DictConfig:
    """As `composed`, Hydra's own settings included, below `hydra`."""
    right = checked(overrides, pipeline)
    with explained():
        whole = _by_hydra(overrides, pipeline)
        usual = None
        if right.folders:
            hydras = [one.text for one in right.asked if one.is_hydras and one.key != SEARCH_PATH]
            usual = _hydra_alone(tuple(hydras), pipeline)
        trust.check_whole(whole, usual, [one.key for one in right.asked])
    return whole


def _by_hydra(overrides: Sequence[str], pipeline: str) -> DictConfig:
    trust.guard_resolvers()
    with _apart(), initialize_config_dir(version_base="1.3", config_dir=str(conf_dir())):
        try:
            whole = compose(config_name(pipeline), list(overrides), return_hydra_config=True)
        except AssertionError as error:  # OmegaConf's, where a key is added below one that is null
            added = next((one for one in reversed(overrides) if one.startswith("+")), overrides[-1])
            raise LcmError(
                f"{added}: what stands above that key holds no settings: set it first, or leave this out"
            ) from error
    named = list(map(key_of, overrides))
    with open_dict(whole):  # what a preset sets of a measure that is not chosen; what a command sets is refused
        for name in settings_of_no_measure(OmegaConf.to_container(whole)):  # type: ignore[arg-type]
            if not any(key.startswith(f"measures.{name}") for key in named):
                del whole.measures[name]
    return whole


@contextmanager
def _apart() -> Iterator[None]:
    """Let nothing of a composition be left, and one that goes on around this go on."""
    around = GlobalHydra.instance().hydra
    GlobalHydra.instance().clear()
    try:
        yield
    finally:
        GlobalHydra.instance().hydra = around


@lru_cache(maxsize=16)
def _hydra_alone(overrides: tuple[str, ...], pipeline: str) -> DictConfig:
    """Hydra's own settings as the package and the command have them."""
    whole: DictConfig = _by_hydra(overrides, pipeline).hydra
    return whole


def settings_of_no_measure(plain: Mapping[str, Any]) -> list[str]:
    """The names of measures of which there are settings and no more, for the choice of `measures` leaves them out."""
    measures = plain.get("measures") or {}
    return [name for name, node in measures.items() if isinstance(node, dict) and "_target_" not in node]


def without_hydra(whole: DictConfig) -> DictConfig:
    """A configuration without Hydra's own settings."""
    with open_dict(whole):
        del whole["hydra"]
    return whole


@contextmanager
def explained() -> Iterator[None]:
    """What goes wrong inside becomes an LcmError."""
    try:
        yield
    except CONFIGURATION_ERRORS as error:
        raise LcmError(explain(error)) from error


def explain(error: BaseException) -> str:
    """One line of what went wrong: of a configuration the key, and what to do."""
    if isinstance(error, LcmError):
        return str(error)
    if isinstance(error, OverrideParseException):
        return no_override(error)
    if (line := faults.told(error)) is not None:
        return line
    if isinstance(error, MissingMandatoryValue):
        return f"{error.full_key} has no value: give it one with {error.full_key}=VALUE"
    if isinstance(error, HydraException) and error.__cause__ is not None:
        return explain(error.__cause__)
    if isinstance(error, OmegaConfBaseException):
        refused: BaseException | None = error  # of a reference of ours, OmegaConf's own error is raised while handling
        while refused is not None and not isinstance(refused, LcmError):
            refused = refused.__context__
        message, key = flat(refused or error), str(error.full_key or "")
        return message if key in message else f"{key}: {message}"
    return flat(error)


def flat(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__


class CompositionCache:
    """The configurations of a command's points: what they choose is composed once, settings are laid over copies."""

    def __init__(self, pipeline: str = EVALUATE) -> None:
        self.pipeline = pipeline
        self._chosen: dict[tuple[str, ...], bytes] = {}

    def composed(self, overrides: Sequence[str]) -> DictConfig:
        """Equal to what `composed` gives, and raises as that does."""
        right = checked(overrides, self.pipeline)
        settings = [one for one in right.asked if not one.is_hydras and one not in right.choosing]
        if any(one.sign for one in settings):
            return composed(overrides, self.pipeline)
        config = self._choice(tuple(one.text for one in right.asked if one not in settings))
        with explained():
            for one in settings:
                OmegaConf.update(config, one.key, one.value, merge=True)
        return config

    def _choice(self, choosing: tuple[str, ...]) -> DictConfig:
        if choosing not in self._chosen:
            self._chosen[choosing] = pickle.dumps(composed(choosing, self.pipeline))
        config: DictConfig = pickle.loads(self._chosen[choosing])  # noqa: S301 - our own; a quarter of a deep copy's time
        return config
