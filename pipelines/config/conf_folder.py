"""The conf folder: where it lies, its groups and their choices."""

import re
from functools import cache
from pathlib import Path

from lcm.errors import LcmError

EVALUATE = "evaluate"
_CONFIG_NAMES = {EVALUATE: "config", "questions make": "questions"}
"""Pipeline -> its file in `conf`, where that is not named like it."""
_REFERENCE = re.compile(r"\$\{(\w+)\}")


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
def slots() -> frozenset[str]:
    """The groups that choices of others refer to."""
    texts = (path.read_text() for path in conf_dir().glob("*/*.yaml"))
    return frozenset(name for text in texts for name in _REFERENCE.findall(text)) & groups().keys()


def config_name(pipeline: str) -> str:
    return _CONFIG_NAMES.get(pipeline, pipeline)
