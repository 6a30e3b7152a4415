"""A search: what all trials of a study have in common, and the configuration of each."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, open_dict

from eval.dataset.dataset import Dataset
from eval.study.selection import Fold, Rung
from eval.study.settings import Space, Study
from pipelines.config.check import checked
from pipelines.config.composition import CompositionCache
from pipelines.config.overrides import quoted

_TUNE = "tune"
_OURS = ("study", "space")
_EXECUTOR = re.compile(r"[+~]*executor\b")
_BARE = re.compile(r"[A-Za-z_][\w./-]*")
_WORDS = ("null", "true", "false", "nan", "inf")


class TrialConfigs:
    """Composes what a command has in common with the values of a trial."""

    def __init__(self, common: Sequence[str]) -> None:
        """`common`: the overrides of the command but those of the study itself."""
        self.common = tuple(common)
        self._compositions = CompositionCache(_TUNE)
        self._chosen: Mapping[str, str | None] | None = None

    def config(self, assignment: Mapping[str, Any]) -> DictConfig:
        """What `lcm evaluate` runs, of everything that a study is not."""
        overrides = [*self.common, *_written(assignment)]
        config = self._compositions.composed(overrides)
        with open_dict(config):
            for key in _OURS:
                config.pop(key, None)
        return config

    def overrides(self, assignment: Mapping[str, Any]) -> list[str]:
        """The overrides with which `lcm evaluate` makes the same numbers."""
        kept = (override for override in self.common if not override.startswith("tracking"))
        return [*kept, *_written(assignment)]

    def by_one_process(self) -> "TrialConfigs":
        """The same, each trial made by the process that has taken it."""
        return TrialConfigs([*(one for one in self.common if not _EXECUTOR.match(one)), "executor=none"])

    def chosen(self, group: str) -> str | None:
        """The choice of a group where no trial makes one."""
        if self._chosen is None:
            self._chosen = checked(self.common, _TUNE).chosen.choices
        return self._chosen.get(group)


@dataclass(frozen=True, slots=True)
class StudySetup:
    """What all trials of a study have in common."""

    settings: Study
    space: Space
    configs: TrialConfigs
    dataset: Dataset
    folds: tuple[Fold, ...]
    rungs: tuple[Rung, ...]
    """At which poor trials are stopped; none where each is measured whole."""
    folder: Path

    @property
    def file(self) -> Path | None:
        """The database of the study, where it is a file of its folder."""
        return None if self.settings.storage else self.folder.resolve() / "study.db"

    @property
    def storage(self) -> str:
        """Where the database of the study is."""
        return self.settings.storage or f"sqlite:///{self.file}"


def _written(assignment: Mapping[str, Any]) -> list[str]:
    return [f"{key}={_plain(value)}" for key, value in assignment.items()]


def _plain(value: Any) -> str:
    """A value as Hydra reads it back, without quotes where none are needed."""
    is_bare = isinstance(value, str) and _BARE.fullmatch(value) and value.lower() not in _WORDS
    return str(value) if is_bare else quoted(value)
