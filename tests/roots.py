"""Which command's configuration holds a group."""

from functools import cache

from omegaconf import OmegaConf

from pipelines import configuration

FILES = {configuration.EVALUATE: "config", "recall": "recall"}
"""Commands, or families of them, and their files in `conf`; a group of several is that of the first."""


@cache
def groups_of(pipeline: str) -> frozenset[str]:
    """The groups that a command chooses from, each under its own name."""
    defaults = OmegaConf.load(configuration.conf_dir() / f"{FILES[pipeline]}.yaml").defaults
    keys = {str(key) for entry in defaults if entry != "_self_" for key in entry}
    return frozenset(key for key in keys if " " not in key and "@" not in key)


def pipeline_of(group: str) -> str:
    """The command whose configuration holds a group; `evaluate` for the keys of its root."""
    return next((pipeline for pipeline in FILES if group in groups_of(pipeline)), configuration.EVALUATE)
