"""The command line: what it asks for, as overrides of one run or of many."""

import argparse
import itertools
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hydra
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra._internal.utils import get_args_parser
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from lcm.errors import LcmError
from pipelines.config.composition import composed_whole, explained, quoted
from pipelines.config.conf_folder import EVALUATE, conf_dir, config_name, groups
from pipelines.config.plugin_environment import environment_overrides

_RUN_DIR = "hydra.run.dir"


@dataclass(frozen=True, slots=True)
class Command:
    """A command line as Hydra reads it; options and overrides may come in any order."""

    options: tuple[str, ...]
    overrides: tuple[str, ...]
    is_multirun: bool
    is_run: bool
    """Asks for runs of the project's own configuration, rather than for help or for a look at the configuration."""
    pipeline: str = EVALUATE
    """Whose configuration it is."""


@dataclass(frozen=True, slots=True)
class Multirun:
    """What a command asks for that asks for many runs."""

    points: list[tuple[str, ...]]
    """The overrides of each run."""
    folder: Path | None
    """Where they are to be kept, if the command or a preset says so."""
    launcher: str
    """The `_target_` of the launcher."""
    sweep: str | None
    """The ready sweep that is chosen."""


def command(arguments: Sequence[str], pipeline: str = EVALUATE) -> Command:
    """Read a command line."""
    parser = get_args_parser()
    parser.exit_on_error = False
    try:
        read, unknown = parser.parse_known_intermixed_args(list(arguments))
    except argparse.ArgumentError as error:
        raise LcmError(f"{error}; `lcm {pipeline} --help` tells more") from error
    if unknown:
        raise LcmError(f"no such option: {unknown[0]!r}; `lcm {pipeline} --help` tells more")
    overrides = (*environment_overrides(read.overrides, pipeline), *read.overrides)
    elsewhere = (read.config_dir, read.config_name, read.config_path, read.experimental_rerun)
    return Command(
        options=tuple(argument for argument in arguments if argument not in read.overrides),
        overrides=overrides,
        is_multirun=read.multirun,
        is_run=not any((read.help, read.hydra_help, read.cfg, read.info, read.shell_completion, *elsewhere)),
        pipeline=pipeline,
    )


def run_task(task: Callable[[DictConfig], Any], asked: Command, folder: Path | None = None) -> None:
    """Hand the command to Hydra, which calls the task, or does what its options ask for instead."""
    failures: list[Exception] = []

    def attempt(config: DictConfig) -> None:
        try:
            task(config)
        except Exception as error:
            failures.append(error)

    pinned = [] if folder is None else [f"{_RUN_DIR}={quoted(str(folder))}"]
    sys.argv = [f"lcm {asked.pipeline}", *asked.options, *_for_hydra(asked), *pinned]
    # Hydra writes a line of its own about a task that raises.
    hydra.main(version_base="1.3", config_path=str(conf_dir()), config_name=config_name(asked.pipeline))(attempt)()
    if failures:
        raise failures[0]


def run_dir() -> Path:
    """Where Hydra wants this run's files."""
    return Path(HydraConfig.get().runtime.output_dir)


def _for_hydra(asked: Command) -> list[str]:
    """The overrides as Hydra can compose them before it looks at the points of a multirun.

    It then leaves out every choice that is swept, and would refuse a key that only the swept choices have. The points
    themselves are checked with the overrides as they were given.
    """
    if not asked.is_multirun:
        return list(asked.overrides)
    with explained(asked.overrides):
        parsed = OverridesParser.create().parse_overrides(list(asked.overrides))
    swept = {override.key_or_group for override in parsed if override.is_sweep_override()} & set(groups())
    return [
        f"++{line}" if not line.startswith(("+", "~")) and _is_key_of(line, swept) else line for line in asked.overrides
    ]


def _is_key_of(override: str, swept: set[str]) -> bool:
    return override.partition("=")[0].partition(".")[0] in swept and "." in override.partition("=")[0]


def overrides_of_points(asked: Command) -> list[tuple[str, ...]]:
    """The overrides of each run."""
    return multirun(asked).points if asked.is_multirun else [asked.overrides]


def presets(asked: Command) -> list[str]:
    """The overrides that decide how points are made and run: Hydra's own, and choices that all points share."""
    with explained(asked.overrides, asked.pipeline):
        parsed = OverridesParser.create().parse_overrides(list(asked.overrides))
    return [
        str(override.input_line)
        for override in parsed
        if override.key_or_group.startswith(("hydra.", "hydra/"))
        or (override.key_or_group in groups() and not override.is_sweep_override())
    ]


def multirun(asked: Command) -> Multirun:
    """Work out the points of a command, as Hydra's basic sweeper makes them."""
    whole = _composed_whole(presets(asked), RunMode.MULTIRUN, asked.pipeline)
    swept = [f"{key}={values}" for key, values in (whole.hydra.sweeper.get("params") or {}).items()]
    with explained(asked.overrides, asked.pipeline):
        parsed = OverridesParser.create().parse_overrides([*swept, *asked.overrides])
        for override in parsed:
            if override.is_delete() and override.value() is None:
                key = override.key_or_group
                raise LcmError(f"~{key}: a multirun cannot take a key out; write {key}=null where null is allowed")
        batches = BasicSweeper.split_arguments(parsed, max_batch_size=None)
    if any(override.key_or_group == "hydra.sweep.subdir" for override in parsed):
        raise LcmError("hydra.sweep.subdir: the folder of a point is named by what the point is; leave it out")
    is_named = any(override.key_or_group == "hydra.sweep.dir" for override in parsed)
    sweep: Any = OmegaConf.to_container(whole.hydra.sweep, resolve=False)
    return Multirun(
        points=[tuple(point) for batch in batches for point in batch],
        folder=Path(whole.hydra.sweep.dir) if is_named or "${now:" not in str(sweep["dir"]) else None,
        launcher=str(whole.hydra.launcher._target_),
        sweep=whole.hydra.runtime.choices.get("sweep"),
    )


def claimed_folder(asked: Command) -> Path:
    """Make the folder of a run: the one that the command names, else one that no other run has."""
    wanted = Path(_composed_whole(asked.overrides, pipeline=asked.pipeline).hydra.run.dir)
    is_named = any(override.startswith(f"{_RUN_DIR}=") for override in asked.overrides)
    try:
        return made_folder(wanted, may_exist=is_named)
    except OSError as error:
        raise LcmError(f"{_RUN_DIR}={wanted} cannot be made ({error.strerror}); name another") from error


def made_folder(wanted: Path, may_exist: bool = False) -> Path:
    """Make a folder, `wanted-2` where another process has `wanted`, and so on."""
    for n in itertools.count(1):
        folder = wanted if n == 1 else wanted.with_name(f"{wanted.name}-{n}")
        try:
            folder.mkdir(parents=True, exist_ok=may_exist)
        except FileExistsError:
            if may_exist:  # as a file
                raise
        else:
            break
    return folder


def _composed_whole(overrides: Sequence[str], mode: RunMode = RunMode.RUN, pipeline: str = EVALUATE) -> DictConfig:
    """Compose, Hydra's own settings included."""
    with explained(overrides, pipeline):
        return composed_whole(overrides, mode, pipeline)
