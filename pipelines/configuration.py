"""Configuration: where it lives, how it becomes objects, and how its errors become one line.

The only module that imports Hydra.
"""

import difflib
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

os.environ["HYDRA_FULL_ERROR"] = "1"  # errors come to us, not to Hydra's printer; read when Hydra is imported

import hydra
from hydra import compose, initialize_config_dir
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import (
    ConfigCompositionException,
    HydraException,
    InstantiationException,
    MissingConfigException,
    OverrideParseException,
)
from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from lcm.errors import LcmError

CONFIGURATION_ERRORS = (HydraException, OmegaConfBaseException)


def conf_dir() -> Path:
    """The `conf` folder: at the top of a checkout, inside this package once installed."""
    here = Path(__file__).resolve().parent
    for path in (here / "conf", here.parent / "conf"):
        if (path / "config.yaml").is_file():
            return path
    raise LcmError(f"no conf/config.yaml beside {here}: install lcm again")


def run_task(task: Callable[[DictConfig], Any]) -> None:
    """Hand the command line to Hydra, which calls the task once a run, or once a point of a multirun."""
    hydra.main(version_base="1.3", config_path=str(conf_dir()), config_name="config")(task)()


def build(config: DictConfig, key: str) -> Any:
    """The object that the node `key` describes: the one place where configuration becomes objects."""
    node = config[key]
    if node is None:
        return None
    # `_convert_: all`: components get plain lists and dicts.
    return instantiate(node, _convert_="all")


def resolved(config: DictConfig) -> dict[str, Any]:
    """The configuration with every interpolation worked out, as plain data."""
    return OmegaConf.to_container(config, resolve=True)  # type: ignore[return-value]


def resolved_text(config: DictConfig) -> str:
    return OmegaConf.to_yaml(config, resolve=True)


def run_dir() -> Path:
    """Where Hydra wants this run's files."""
    return Path(HydraConfig.get().runtime.output_dir)


def points(overrides: Sequence[str]) -> list[list[str]]:
    """The overrides of each point of a multirun, as Hydra's basic sweeper will make them."""
    parsed = OverridesParser.create().parse_overrides(list(overrides))
    return [list(point) for batch in BasicSweeper.split_arguments(parsed, max_batch_size=None) for point in batch]


def composed(overrides: Sequence[str]) -> DictConfig:
    """Compose the configuration without running anything."""
    with initialize_config_dir(version_base="1.3", config_dir=str(conf_dir())):
        return compose("config", overrides=list(overrides))


def groups() -> dict[str, list[str]]:
    """Every group and its choices."""
    return {
        folder.name: sorted(path.stem for path in folder.glob("*.yaml"))
        for folder in sorted(conf_dir().iterdir())
        if folder.is_dir()
    }


def explain(error: BaseException, overrides: Sequence[str] = ()) -> str:
    """One line: the key, the value, and what to do; `overrides` are those that led to the error."""
    if isinstance(error, InstantiationException):
        return _instantiation(error)
    if isinstance(error, OverrideParseException):
        return f"{error.override!r} is not an override: write KEY=VALUE or GROUP=CHOICE ({_flat(error)})"
    text = str(error)
    if isinstance(error, MissingConfigException) and error.options is not None:
        return _choice(error)
    if isinstance(error, ConfigCompositionException):
        cause = error.__cause__ or error
        return _unknown_key(f"{text} {cause}", overrides) or _flat(cause if error.__cause__ else error)
    if isinstance(error, OmegaConfBaseException):
        key = getattr(error, "full_key", None)
        message = _unknown_key(text, overrides) or _flat(error)
        return f"{key}: {message}" if key and str(key) not in message else message
    return _flat(error)


def _choice(error: MissingConfigException) -> str:
    group, _, choice = str(error.missing_cfg_file).rpartition("/")
    options = ", ".join(sorted(str(option) for option in error.options or ()))
    return f"{group}={choice}: no such choice; choose one of: {options}"


def _instantiation(error: InstantiationException) -> str:
    key = re.search(r"full_key: (\S+)", str(error))
    cause: BaseException = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    message = _flat(cause) if cause is not error else _flat(error).split(" full_key:")[0]
    message = re.sub(r"\w+\.__init__\(\) got an unexpected keyword argument", "has no setting", message)
    return f"{key.group(1)}: {message}" if key else message


def _unknown_key(text: str, overrides: Sequence[str]) -> str | None:
    """A misspelt key or group, with the nearest that exist."""
    match = re.search(r"Could not override '([^']+)'|Key '([^']+)' is not in struct", text)
    if match is None:
        return None
    full = re.search(r"full_key: (\S+)", text)
    key = full.group(1) if full else str(match.group(1) or match.group(2))
    # Never the key itself: in a multirun another point may have it.
    known = {path for path in _known_keys(overrides) if path != key and not path.endswith("_target_")}
    near = difflib.get_close_matches(key, sorted(known), n=3)
    remedy = f"did you mean {' or '.join(near)}?" if near else "`lcm evaluate --cfg job` shows every key"
    return f"{key}: no such key; {remedy}"


def _known_keys(overrides: Sequence[str]) -> Iterator[str]:
    """The groups, and the keys of the choices that the overrides make."""
    yield from groups()
    choosing = {"hydra.searchpath", *groups()}
    chosen = [override for override in overrides if override.partition("=")[0] in choosing]
    yield from _paths("", OmegaConf.to_container(composed(points(chosen)[0])))


def _paths(prefix: str, node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        for name, child in node.items():
            path = f"{prefix}.{name}" if prefix else str(name)
            yield path
            yield from _paths(path, child)


def _flat(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def command_line(program: str, arguments: Sequence[str]) -> None:
    """What Hydra reads as the command line."""
    sys.argv = [program, *arguments]
