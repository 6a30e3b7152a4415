"""Configuration: what a command line asks for, how it becomes objects, and how its errors become one line."""

import argparse
import copy
import difflib
import itertools
import json
import logging
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import hydra
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra._internal.utils import get_args_parser
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import (
    ConfigCompositionException,
    InstantiationException,
    MissingConfigException,
    OverrideParseException,
)
from hydra.types import RunMode
from hydra.utils import get_object, instantiate
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import MissingMandatoryValue, OmegaConfBaseException

from lcm.errors import LcmError
from lcm.plugins.lossless_claw.settings import unusable, variable_of, yaml_overrides
from pipelines.config import unused
from pipelines.config.composition import CONFIGURATION_ERRORS as CONFIGURATION_ERRORS
from pipelines.config.composition import EVALUATE as EVALUATE
from pipelines.config.composition import composed_whole, config_name, slots, without_hydra
from pipelines.config.composition import conf_dir as conf_dir
from pipelines.config.composition import groups as groups
from pipelines.config.instantiation import RefusedError, instantiated, is_ours
from pipelines.config.setting_types import expected, fits, misfits

_log = logging.getLogger(__name__)

_RUN_DIR = "hydra.run.dir"
_ELSEWHERE = {
    "answerer": "`lcm expand-query`",
    "space": "`lcm tune`",
    "recall": "`lcm grep`, `describe`, `expand` and `expand-query`",
}
"""Group -> the commands that it belongs to, where that is not all."""


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


def environment_overrides(overrides: Sequence[str], pipeline: str = EVALUATE) -> tuple[str, ...]:
    """What the `LCM_*` variables of lossless-claw ask for, as overrides: above every preset, below the command line.

    What cannot be read, what nobody knows, and what the chosen configuration has no key for is told as a warning,
    unless it is another command's.
    """
    for problem in unusable(os.environ):
        _log.warning("%s", problem)
    wanted = yaml_overrides(os.environ)
    if not wanted:
        return ()
    known = set(_paths("", OmegaConf.to_container(_chosen(overrides, pipeline))))
    for key in sorted(wanted.keys() - known):
        group = key.partition(".")[0]
        if group in known:
            choices = ", ".join(groups()[group])
            _log.warning("%s has no key %s here: choose another %s of: %s", variable_of(key), key, group, choices)
    return tuple(f"{key}={quoted(value)}" for key, value in wanted.items() if key in known)


def quoted(value: Any) -> str:
    """A value as Hydra reads it back, letter by letter."""
    if isinstance(value, list):
        return f"[{','.join(map(quoted, value))}]"
    if not isinstance(value, str):
        return json.dumps(value)
    text = re.sub(r"(\\*)\$\{", lambda found: found[1] * 2 + r"\${", value)
    return '"' + re.sub(r'(\\*)("|$)', lambda found: found[1] * 2 + (r"\"" if found[2] else ""), text) + '"'


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


def build(config: DictConfig, key: str) -> Any:
    """The object that the node `key` describes: the one place where configuration becomes objects.

    Raises:
        LcmError: naming every setting of the wrong type, or the first that its component refuses.
    """
    with explained():
        if config.get(key) is None:
            choices = groups().get(key)
            remedy = f"choose one of: {', '.join(choices)}" if choices else "it cannot be left out"
            raise LcmError(f"{key} is missing: {remedy}")
        plain = OmegaConf.to_container(config[key], resolve=True, throw_on_missing=True)
        wrong = {_written_as(config, path): problem for path, problem in misfits(plain, key, get_object)}
        if wrong:
            raise LcmError("; ".join(f"{path} {problem}" for path, problem in wrong.items()))
        if is_ours(plain):
            try:
                return instantiated(plain, key, get_object)
            except RefusedError as error:
                raise LcmError(_refused(error, error.path, config)) from error
        try:
            # `_convert_: all`: components get plain lists and dicts. A copy: Hydra resolves references in place.
            return instantiate(copy.deepcopy(config)[key], _convert_="all")
        except InstantiationException as error:
            found = re.search(r"full_key: (\S+)", str(error))
            raise LcmError(_refused(error, found.group(1) if found else key, config)) from error


