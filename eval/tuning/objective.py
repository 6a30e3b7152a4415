"""An objective: a number of a run that a study makes large or small."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

from eval.measures.measure import Measure
from eval.measures.names import CONTEXT_MEASURES, RANKING_MEASURES, kind_of
from lcm.checks import check_choice, check_range

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
