"""What two runs must agree in before their numbers are compared."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from eval.measures.measure import is_timing
from eval.measures.names import RANKING_MEASURES, REPAIRED, kind_of
from eval.run import Run
from lcm.errors import LcmError

MEASURES = "measures"
SETTINGS = ("replay", MEASURES)
"""Groups of the configuration that decide what a number means; what of the dataset does is in its digest."""
_FREE = ("measures.retrieval.names", "measures.retention.budgets")
"""Of these groups, what decides which measures there are but changes no value; so do measures of time."""
_ALIKE = "evaluate both alike"
_AGAIN = "run `lcm evaluate` again with this lcm"
_OF_MEASURES = "measure definitions"
_IDENTITY = ("query_id", "text", "evidence")


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Something that two runs were not made alike in."""

    what: str
    baseline: object
    candidate: object

    @property
    def is_of_measures(self) -> bool:
        """Whether one and the same question got numbers that do not mean the same."""
        return self.what == _OF_MEASURES or self.what.startswith(f"{MEASURES}.")

    def told(self, baseline: str = "baseline", candidate: str = "candidate") -> str:
        return f"different {self.what}: {baseline} {_short(self.baseline)}, {candidate} {_short(self.candidate)}"


def comparable(folder: Path, name: str) -> Run:
    """A run whose numbers can be held against those of others, its values read.

    Raises:
        LcmError: if it is no run, was written before runs could be compared, or a file is missing or damaged.
    """
    run = Run.open(folder, name)
    if "definitions" not in run.summary:
        raise LcmError(f"{run.name} does not say by which definitions its measures were made: {_AGAIN}")
    assert run.values.width and run.queries.width, "what is missing or damaged is told now"
    return run


def disagreements(baseline: Run, candidate: Run) -> Iterator[Disagreement]:
    """What two runs were not made alike in, as far as both say it."""
    ours, theirs = baseline.summary["dataset"], candidate.summary["dataset"]
    told = (
        ("dataset", ours["name"], theirs["name"]),
        ("protocol", ours["protocol"], theirs["protocol"]),
        ("dataset digest", ours["digest"], theirs["digest"]),
        (_OF_MEASURES, baseline.summary["definitions"], candidate.summary["definitions"]),
        *_told_settings(baseline.config, candidate.config),
    )
    return (Disagreement(*one) for one in told if one[1] != one[2])


def shared_queries(sides: Sequence[Run]) -> pl.DataFrame:
    """The queries of the first side that all others were asked, too: alike in id, words and evidence."""
    asked = [
        {
            (one, text, tuple(sorted(evidence or ())))
            for one, text, evidence in side.queries.select(_IDENTITY).iter_rows()
        }
        for side in sides
    ]
    shared = {query_id for query_id, *_ in set.intersection(*asked)}
    return sides[0].queries.filter(pl.col("query_id").is_in(list(shared)))


def require_comparable(baseline: Run, candidate: Run, measures: Sequence[str]) -> list[str]:
    """Refuse runs whose numbers do not mean the same.

    Args:
        measures: those that are to be compared.
    Returns:
        Of these, the ones that both sides have; one that neither has is left out.
    Raises:
        LcmError: naming what they differ in, and both values; or which has no number, and why.
    """
    for role, side in (("baseline", baseline), ("candidate", candidate)):
        if not side.measures:  # an external memory that did not run
            why = next((flag for flag in side.summary.get("flags", ()) if "no number" in flag), "its notes say why")
            raise LcmError(f"the {role} has no number to be compared by: {why}")
    _refuse(disagreements(baseline, candidate))
    levels = Disagreement("levels", *(", ".join(_levels(side)) for side in (baseline, candidate)))
    _refuse(iter([levels] if levels.baseline != levels.candidate else []))
    _require_same_queries("", set(baseline.queries["query_id"]), set(candidate.queries["query_id"]))
    known = {side.name: set(side.measures) for side in (baseline, candidate)}
    judged = []
    for measure in measures:
        has = [measure in set(side.measures) for side in (baseline, candidate)]
        if any(has) and not all(has):
            only = "baseline" if has[0] else "candidate"
            raise LcmError(
                f"{measure} was measured of the {only} only: {_ALIKE}, or leave it out with "
                f"regress.measures={{{measure}:null}}"
            )
        if all(has):
            judged.append(measure)
    if not judged:
        there = ", ".join(sorted(known[baseline.name] & known[candidate.name])) or "none"
        raise LcmError(f"neither run has any of {', '.join(measures)}: choose regress.measures from: {there}")
    told = {*baseline.directions, *candidate.directions}
    if untold := next((measure for measure in judged if measure not in told), None):
        raise LcmError(
            f"neither run says whether more or less of {untold} is better: evaluate one of them again with this lcm"
        )
    for measure in judged:
        ours, theirs = (_with_value(side, measure) for side in (baseline, candidate))
        may_lack = [side.is_external for side in (baseline, candidate)]
        if not (ours & theirs and (may_lack[0] or theirs <= ours) and (may_lack[1] or ours <= theirs)):
            _require_same_queries(f"{measure} of ", ours, theirs)
    return judged


