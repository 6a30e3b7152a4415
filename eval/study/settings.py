"""What a study is asked: which keys it varies in what bounds, how much is tried by what rule, and what is better."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from eval.measures.measure import Measure
from eval.measures.names import CONTEXT_MEASURES, RANKING_MEASURES, kind_of
from eval.study.gain import not_taken
from lcm.checks import check_choice, check_range
from lcm.errors import LcmError

if TYPE_CHECKING:
    from optuna.trial import Trial


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


RANGE = ("low", "high", "log", "step")


@dataclass(frozen=True, slots=True)
class Range:
    """The numbers between two bounds, bounds included, for one key; whole where both bounds are written so."""

    low: float
    high: float
    log: bool = False
    step: float | None = None

    def __post_init__(self) -> None:
        check_range(self, "low", "high")
        check_range(self, "step", or_null=True)
        if not isinstance(self.log, bool):
            raise ValueError(f"log must be true or false, got {self.log!r}")
        if not self.low < self.high:
            raise ValueError(f"low must be < high, got {self.low} and {self.high}")
        if self.log and not self.low > 0:
            raise ValueError(f"low must be > 0 where log is true, got {self.low}")
        if self.step is None:
            return
        if self.log:
            raise ValueError(f"step={self.step} has no meaning where log is true: leave one out")
        check_range(self, "step", gt=0)
        if self.is_whole and not isinstance(self.step, int):
            raise ValueError(f"step must be a whole number as low and high are, got {self.step}")
        steps = (self.high - self.low) / self.step
        if not math.isclose(steps, round(steps), abs_tol=1e-9):
            raise ValueError(f"high must be low plus a number of steps of {self.step}, got {self.low} and {self.high}")

    @property
    def is_whole(self) -> bool:
        return isinstance(self.low, int) and isinstance(self.high, int)

    def extremes(self) -> tuple[Any, ...]:
        """The values at which a component that refuses some would refuse them."""
        return (self.low, self.high)

    def holds(self, value: Any) -> bool:
        """Whether a trial could have this value."""
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not is_number or not self.low <= value <= self.high or (self.is_whole and not isinstance(value, int)):
            return False
        steps = 0.0 if self.step is None else (value - self.low) / self.step
        return math.isclose(steps, round(steps), abs_tol=1e-9)

    def suggested(self, key: str, trial: "Trial") -> Any:
        if self.is_whole:
            step = 1 if self.step is None else int(self.step)
            return trial.suggest_int(key, int(self.low), int(self.high), log=self.log, step=step)
        return trial.suggest_float(key, self.low, self.high, log=self.log, step=self.step)


@dataclass(frozen=True, slots=True)
class Choices:
    """Values that are named one by one: of a setting, or the choices of a group; one alone is held in every trial."""

    values: Sequence[str | float | bool | None]

    def __post_init__(self) -> None:
        if not isinstance(self.values, Sequence) or isinstance(self.values, str) or not self.values:
            raise ValueError(f"choices must be a list of one or more, got {self.values!r}")
        for value in self.values:
            if not (value is None or isinstance(value, (str, int, float))) or value != value:
                raise ValueError(f"choices must be text, numbers, true, false or null, got {value!r}")
        told = [(type(value), value) for value in self.values]
        if len(set(told)) < len(told):
            raise ValueError(f"choices must differ from each other, got {list(self.values)!r}")

    def extremes(self) -> tuple[Any, ...]:
        return tuple(self.values)

    def holds(self, value: Any) -> bool:
        return any(type(value) is type(known) and value == known for known in self.values)

    def suggested(self, key: str, trial: "Trial") -> Any:
        return trial.suggest_categorical(key, list(self.values))


Distribution = Range | Choices


def distribution(settings: Mapping[str, Any]) -> Distribution:
    """Read what a space says of a key.

    Raises:
        ValueError: if it is neither a range nor choices.
    """
    names = set(settings)
    if names == {"choices"}:
        return Choices(settings["choices"])
    if {"low", "high"} <= names <= set(RANGE):
        return Range(**settings)
    raise ValueError(f"needs low and high (and log or step), or choices, got {', '.join(sorted(names)) or 'nothing'}")


Assignment = Mapping[str, Any]
"""Key -> value, of the keys that are there."""

FIXED = (
    "dataset", "replay", "measures", "means", "arms", "tracking", "cache", "report", "study", "space", "hydra",
)  # fmt: skip
"""What decides how a trial is measured, and so may not differ between trials."""
_OURS = (*RANGE, "choices", "when")


@dataclass(frozen=True, slots=True)
class Dimension:
    """One key of a search space, with its distribution and its condition."""

    key: str
    distribution: Distribution
    when: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    """Another key -> values of it at one of which this key is there; all conditions must hold."""

    def is_there(self, assignment: Assignment) -> bool:
        return all(key in assignment and _among(assignment[key], values) for key, values in self.when.items())


@dataclass(frozen=True, slots=True)
class Space:
    """A search space: its keys, in an order in which none stands before those that it depends on."""

    dimensions: tuple[Dimension, ...]

    def suggested(self, trial: "Trial") -> dict[str, Any]:
        """The values that a trial has, or is now given."""
        assignment: dict[str, Any] = {}
        for dimension in self.dimensions:
            if dimension.is_there(assignment):
                assignment[dimension.key] = dimension.distribution.suggested(dimension.key, trial)
        return assignment

    def extremes(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Assignments that between them have every bound and every choice: the key that is tried, and all values.

        The others stand at their first value, but for those that the key depends on.
        """
        seen: set[str] = set()
        by_key = {dimension.key: dimension for dimension in self.dimensions}
        for dimension in self.dimensions:
            needed = _needed(dimension, by_key)
            for value in dimension.distribution.extremes():
                assignment: dict[str, Any] = {}
                for other in self.dimensions:
                    if other.key == dimension.key:
                        assignment[other.key] = value
                    elif other.is_there(assignment):
                        assignment[other.key] = needed.get(other.key, other.distribution.extremes()[0])
                told = repr(sorted(assignment.items()))
                if told not in seen:
                    seen.add(told)
                    yield dimension.key, assignment

    def held(self, current: Assignment) -> dict[str, Any] | None:
        """The part of a configuration's values that this space searches; None where it does not hold them all."""
        assignment: dict[str, Any] = {}
        for dimension in self.dimensions:
            if not dimension.is_there(assignment):
                continue
            if dimension.key not in current or not dimension.distribution.holds(current[dimension.key]):
                return None
            assignment[dimension.key] = current[dimension.key]
        return assignment


