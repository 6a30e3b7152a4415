"""Which command's configuration holds a group."""

from functools import cache

from omegaconf import OmegaConf

from pipelines.config import conf_folder

FILES = {
    conf_folder.EVALUATE: "config",
    "recall": "recall",
    "compact": "compact",
    "tune": "tune",
    "questions make": "questions",
}
"""Commands, or families of them, and their files in `conf`; a group of several is that of the first."""


def choices_of(file: str) -> list[tuple[str, str]]:
    """The groups that a file of `conf` chooses from, each with its default choice; those of the files it takes in too.

    A group under another name than its own is none of them.
    """
    found = []
    for entry in OmegaConf.to_container(OmegaConf.load(conf_folder.conf_dir() / f"{file}.yaml"))["defaults"]:
        if isinstance(entry, dict):
            found += [(group, choice) for group, choice in entry.items() if " " not in group and "@" not in group]
        elif entry != "_self_":
            found += choices_of(entry)
    return found


@cache
def groups_of(pipeline: str) -> frozenset[str]:
    """The groups of a command."""
    return frozenset(group for group, _ in choices_of(FILES[pipeline]))


def pipeline_of(group: str) -> str:
    """The command whose configuration holds a group; `evaluate` for the keys of its root."""
    return next((pipeline for pipeline in FILES if group in groups_of(pipeline)), conf_folder.EVALUATE)