def without_pair(baseline: Run, candidate: Run, measure: str) -> tuple[set[str], set[str]]:
    """The queries that have a value of a measure on the baseline's side alone, and on the candidate's alone: external
    memories leave some unanswered, or unjudged."""
    ours, theirs = (_with_value(side, measure) for side in (baseline, candidate))
    return ours - theirs, theirs - ours


def _with_value(side: Run, measure: str) -> set[str]:
    return set(side.values.filter(measure=measure)["query_id"])


def require_same_settings(baseline: Mapping[str, Any], candidate: Mapping[str, Any]) -> None:
    """Refuse configurations that measure otherwise, as far as both of them say how.

    Args:
        baseline: its whole configuration, as plain data.
        candidate: alike.
    Raises:
        LcmError: naming the first key that differs, and both values.
    """
    told = _told_settings(baseline, candidate)
    _refuse(Disagreement(*one) for one in told if one[1] != one[2])


def unknown_settings(baseline: Run, candidate: Run) -> list[str]:
    """The settings that may differ unseen, for the `config.yaml` of a side is missing or does not have them."""
    configs = [side.config for side in (baseline, candidate)]
    groups = [group for group in SETTINGS if not all(_nodes(config, group) for config in configs)]
    of_both = [_settings(config) for config in configs]
    either = {
        key: None
        for place in _places(configs[0]).keys() & _places(configs[1]).keys()
        for settings in of_both
        for key in settings
        if key.startswith(f"{place}.") and place.partition(".")[0] not in groups
    }
    return [*groups, *sorted(key for key in either if not all(key in settings for settings in of_both))]


def _told_settings(baseline: Mapping[str, Any], candidate: Mapping[str, Any]) -> list[tuple[str, object, object]]:
    """Key and both values of each setting that both tell."""
    ours, theirs = _settings(baseline), _settings(candidate)
    return [(key, ours[key], theirs[key]) for key in ours if key in theirs]


def _levels(run: Run) -> list[str]:
    """At which levels retrieval was measured: some of message, session."""
    leveled = [name for name in run.measures if kind_of(name) in RANKING_MEASURES and not name.startswith("tokens")]
    return sorted({"session" if name.removeprefix(REPAIRED).startswith("session.") else "message" for name in leveled})


def _settings(config: Mapping[str, Any]) -> dict[str, object]:
    """By key; the class of a component stands under the component's own place."""
    found: dict[str, object] = {}
    for place, node in _places(config).items():
        for name, value in node.items():
            key = place if name == "_target_" else f"{place}.{name}"
            if key not in _FREE:
                found[key] = sorted(value) if name == "levels" else value
    return found


def _places(config: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    nodes = {place: node for group in SETTINGS for place, node in _nodes(config, group).items()}
    return {place: node for place, node in nodes.items() if not is_timing(node)}


def _nodes(config: Mapping[str, Any], group: str) -> dict[str, Mapping[str, Any]]:
    """The component of a group, or each of several, by its place; empty where the configuration does not tell."""
    node = config.get(group)
    if not isinstance(node, Mapping):
        return {}
    if group == MEASURES:  # one component is how they were kept once, the others beside it
        parts = {} if "_target_" in node else node
        return {f"{group}.{name}": part for name, part in parts.items() if isinstance(part, Mapping)}
    return {group: node}


def _refuse(found: Iterator[Disagreement]) -> None:
    if first := next(found, None):
        raise LcmError(f"{first.told()}; {_ALIKE}")


def _require_same_queries(what: str, ours: Collection[str], theirs: Collection[str]) -> None:
    ours, theirs = set(ours), set(theirs)
    if ours == theirs:
        return
    raise LcmError(
        f"{what}{len(ours):,} queries of the baseline and {len(theirs):,} of the candidate: {len(ours - theirs):,} are "
        f"missing in the candidate and {len(theirs - ours):,} in the baseline, such as {min(ours ^ theirs)}; {_ALIKE}"
    )


def _short(value: object) -> str:
    """A digest by its first digits; anything else as it is."""
    text = str(value)
    return text[:12] if len(text) == 64 and " " not in text else repr(value)