def flag(config: DictConfig, key: str) -> bool:
    """A setting that is true or false."""
    value = config[key]
    if not fits(value, bool):
        raise LcmError(f"{key} must be {expected(bool)}, got {value!r}")
    return bool(value)


def resolved(config: DictConfig) -> dict[str, Any]:
    """The configuration with every interpolation worked out, as plain data."""
    return OmegaConf.to_container(config, resolve=True)  # type: ignore[return-value]


def resolved_text(config: DictConfig) -> str:
    return OmegaConf.to_yaml(config, resolve=True)


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


def refuse_unused(config: DictConfig, overrides: Sequence[str]) -> None:
    """Refuse what was asked for and what nothing in the configuration takes up, and what is taken up and not there.

    Raises:
        LcmError: naming the override or the part.
    """
    unused.refuse(OmegaConf.to_container(config), overrides, slots())  # type: ignore[arg-type]


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


def composed(overrides: Sequence[str], pipeline: str = EVALUATE) -> DictConfig:
    """Compose the configuration without running anything."""
    return without_hydra(_composed_whole(overrides, pipeline=pipeline))


def component(path: str) -> Any:
    """The class or function that a dotted path names.

    Raises:
        LcmError: if there is none.
    """
    try:
        return get_object(path)
    except (ImportError, ValueError) as error:
        raise LcmError(f"{path!r} names no class: {_flat(error)}; is its folder on PYTHONPATH?") from error


@contextmanager
def explained(overrides: Sequence[str] = (), pipeline: str = EVALUATE) -> Iterator[None]:
    """What goes wrong inside becomes an LcmError that names the key, the value and the remedy."""
    try:
        yield
    except CONFIGURATION_ERRORS as error:
        raise LcmError(explain(error, overrides, pipeline)) from error


def explain(error: BaseException, overrides: Sequence[str] = (), pipeline: str = EVALUATE) -> str:
    """One line: the key, the value, and what to do; `overrides` are those that led to the error."""
    if isinstance(error, OverrideParseException):
        reason = re.sub(r"Error parsing override '.*?'(?= )|See https://.*", "", _flat(error)).strip()
        return f"{error.override!r} is not an override: write KEY=VALUE or GROUP=CHOICE ({reason})"
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}; name a path that can be used"
    text = str(error)
    if ambiguous := re.match(r"Ambiguous value for argument '(.*?)'\n", text):
        return f"{ambiguous[1]}: several values make a multirun, add -m; for one list write KEY=[A,B]"
    if isinstance(error, MissingConfigException) and error.options is not None:
        return _choice(error)
    if isinstance(error, ConfigCompositionException):
        cause = error.__cause__ or error
        return _unknown_key(f"{text} {cause}", overrides, pipeline) or _flat(cause if error.__cause__ else error)
    if isinstance(error, MissingMandatoryValue):
        return f"{error.full_key} has no value: give it one with {error.full_key}=VALUE"
    if isinstance(error, OmegaConfBaseException):
        key = getattr(error, "full_key", None)
        message = _unknown_key(text, overrides, pipeline) or _flat(error)
        return f"{key}: {message}" if key and str(key) not in message else message
    return _flat(error)


def _choice(error: MissingConfigException) -> str:
    group, _, choice = str(error.missing_cfg_file).rpartition("/")
    options = ", ".join(sorted(str(option) for option in error.options or ()))
    return f"{group}={choice}: no such choice; choose one of: {options}"


