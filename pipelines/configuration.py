"""Configuration: where it lives, how it becomes objects, and how its errors become one line.

The only module that imports Hydra.
"""

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
from pathlib import Path
from typing import Any

os.environ["HYDRA_FULL_ERROR"] = "1"  # errors come to us, not to Hydra's printer; read when Hydra is imported

import hydra
from hydra import initialize_config_dir
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra._internal.utils import get_args_parser
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import (
    ConfigCompositionException,
    HydraException,
    InstantiationException,
    MissingConfigException,
    OverrideParseException,
)
from hydra.types import RunMode
from hydra.utils import get_object, instantiate
from omegaconf import DictConfig, OmegaConf, open_dict
from omegaconf.errors import MissingMandatoryValue, OmegaConfBaseException

from lcm.errors import LcmError
from lcm.session.plugin_config import unusable, variable_of, yaml_overrides
from pipelines.setting_types import expected, fits, misfits

_log = logging.getLogger(__name__)

CONFIGURATION_ERRORS = (HydraException, OmegaConfBaseException)
EVALUATE = "evaluate"
_CONFIG_NAMES = {EVALUATE: "config"}
"""Pipeline -> its file in `conf`, where that is not named like it."""


def conf_dir() -> Path:
    """The `conf` folder: at the top of a checkout, inside this package once installed."""
    here = Path(__file__).resolve().parent
    for path in (here / "conf", here.parent / "conf"):
        if (path / "config.yaml").is_file():
            return path
    raise LcmError(f"no conf/config.yaml beside {here}: install lcm again")


_ELSEWHERE = {
    "answerer": "`lcm expand-query`",
    "executor": "`lcm compact`",
    "recall": "`lcm grep`, `describe`, `expand` and `expand-query`",
}
"""Group -> the commands that it belongs to, where that is not all."""
_SLOT = re.compile(r"\$\{(\w+)\}")


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
class Point:
    """One run that a command asks for."""

    config: DictConfig
    folder: Path
    """Below the folder of the command."""


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
    return tuple(f"{key}={_quoted(value)}" for key, value in wanted.items() if key in known)


def _quoted(value: Any) -> str:
    """A value as Hydra reads it back, letter by letter."""
    if isinstance(value, list):
        return f"[{','.join(map(_quoted, value))}]"
    if not isinstance(value, str):
        return json.dumps(value)
    text = re.sub(r"(\\*)\$\{", lambda found: found[1] * 2 + r"\${", value)
    return '"' + re.sub(r'(\\*)("|$)', lambda found: found[1] * 2 + (r"\"" if found[2] else ""), text) + '"'


def run_task(task: Callable[[DictConfig], Any], asked: Command, folder: Path | None = None) -> None:
    """Hand the command to Hydra, which calls the task once a run, or once a point of a multirun.

    All points of a multirun are tried; the first failure is raised.
    """
    failures: list[Exception] = []

    def attempt(config: DictConfig) -> None:
        try:
            task(config)
        except Exception as error:
            failures.append(error)

    pinned = [] if folder is None else ["{}='{}'".format(_folder_key(asked), str(folder).replace("'", r"\'"))]
    sys.argv = [f"lcm {asked.pipeline}", *asked.options, *_for_hydra(asked), *pinned]
    # Hydra writes a line of its own about a task that raises: of use only where it says which point did.
    called = task if asked.is_multirun else attempt
    hydra.main(version_base="1.3", config_path=str(conf_dir()), config_name=_config_name(asked.pipeline))(called)()
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
        try:
            # `_convert_: all`: components get plain lists and dicts. A copy: Hydra resolves references in place.
            return instantiate(copy.deepcopy(config)[key], _convert_="all")
        except InstantiationException as error:
            raise LcmError(_refused(error, config, key)) from error


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
    """The overrides of each run, as Hydra's basic sweeper will make them."""
    if not asked.is_multirun:
        return [asked.overrides]
    sweeper = _composed_whole(_for_hydra(asked), RunMode.MULTIRUN).hydra.sweeper
    swept = [f"{key}={values}" for key, values in (sweeper.get("params") or {}).items()]
    with explained(asked.overrides):
        parsed = OverridesParser.create().parse_overrides([*swept, *asked.overrides])
        for override in parsed:
            if override.is_delete() and override.value() is None:
                key = override.key_or_group
                raise LcmError(f"~{key}: a multirun cannot take a key out; write {key}=null where null is allowed")
        batches = BasicSweeper.split_arguments(parsed, max_batch_size=None)
    return [tuple(point) for batch in batches for point in batch]


def point(asked: Command, overrides: Sequence[str], number: int) -> Point:
    """Compose one run of a command, without running anything."""
    whole = _composed_whole([*overrides, f"hydra.job.num={number}"])
    folder = Path(whole.hydra.sweep.subdir if asked.is_multirun else "")
    return Point(_without_hydra(whole), folder)


