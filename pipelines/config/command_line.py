"""The command line of a pipeline that is configured: what it asks for, as one configuration or as points of many."""

import argparse
import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lcm.errors import LcmError
from pipelines.config.arguments import CommandArguments, at_home, environment_overrides, told_apart, written_out
from pipelines.config.check import SEARCH_PATH, WrongOverridesError, checked
from pipelines.config.conf_folder import EVALUATE, groups
from pipelines.config.overrides import asked, key_of, parsed, quoted

if TYPE_CHECKING:
    from hydra.core.override_parser.types import Override
    from omegaconf import DictConfig

_RUN_DIR, _SWEEP_DIR = "hydra.run.dir", "hydra.sweep.dir"
_OF_HYDRA = (_RUN_DIR, _SWEEP_DIR, SEARCH_PATH, "hydra.sweeper.params")
_NO_LAUNCHER = "points are shared out by executor=local or executor=ray, on a cluster with executor.address too"
_BASIC_LAUNCHER = "hydra._internal.core_plugins.basic_launcher.BasicLauncher"
"""The settings of Hydra's own that act here; it runs no job by itself."""


_OF_MANY = (EVALUATE, "tune")
"""Pipelines that take `for=PLUGIN`, to say which swept keys a plugin can take."""


@dataclass(frozen=True, slots=True)
class Command:
    """What a command line asks for; options and overrides may come in any order."""

    overrides: tuple[str, ...]
    """Those of the environment first: the command line's stand above them."""
    is_multirun: bool = False
    look: str | None = None
    """The part of the configuration that is to be shown rather than run: job, hydra or all."""
    is_look_resolved: bool = False
    is_explained: bool = False
    """Which part reads which key is to be shown, and nothing run."""
    pipeline: str = EVALUATE
    """Whose configuration it is."""
    words: tuple[str, ...] = ()
    """What a command works on, such as files; none of those that take overrides alone."""
    own: Mapping[str, str] = field(default_factory=dict)
    """The command's own settings, which no configuration has."""
    config: "DictConfig" = None  # type: ignore[assignment]
    """Composed, for one run; there is none of a multirun, and of a look."""
    folder: Path = Path()
    """Where that run is to be kept."""


@dataclass(frozen=True, slots=True)
class Multirun:
    """What a command asks for that asks for many runs."""

    points: list[tuple[str, ...]]
    """The overrides of each run."""
    folder: Path | None
    """Where they are to be kept, if the command or a preset says so."""
    sweep: str | None
    """The ready sweep that is chosen."""


def read(arguments: Sequence[str], pipeline: str = EVALUATE, own: Collection[str] | None = None) -> Command:
    """Read a command line, as `command` does, and compose what it asks to be run."""
    asked = command(arguments, pipeline, own)
    if asked.is_multirun and pipeline != EVALUATE:
        raise LcmError(f"`lcm {pipeline}` makes one run at a time: leave -m out")
    if asked.is_multirun or asked.look is not None:
        return asked
    if own is None and pipeline == EVALUATE and "for" in asked.own:
        raise LcmError(f"for={asked.own['for']} says which swept keys a plugin can take: add -m and values to sweep")
    try:
        checked(asked.overrides, pipeline)
    except WrongOverridesError as error:
        if not error.others:
            raise
        from pipelines.config.contracts import with_other_reasons  # it builds, and so imports what is heavy

        raise with_other_reasons(error, pipeline) from error
    from pipelines.config.composition import composed_whole, explained, without_hydra  # which import Hydra

    whole = composed_whole(asked.overrides, pipeline)
    with explained():
        if sweep := whole.hydra.runtime.choices.get("sweep"):
            raise LcmError(f"sweep={sweep} asks for many runs: `lcm evaluate -m sweep={sweep}` makes them")
        folder = Path(whole.hydra.run.dir)
    return replace(asked, config=without_hydra(whole), folder=folder)


