"""A study's settings: how much is tried, by what rule, and what counts as better."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from eval.sweep.gain import not_taken
from eval.tuning.objective import Objective, objective
from lcm.checks import check_range
from lcm.errors import LcmError

TRIAL_FOLDERS = "trials"
"""Where a study's folder has a run folder for each of its trials, beside the database."""
DEFAULT = "default"
"""Among them, the folder of the configuration as it stands, where no trial is it."""
_NAME = re.compile(r"\w[\w.-]*")


def check_pick(named: str, summary: Mapping[str, Any], folder: Path | None = None) -> None:
    """Let what a study picked be taken where it is significantly better than the default.

    Args:
        named: the study, as it was asked for.
        summary: of the study.
        folder: in which its trials lie; None of a study that was fetched.
    Raises:
        LcmError: where it is not, with how to name it all the same.
    """
    best = summary.get("best") or {}
    if best.get("verdict") != "better":
        trial = best.get("folder", summary["tags"].get("best_trial"))
        label = f"{best.get('label', f'trial {trial}')}, the pick"
        what = f"the run of {label}" if folder is None else f"the trial, as {folder}/{TRIAL_FOLDERS}/{trial} ({label})"
        raise LcmError(not_taken(named, "the default", what))


@dataclass(frozen=True, slots=True)
class Study:
    """The settings of a study: how `lcm tune` searches a space."""

    objectives: Sequence[Mapping[str, Any]]
    """Each measure, direction and, where wanted, within."""
    name: str = "study"
    trials: int = 50
    folds: int | Literal["workspace"] = "workspace"
    sampler: Literal["tpe", "random", "nsga2"] = "tpe"
    startup_trials: int = 10
    seed: int = 0
    start: bool = True
    pruner: Literal["none", "halving"] = "none"
    storage: str | None = None
    timeout_s: float | None = None
    heartbeat_s: int = 60

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"name must be made of letters, digits, '.', '_' and '-', got {self.name!r}")
        check_range(self, "trials", "startup_trials", "heartbeat_s", ge=1)
        check_range(self, "seed", ge=0)
        if self.folds != "workspace" and self.folds < 2:
            raise ValueError(f"folds must be workspace or a number >= 2, got {self.folds}")
        check_range(self, "timeout_s", gt=0, or_null=True)
        wanted = self.wanted()
        if not wanted:
            raise ValueError("objectives must not be empty: name a measure and its direction")
        measures = [one.measure for one in wanted]
        if len(set(measures)) < len(measures):
            raise ValueError(f"objectives: each measure may stand there once, got {', '.join(measures)}")
        if self.pruner != "none" and len(wanted) > 1:
            raise ValueError(
                f"pruner={self.pruner} needs a single objective, got {len(wanted)}: a trial is only stopped for what "
                "one number says; choose pruner=none"
            )
        if self.pruner != "none" and wanted[0].is_time:
            raise ValueError(
                f"pruner={self.pruner}: {wanted[0].measure} is known of whole runs alone; choose pruner=none"
            )

    def wanted(self) -> tuple[Objective, ...]:
        """The objectives, the first the most important."""
        return tuple(objective(settings) for settings in self.objectives)