def space(settings: Mapping[str, Any]) -> Space:
    """Read a space: keys nested, or written with dots.

    Raises:
        ValueError: naming the key that is wrong.
    """
    if not settings:
        raise ValueError("space is empty: choose a space, or add a key with +space.KEY={low: ..., high: ...}")
    dimensions = list(_dimensions("", settings))
    known = {dimension.key: dimension for dimension in dimensions}
    if len(known) < len(dimensions):
        keys = [dimension.key for dimension in dimensions]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(
            f"space.{twice} stands there twice: change the bounds of the one that is there, space.{twice}.high=1, or "
            "write a space of your own, 'space={KEY: {low: 0, high: 1}}'"
        )
    for dimension in dimensions:
        group = dimension.key.partition(".")[0]
        if group in FIXED:
            raise ValueError(
                f"space.{dimension.key}: {group} decides what is measured, which must be the same in all trials; leave "
                "it out"
            )
        for key, values in dimension.when.items():
            if key not in known or not isinstance(known[key].distribution, Choices):
                raise ValueError(f"space.{dimension.key}.when: {key} is no key of this space that has choices")
            strange = [value for value in values if not known[key].distribution.holds(value)]
            if strange:
                raise ValueError(f"space.{dimension.key}.when: {strange[0]!r} is no choice of {key}")
    return Space(tuple(_ordered(dimensions)))


def _dimensions(above: str, settings: Mapping[str, Any]) -> Iterator[Dimension]:
    for name, node in settings.items():
        if node is None:  # taken out of a ready space
            continue
        key = f"{above}.{name}" if above else str(name)
        if not isinstance(node, Mapping):
            raise ValueError(f"space.{key} must be a map with low and high, or with choices, got {node!r}")
        ours = {part: node[part] for part in node if part in _OURS and node[part] is not None}
        below = {part: node[part] for part in node if part not in _OURS}
        if ours or not below:
            when = ours.pop("when", {})
            if not isinstance(when, Mapping):
                raise ValueError(f"space.{key}.when must be a map of keys to values, got {when!r}")
            conditions = {
                str(other): tuple(values) if isinstance(values, list) else (values,) for other, values in when.items()
            }
            try:
                yield Dimension(key, distribution(ours), conditions)
            except ValueError as error:
                raise ValueError(f"space.{key}: {error}") from error
        yield from _dimensions(key, below)


def _ordered(dimensions: Sequence[Dimension]) -> Iterator[Dimension]:
    waiting = list(dimensions)
    there: set[str] = set()
    while waiting:
        ready = [dimension for dimension in waiting if set(dimension.when) <= there]
        if not ready:
            raise ValueError(f"space.{waiting[0].key}.when: it depends on itself through {', '.join(waiting[0].when)}")
        yield ready[0]
        there.add(ready[0].key)
        waiting.remove(ready[0])


def _needed(dimension: Dimension, by_key: Mapping[str, Dimension]) -> dict[str, Any]:
    """Values of the keys that this one depends on, at which it is there."""
    values = {key: allowed[0] for key, allowed in dimension.when.items()}
    for key in dimension.when:
        values = {**_needed(by_key[key], by_key), **values}
    return values


def _among(value: Any, values: Sequence[Any]) -> bool:
    return any(type(value) is type(known) and value == known for known in values)
