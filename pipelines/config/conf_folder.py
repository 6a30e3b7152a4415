"""The conf folder: where it lies, its groups and their choices."""

import re
from functools import cache
from pathlib import Path
from typing import Any

from lcm.encoding import from_yaml
from lcm.errors import LcmError

EVALUATE = "evaluate"
_CONFIG_NAMES = {EVALUATE: "config", "questions make": "questions"}
"""Pipeline -> its file in `conf`, where that is not named like it."""
REFERENCE = re.compile(r"\$\{(\w+)\}")


@cache
def conf_dir() -> Path:
    """The `conf` folder: at the top of a checkout, inside the package `pipelines` once installed."""
    here = Path(__file__).resolve().parents[1]
    for path in (here / "conf", here.parent / "conf"):
        if (path / "config.yaml").is_file():
            return path
    raise LcmError(f"no conf/config.yaml beside {here}: install lcm again")


@cache
def groups() -> dict[str, list[str]]:
    """Every group and its choices."""
    return {
        folder.name: sorted(path.stem for path in folder.glob("*.yaml"))
        for folder in sorted(conf_dir().iterdir())
        if folder.is_dir()
    }


@cache
def keys_at_the_top() -> frozenset[str]:
    """Every group, and every other key at the top of a pipeline's configuration."""
    written = (from_yaml(path.read_text(encoding="utf-8")) for path in conf_dir().glob("*.yaml"))
    return frozenset(groups()).union(*written)


@cache
def slots() -> frozenset[str]:
    """The groups that choices of others refer to."""
    texts = (path.read_text() for path in conf_dir().glob("*/*.yaml"))
    return frozenset(name for text in texts for name in REFERENCE.findall(text)) & groups().keys()


@cache
def settings_of(group: str, choice: str) -> dict[str, Any]:
    """What the file of a choice itself says, references as they are written."""
    settings: dict[str, Any] | None = from_yaml((conf_dir() / group / f"{choice}.yaml").read_text(encoding="utf-8"))
    return {key: value for key, value in (settings or {}).items() if key != "defaults"}


@cache
def chosen_by(system: str) -> dict[str, str]:
    """Group -> the choice that a preset of the system makes."""
    preset = from_yaml((conf_dir() / "system" / f"{system}.yaml").read_text(encoding="utf-8"))
    named = (entry.items() for entry in preset.get("defaults", ()) if isinstance(entry, dict))
    return {str(key).removeprefix("override /"): str(choice) for items in named for key, choice in items}


def config_name(pipeline: str) -> str:
    return _CONFIG_NAMES.get(pipeline, pipeline)


@cache
def table_of_contents(pipeline: str) -> tuple[str, ...]:
    """The groups that a pipeline's configuration has a choice of, in order."""
    config = from_yaml((conf_dir() / f"{config_name(pipeline)}.yaml").read_text(encoding="utf-8"))
    found: list[str] = []
    for entry in config["defaults"]:
        if isinstance(entry, dict):
            found += [group for group in entry if group in groups()]
        elif entry == config_name(EVALUATE):
            found += table_of_contents(EVALUATE)
    return tuple(found)