def _refused(error: Exception, where: str, config: DictConfig) -> str:
    """What a component says of its settings, with the key at which they are written."""
    path = _written_as(config, where)
    cause: BaseException = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    message = _flat(cause) if cause is not error else _flat(error).split(" full_key:")[0]
    node = OmegaConf.select(config, path)
    setting = re.split(r"\W", message)[0]
    if not (isinstance(node, DictConfig) and setting in node):
        return f"{path}: {message}"
    return _written_as(config, f"{path}.{setting}") + message.removeprefix(setting)


def _written_as(config: DictConfig, path: str) -> str:
    """The key at which a setting is written: `memory.ranking.order` is there because `ranking.order` is."""
    node: Any = OmegaConf.to_container(config, resolve=False)
    names = path.split(".")
    for i, name in enumerate(names):
        node = node.get(name) if isinstance(node, dict) else None
        reference = re.fullmatch(r"\$\{([\w.]+)\}", node) if isinstance(node, str) else None
        if reference is not None:
            return _written_as(config, ".".join([reference[1], *names[i + 1 :]]))
    return path


def _unknown_key(text: str, overrides: Sequence[str], pipeline: str) -> str | None:
    """A misspelt key or group, with the nearest that exist."""
    match = re.search(r"Could not override '([^']+)'|Key '([^']+)' is not in struct", text)
    if match is None:
        return None
    full = re.search(r"full_key: (\S+)", text)
    key = full.group(1) if full else str(match.group(1) or match.group(2))
    chosen = _chosen([override for override in overrides if override.partition("=")[0] != key], pipeline)
    keys = [path for path in _paths("", OmegaConf.to_container(chosen)) if not path.endswith("_target_")]
    written = _written_as(chosen, key)
    if written != key:
        node = written.rpartition(".")[0]
        settings = ", ".join(path for path in keys if path.rpartition(".")[0] == node)
        keys_of_it = f", with the keys {settings}" if settings else ", which has no keys"
        return f"{key}: no such key; what stands there is configured as {node}{keys_of_it}"
    above = key.rpartition(".")[0]
    if key in _ELSEWHERE and key not in chosen:
        return f"{key} is nothing that `lcm {pipeline}` uses: it belongs to {_ELSEWHERE[key]}"
    if above in groups() and set(chosen.get(above) or {}) == {"_target_"}:
        choices = ", ".join(groups()[above])
        return f"{key}: no such key; the {above} that is chosen has none. Choose another with {above}=CHOICE: {choices}"
    if above and OmegaConf.select(chosen, above) == {}:
        return f"{key}: no such key yet; add an entry to {above} with +{key}=VALUE"
    # Never the key itself: in a multirun another point may have it.
    known = sorted({*groups(), *keys} - {key})
    near = [path for path in known if path.endswith(f".{key}")][:3]
    near = near or difflib.get_close_matches(key, known, n=3, cutoff=0.7)
    remedy = f"did you mean {' or '.join(near)}?" if near else f"`lcm {pipeline} --cfg job` shows every key"
    return f"{key}: no such key; {remedy}"


def _chosen(overrides: Sequence[str], pipeline: str) -> DictConfig:
    """The configuration with the choices that the overrides make, and nothing else of them."""
    choosing = {"hydra.searchpath", *groups()}
    return _composed_of(tuple(one for one in overrides if one.partition("=")[0] in choosing), pipeline)


@lru_cache(maxsize=16)
def _composed_of(chosen: tuple[str, ...], pipeline: str) -> DictConfig:
    """Once for all points of a sweep that have the same mistake."""
    parsed = OverridesParser.create().parse_overrides(list(chosen))
    return composed([str(override.input_line) for override in parsed if not override.is_sweep_override()], pipeline)


def _paths(prefix: str, node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        for name, child in node.items():
            path = f"{prefix}.{name}" if prefix else str(name)
            yield path
            yield from _paths(path, child)


def _flat(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _composed_whole(overrides: Sequence[str], mode: RunMode = RunMode.RUN, pipeline: str = EVALUATE) -> DictConfig:
    """Compose, Hydra's own settings included."""
    with explained(overrides, pipeline):
        return composed_whole(overrides, mode, pipeline)