def command(arguments: Sequence[str], pipeline: str = EVALUATE, own: Collection[str] | None = None) -> Command:
    """Read a command line about the configuration of a pipeline; `own` are keys of settings that no configuration has,
    None where the command takes overrides alone, and no words."""
    parser = argparse.ArgumentParser(add_help=False, exit_on_error=False, allow_abbrev=False)
    parser.add_argument("arguments", nargs="*")
    parser.add_argument("--cfg", "-c", choices=("job", "hydra", "all"))
    parser.add_argument("--resolve", action="store_true")
    parser.add_argument("--explain", action="store_true")
    parser.add_argument("--multirun", "-m", action="store_true")
    parser.add_argument("--config-dir", "-cd")
    try:
        found, unknown = parser.parse_known_intermixed_args(list(arguments))
    except argparse.ArgumentError as error:
        raise LcmError(f"{error}; `lcm {pipeline} --help` tells more") from error
    if unknown:
        raise LcmError(f"no such option: {unknown[0]!r}; `lcm {pipeline} --help` tells more")
    if found.explain and (found.multirun or found.cfg or own is not None or pipeline != EVALUATE):
        raise LcmError("--explain is about one run of `lcm evaluate`: leave the other command, -m or --cfg out")
    if own is None:
        of_plugin = [one for one in found.arguments if one.startswith("for=") and pipeline in _OF_MANY]
        rest = [one for one in found.arguments if one not in of_plugin]
        asked_for = {"for": of_plugin[-1].removeprefix("for=")} if of_plugin else {}
        told = CommandArguments((), asked_for, tuple(written_out(rest) if pipeline == EVALUATE else rest))
    else:
        told = told_apart(found.arguments, own)
    overrides: list[str] = []
    for override in map(at_home, told.overrides):  # Hydra would lay a space that is written out over the ready one
        overrides += ("~space", f"+{override}") if override.startswith("space={") else (override,)
    if found.config_dir is not None:
        overrides = _searching(overrides, found.config_dir)
    for override in overrides:
        key = key_of(override)
        if key.startswith(("hydra/launcher", "hydra.launcher")):
            raise LcmError(f"{override}: {_NO_LAUNCHER}")
        if key.startswith(("hydra.", "hydra/")) and not (
            key in (*_OF_HYDRA, "hydra.sweep.subdir") or key.startswith(f"{_OF_HYDRA[-1]}.")
        ):
            raise LcmError(f"{override} has no effect; of Hydra's own settings these have: {', '.join(_OF_HYDRA)}")
    return Command(
        overrides=(*environment_overrides(overrides, pipeline), *overrides),
        is_multirun=found.multirun,
        look=found.cfg,
        is_look_resolved=found.resolve,
        is_explained=found.explain,
        pipeline=pipeline,
        words=told.words,
        own=told.settings,
    )


def _searching(overrides: Sequence[str], folder: str) -> list[str]:
    """The overrides, with choices looked for in one more folder."""
    named: list[Any] = [asked(one).value for one in overrides if one.startswith(f"{SEARCH_PATH}=")]
    path = Path(folder).absolute()
    if not path.is_dir():
        raise LcmError(f"--config-dir {folder}: no such folder; name one that holds groups of choices")
    others = [one for one in overrides if one.partition("=")[0] != SEARCH_PATH]
    return [f"{SEARCH_PATH}={quoted([*(named[-1] if named else []), f'file://{path}'])}", *others]


def shown(asked: Command) -> str:
    """The configuration that a command looks at, as YAML."""
    from omegaconf import OmegaConf

    from pipelines.config.composition import composed_whole, explained, without_hydra

    whole = composed_whole(asked.overrides, asked.pipeline)
    with explained():
        if asked.look == "hydra":
            whole = OmegaConf.masked_copy(whole, "hydra")
        if asked.look == "job":
            whole = without_hydra(whole)
        return OmegaConf.to_yaml(whole, resolve=asked.is_look_resolved)


