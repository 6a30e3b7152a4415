"""A study's settings: how much is tried, by what rule, and what counts as better."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

from eval.measures.measure import Measure
from eval.measures.names import CONTEXT_MEASURES, RANKING_MEASURES, kind_of
from eval.study.gain import not_taken
from lcm.checks import check_choice, check_range
from lcm.errors import LcmError

Direction = Literal["maximize", "minimize"]


@dataclass(frozen=True, slots=True)
class Objective:
    """A measure by its name in the summary, or one of time such as `latency/total_p50_ms`."""

    measure: str
    direction: Direction
    within: float = 0.0
    """How much of it may be given up for the objectives behind it, where one trial is to be picked."""

    def __post_init__(self) -> None:
        check_choice(self, direction=Direction)
        check_range(self, "within", ge=0)

    @property
    def sign(self) -> int:
        """Times a value: the larger, the better."""
        return 1 if self.direction == "maximize" else -1

    @property
    def is_time(self) -> bool:
        """Of a measure of time: known of whole runs only, not of their folds."""
        return "/" in self.measure


def objective(settings: Mapping[str, Any]) -> Objective:
    """Read one of a list.

    Raises:
        ValueError: naming a key that is missing, or that is none.
    """
    known = [field.name for field in fields(Objective)]
    unknown = sorted(set(settings) - set(known))
    missing = [name for name in known[:2] if not isinstance(settings.get(name), str)]
    within = settings.get("within", 0.0)
    if unknown:
        raise ValueError(f"objectives: {unknown[0]!r} is no key of an objective; choose from: {', '.join(known)}")
    if missing:
        raise ValueError(f"objectives: {missing[0]} is missing in {dict(settings)}; write the name as text")
    try:
        return Objective(settings["measure"], settings["direction"], within)
    except ValueError as error:
        raise ValueError(f"objectives: {error}") from error


def unmeasured(objectives: Sequence[Objective], measures: Mapping[str, Measure]) -> str | None:
    """What is wrong with the first objective that nothing measures; None if all are measured."""
    names = [name for measure in measures.values() for name in measure.value_names()]
    for objective in objectives:
        if objective.measure in names:
            continue
        kind, cutoff = kind_of(objective.measure), objective.measure.partition("@")[2]
        giver = objective.measure.partition("/")[0]
        remedy = f"choose one of: {', '.join(names)}"
        if kind in CONTEXT_MEASURES and cutoff.isdecimal():
            remedy = f"set measures.retention.budgets=[{cutoff}]"
        elif objective.is_time and giver in measures and not measures[giver].value_names():
            remedy = f"set measures.{giver}.queries=100"
        elif kind in RANKING_MEASURES and cutoff.removesuffix("t").isdecimal():
            remedy = f"add it to measures.retrieval.names, or {remedy}"
        return f"study.objectives: nothing measures {objective.measure!r} here; {remedy}"
    return None


def overall(summary: Mapping[str, Any], objective: Objective) -> float | None:
    """The objective's value in a run's summary; None where it has none."""
    if objective.is_time:
        giver, _, wanted = objective.measure.partition("/")
        parts = summary["timing"].get(f"{giver}_ms", {}).items()
        value = {f"{part}_{name}": number for part, numbers in parts for name, number in numbers.items()}.get(wanted)
    else:
        value = summary["measures"].get(objective.measure, {}).get("value")
    return None if value is None else float(value)


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