def refuse_unused(config: DictConfig, overrides: Sequence[str]) -> None:
    """Refuse what was asked for and what nothing in the configuration takes up, and what is taken up and not there.

    Raises:
        LcmError: as with `decay=weibull ranking=neighbours`, for that ranking has no place for a decay; with a number
            of a stage that stands in no order; with a part that asks a language model where there is none.
    """
    plain: dict[str, Any] = OmegaConf.to_container(config)  # type: ignore[assignment]
    idle = _idle_stages(plain.get("ranking"))
    text = OmegaConf.to_yaml(OmegaConf.create(plain))
    slots = {name for path in conf_dir().glob("*/*.yaml") for name in _SLOT.findall(path.read_text())} & set(groups())
    for override in overrides:
        key, _, choice = override.lstrip("+").partition("=")
        group, *path = key.split(".")
        if group in slots and (path or choice != "none") and f"${{{group}}}" not in text:
            raise LcmError(
                f"{override} has no place in this configuration: nothing in it takes {group} up; choose another "
                f"{_TAKEN_BY.get(group, 'ranking or extraction')} that does, or leave {group} out"
            )
        if group == "ranking" and path[:1] == ["stages"] and len(path) > 2 and path[1] in idle:
            raise LcmError(
                f"{override} has no effect: {path[1]} stands in no order of this ranking; name it in an order, or "
                "choose a ranking that runs it"
            )
    summarizer = plain.get("summarizer") or {}
    if "${summarizer}" in text and str(summarizer.get("_target_", "")).endswith(".T5") and summarizer["model"] is None:
        raise LcmError(
            "summarizer=t5 has no model: set summarizer.model to a folder or a hub id, or choose summarizer=chain, "
            "which goes on without one"
        )
    model = plain.get("language_model") or {}
    if str(model.get("_target_", "")).endswith(".NoModel"):
        for group in ("extraction", "admission", "deduplication", "summarizer"):
            if "${language_model}" in str(plain.get(group)) and (group != "summarizer" or "${summarizer}" in text):
                raise LcmError(_NO_MODEL.format(group=group))


_TAKEN_BY = {"summarizer": "compaction (compaction=lossless)"}
_NO_MODEL = (
    "{group} asks a language model and there is none: choose language_model=openai_compatible and set "
    "language_model.model.base_url and language_model.model.model"
)


def _idle_stages(ranking: Any) -> set[str]:
    """The stages of a ranking that no order names; they are taken out of it, and so are paths that no query takes."""
    if not isinstance(ranking, dict) or not isinstance(stages := ranking.get("stages"), dict):
        return set()
    if ranking.get("mode") in ("hybrid", "vector"):
        ranking.pop({"hybrid": "vector", "vector": "hybrid"}[ranking["mode"]], None)
    paths = [path for path in ranking.values() if isinstance(path, dict) and "order" in path] or [ranking]
    orders = [path["order"] for path in paths]
    if any(order is None for order in orders):
        return set()
    idle = {name for name in stages if not any(name in order for order in orders)}
    for name in idle:
        del stages[name]
    return idle


def claimed_folder(asked: Command) -> Path:
    """Make the folder of a command: the one that it names, else one that no other run has."""
    whole = _composed_whole(_for_hydra(asked), RunMode.MULTIRUN if asked.is_multirun else RunMode.RUN, asked.pipeline)
    wanted = Path(whole.hydra.sweep.dir if asked.is_multirun else whole.hydra.run.dir)
    is_named = any(override.startswith(f"{_folder_key(asked)}=") for override in asked.overrides)
    try:
        return made_folder(wanted, may_exist=is_named)
    except OSError as error:
        raise LcmError(f"{_folder_key(asked)}={wanted} cannot be made ({error.strerror}); name another") from error


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
    return _without_hydra(_composed_whole(overrides, pipeline=pipeline))


def component(path: str) -> Any:
    """The class or function that a dotted path names.

    Raises:
        LcmError: if there is none.
    """
    try:
        return get_object(path)
    except (ImportError, ValueError) as error:
        raise LcmError(f"{path!r} names no class: {_flat(error)}; is its folder on PYTHONPATH?") from error


def groups() -> dict[str, list[str]]:
    """Every group and its choices."""
    return {
        folder.name: sorted(path.stem for path in folder.glob("*.yaml"))
        for folder in sorted(conf_dir().iterdir())
        if folder.is_dir()
    }


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


def _refused(error: InstantiationException, config: DictConfig, key: str) -> str:
    """What a component says of its settings, with the key at which they are written."""
    found = re.search(r"full_key: (\S+)", str(error))
    path = _written_as(config, found.group(1) if found else key)
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
    chosen = [override for override in overrides if override.partition("=")[0] in choosing]
    parsed = OverridesParser.create().parse_overrides(chosen)
    return composed([str(override.input_line) for override in parsed if not override.is_sweep_override()], pipeline)


def _paths(prefix: str, node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        for name, child in node.items():
            path = f"{prefix}.{name}" if prefix else str(name)
            yield path
            yield from _paths(path, child)


def _flat(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__


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


def _composed_whole(overrides: Sequence[str], mode: RunMode = RunMode.RUN, pipeline: str = EVALUATE) -> DictConfig:
    """Compose, Hydra's own settings included."""
    for override in overrides:
        group, _, choice = override.partition("=")
        if choice in ("", "null") and group in groups() and group not in ("system", "experiment"):
            raise LcmError(f"{override}: no such choice; choose one of: {', '.join(groups()[group])}")
    with explained(overrides, pipeline), _hydra_of_its_own():
        hydra = GlobalHydra.instance().hydra
        assert hydra is not None
        return hydra.compose_config(_config_name(pipeline), list(overrides), run_mode=mode)


def _config_name(pipeline: str) -> str:
    return _CONFIG_NAMES.get(pipeline, pipeline)


def _without_hydra(whole: DictConfig) -> DictConfig:
    with open_dict(whole):
        del whole["hydra"]
    return whole


def _folder_key(asked: Command) -> str:
    return "hydra.sweep.dir" if asked.is_multirun else "hydra.run.dir"
