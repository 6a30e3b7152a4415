"""A study's settings: how much is tried, by what rule, and what counts as better."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from eval.tuning.objective import Objective, objective
from lcm.checks import check_range

TRIAL_FOLDERS = "trials"
"""Where a study's folder has a run folder for each of its trials, beside the database."""
DEFAULT = "default"
"""Among them, the folder of the configuration as it stands, where no trial is it."""
_NAME = re.compile(r"\w[\w.-]*")


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
