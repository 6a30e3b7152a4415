"""Composition: overrides become configurations, and many of one command without composing each from its files."""

import json
import os
import pickle
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

os.environ["HYDRA_FULL_ERROR"] = "1"  # errors come to us, not to Hydra's printer; read when Hydra is imported

from hydra import initialize_config_dir
from hydra._internal.callbacks import Callbacks
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, OverrideType
from hydra.core.plugins import Plugins
from hydra.types import HydraContext, RunMode
from omegaconf import DictConfig, OmegaConf, open_dict

from lcm.errors import LcmError
from pipelines.config import explanation
from pipelines.config.conf_folder import EVALUATE, conf_dir, config_name, groups
from pipelines.config.explanation import CONFIGURATION_ERRORS

_PRESETS = ("system", "experiment", "sweep")
"""Groups of which nothing need be chosen."""


def composed_whole(overrides: Sequence[str], mode: RunMode = RunMode.RUN, pipeline: str = EVALUATE) -> DictConfig:
    """Compose, Hydra's own settings included.

    Raises:
        HydraException or OmegaConfBaseException: as Hydra has it.
        LcmError: if a group is left without a choice.
    """
    for override in overrides:
        group, _, choice = override.partition("=")
        if choice in ("", "null") and group in groups() and group not in _PRESETS:
            raise LcmError(f"{override}: no such choice; choose one of: {', '.join(groups()[group])}")
    with _hydra_of_its_own():
        hydra = GlobalHydra.instance().hydra
        assert hydra is not None
        return hydra.compose_config(config_name(pipeline), list(overrides), run_mode=mode)


def without_hydra(whole: DictConfig) -> DictConfig:
    with open_dict(whole):
        del whole["hydra"]
    return whole


def composed(overrides: Sequence[str], pipeline: str = EVALUATE) -> DictConfig:
    """Compose the configuration without running anything.

    Raises:
        LcmError: naming the key, the value and the remedy.
    """
    with explained(overrides, pipeline):
        return without_hydra(composed_whole(overrides, pipeline=pipeline))


@contextmanager
def explained(overrides: Sequence[str] = (), pipeline: str = EVALUATE) -> Iterator[None]:
    """What goes wrong inside with these overrides becomes an LcmError."""

    def without(key: str) -> DictConfig:
        return chosen([override for override in overrides if override.partition("=")[0] != key], pipeline)

    with explanation.explained(without, pipeline):
        yield


def chosen(overrides: Sequence[str], pipeline: str) -> DictConfig:
    """The configuration with the choices that the overrides make, and nothing else of them."""
    choosing = {"hydra.searchpath", *groups()}
    return _composed_of(tuple(one for one in overrides if one.partition("=")[0] in choosing), pipeline)


@lru_cache(maxsize=16)
def _composed_of(chosen: tuple[str, ...], pipeline: str) -> DictConfig:
    """Once for all points of a sweep that have the same mistake."""
    parsed = OverridesParser.create().parse_overrides(list(chosen))
    return composed([str(override.input_line) for override in parsed if not override.is_sweep_override()], pipeline)


def quoted(value: Any) -> str:
    """A value as Hydra reads it back, letter by letter."""
    if isinstance(value, list):
        return f"[{','.join(map(quoted, value))}]"
    if not isinstance(value, str):
        return json.dumps(value)
    text = re.sub(r"(\\*)\$\{", lambda found: found[1] * 2 + r"\${", value)
    return '"' + re.sub(r'(\\*)("|$)', lambda found: found[1] * 2 + (r"\"" if found[2] else ""), text) + '"'


class CompositionCache:
    """The configurations of one command's points: what they choose is composed once, their settings laid over copies.

    Equal to composing each; whatever is out of the ordinary is composed from the files, so that errors are the usual
    ones too.
    """

    def __init__(self, pipeline: str = EVALUATE) -> None:
        self._pipeline = pipeline
        self._chosen: dict[tuple[str, ...], bytes] = {}
        self._parsed: dict[str, Override] = {}

    def composed(self, overrides: Sequence[str]) -> DictConfig:
        """Raises as `composed_whole`."""
        return self._laid_over(overrides) or without_hydra(composed_whole(overrides, pipeline=self._pipeline))

    def _laid_over(self, overrides: Sequence[str]) -> DictConfig | None:
        """None where a configuration cannot be made this way."""
        try:
            parsed = [self._parse(override) for override in overrides]
            choosing = tuple(str(override.input_line) for override in parsed if _is_choice(override))
            settings = [override for override in parsed if not _is_choice(override)]
            if not all(map(_is_setting, settings)):
                return None
            config = self._choice(choosing)
            if any(not _is_scalar_of(config, override.key_or_group) for override in settings):
                return None
            ConfigLoaderImpl._apply_overrides_to_config(settings, config)
        except CONFIGURATION_ERRORS:
            return None
        return config

    def _parse(self, override: str) -> Override:
        if override not in self._parsed:
            (self._parsed[override],) = OverridesParser.create().parse_overrides([override])
        return self._parsed[override]

    def _choice(self, choosing: tuple[str, ...]) -> DictConfig:
        if choosing not in self._chosen:
            whole = composed_whole(choosing, pipeline=self._pipeline)
            self._chosen[choosing] = pickle.dumps(without_hydra(whole))
        config: DictConfig = pickle.loads(self._chosen[choosing])  # noqa: S301  # our own; a quarter of a deep copy's time
        return config


def _is_choice(override: Override) -> bool:
    """Whether it decides which files are taken, and for Hydra's own settings: they change nothing of ours."""
    key = override.key_or_group
    return key in groups() or "/" in key or key.startswith("hydra.")


def _is_setting(override: Override) -> bool:
    return override.type == OverrideType.CHANGE and override.package is None and not override.is_sweep_override()


def _is_scalar_of(config: DictConfig, key: str) -> bool:
    """Whether a key has a dot, or is no group of the user's own that is merely unknown here."""
    return "." in key or (not OmegaConf.is_config(config._get_node(key)) and config._get_node(key) is not None)


def launch(
    task: Callable[[DictConfig], Any], settings: Sequence[str], jobs: Sequence[Sequence[str]], pipeline: str = EVALUATE
) -> None:
    """Hand jobs to the launcher that `hydra/launcher` names; returns when all are done.

    Args:
        task: called once a job, maybe in another process: importable there by its name.
        settings: overrides of Hydra's own, `hydra/launcher` and `hydra.sweep.dir` among them.
        jobs: overrides of each; `hydra.sweep.subdir` names its folder below that one.
    Raises:
        The first error that is the launcher's own, or a job's.
    """
    with _hydra_of_its_own():
        hydra = GlobalHydra.instance().hydra
        assert hydra is not None
        config = hydra.compose_config(config_name(pipeline), list(settings), run_mode=RunMode.MULTIRUN)
        context = HydraContext(config_loader=hydra.config_loader, callbacks=Callbacks(config))
        launcher = Plugins.instance().instantiate_launcher(hydra_context=context, task_function=task, config=config)
        for returned in launcher.launch([list(job) for job in jobs], initial_job_idx=0):
            _ = returned.return_value  # raises what the job raised


@contextmanager
def _hydra_of_its_own() -> Iterator[None]:
    """Hydra keeps one global instance, which may be at work on a run that has just failed."""
    at_work = GlobalHydra.instance().hydra
    GlobalHydra.instance().hydra = None
    try:
        with initialize_config_dir(version_base="1.3", config_dir=str(conf_dir())):
            yield
    finally:
        GlobalHydra.instance().hydra = at_work