@contextmanager
def claimed(asked: Command, *, goes_on: bool = False) -> Iterator[Path]:
    """The folder of a run, made here: the one that is named, else one that no other run has; where the command goes on
    with what is in it, it may be there."""
    is_named = any(override.startswith(f"{_RUN_DIR}=") for override in asked.overrides)
    with _made(asked.folder, _RUN_DIR, may_exist=is_named or goes_on) as folder:
        yield folder


@contextmanager
def new_folder_of(command: str, into: str | None, now: datetime) -> Iterator[Path]:
    """The folder of what a command finds, made here: the one that `into=` names, else one below `runs/`."""
    wanted = Path(into) if into else Path("runs") / f"{now:%Y-%m-%d}" / f"{now:%H-%M-%S}-{command}"
    if (wanted / "summary.json").exists():
        raise LcmError(f"into={wanted} holds a complete run or comparison: name another folder, or remove that first")
    with _made(wanted, "into", may_exist=into is not None) as folder:
        yield folder


@contextmanager
def _made(wanted: Path, named_by: str, *, may_exist: bool) -> Iterator[Path]:
    """A new folder, removed if it is left empty."""
    try:
        folder = new_folder(wanted, may_exist)
    except OSError as error:
        raise LcmError(f"{named_by}={wanted} cannot be made ({error.strerror}); name another") from error
    try:
        yield folder
    finally:
        if not any(folder.iterdir()):
            folder.rmdir()


def new_folder(wanted: Path, may_exist: bool = False) -> Path:
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


def multirun(asked: Command) -> Multirun:
    """Work out the points of a command: every combination of the values of its overrides, the last varying fastest."""
    from omegaconf import OmegaConf

    from pipelines.config.composition import composed_whole, explained
    from pipelines.config.trust import check_settable

    with explained():
        given = parsed(asked.overrides)
    shared = [
        str(one.input_line)
        for one in given
        if one.key_or_group.startswith("hydra.") or (one.key_or_group in groups() and not one.is_sweep_override())
    ]
    try:
        hydra = composed_whole(shared, asked.pipeline).hydra
    except WrongOverridesError as error:  # each point tells why, and what else is wrong with it
        hydra = composed_whole(error.others, asked.pipeline).hydra
    if dict(hydra.launcher) != {"_target_": _BASIC_LAUNCHER}:
        raise LcmError(f"hydra.launcher, which a preset sets: {_NO_LAUNCHER}")
    with explained():
        params = hydra.sweeper.get("params") or {}
        check_settable(list(params), "hydra.sweeper.params")
        read = parsed([*(f"{key}={values}" for key, values in params.items()), *asked.overrides])
    for override in read:
        key = override.key_or_group
        if override.is_delete() and override.value() is None:
            raise LcmError(f"~{key}: a multirun cannot take a key out; write {key}=null where null is allowed")
        if key == "hydra.sweep.subdir":
            raise LcmError("hydra.sweep.subdir: the folder of a point is named by what the point is; leave it out")
    is_named = any(override.key_or_group == _SWEEP_DIR for override in read)
    sweep: Any = OmegaConf.to_container(hydra.sweep, resolve=False)
    values = {override.get_key_element(): _values(override) for override in read}
    return Multirun(
        points=list(itertools.product(*values.values())),
        folder=Path(hydra.sweep.dir) if is_named or "${now:" not in str(sweep["dir"]) else None,
        sweep=hydra.runtime.choices.get("sweep"),
    )


def _values(override: "Override") -> list[str]:
    """What a point may have of an override, each as an override of its own."""
    key = override.get_key_element()
    if not override.is_sweep_override():
        return [f"{key}={override.get_value_element_as_str()}"]
    if not override.is_discrete_sweep():
        raise LcmError(f"{override.input_line}: a multirun takes values from a list or a range; write {key}=A,B")
    return [f"{key}={value}" for value in override.sweep_string_iterator()]
