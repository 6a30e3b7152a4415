"""A leaderboard: runs in tables of those that may be ranked together."""

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from eval.measures.names import HAS_NO_NUMBER
from eval.run import CONFIG, ENVIRONMENT, Run, config_hash, leaves
from eval.tracking.naming import system_name, title
from lcm.consent import OWN
from lcm.derived import changed_in, checked
from lcm.errors import LcmError
from lcm.given import plain_bytes

Numbers = Mapping[str, Any]
"""value, n, low, high of a measure."""


class Terms(NamedTuple):
    """What runs must share to be ranked together."""

    dataset: str
    protocol: str
    digest: str
    definitions: str
    """Of the measures."""
    queries: int
    """That are judged by the measure, whether or not all have a value."""
    confidence: float


class BoardRun(Run):
    """A run that stands on a leaderboard."""

    @property
    def system(self) -> str:
        """In words: the preset, and what else was asked for."""
        return title([system_name(self.summary)], self.overrides)

    @property
    def system_digest(self) -> str:
        """Of all settings of its memory: equal ones are one system on several datasets."""
        return config_hash(self.config.get("memory", {}))

    @property
    def version(self) -> str | None:
        """Of the lcm that made it, as far as the run says so."""
        path = checked(self.folder / ENVIRONMENT, "run `lcm evaluate` again")
        if not path.is_file():
            raise LcmError(f"{self.folder} has no {ENVIRONMENT}: name folders that `lcm evaluate` wrote")
        told: str | None = json.loads(plain_bytes(path))["packages"].get("lcm-harness")
        return told

    @cached_property
    def packages(self) -> tuple[str, ...]:
        """Of others, whose classes its configuration names: as components, and as an external memory."""
        settings = leaves(self.config)
        named = [str(value) for key, value in settings if value and key.endswith(("_target_", "external.target"))]
        return tuple(sorted({name.partition(".")[0] for name in named}.difference(OWN)))

    @property
    def command(self) -> str | None:
        """The command that repeats it; None where nobody composed its configuration from overrides."""
        trust = [f"trust=[{','.join(self.packages)}]"] if self.packages else []
        return shlex.join(["lcm", "evaluate", *self.overrides, *trust]) if "overrides" in self.summary else None


class BoardRow(NamedTuple):
    """A line of a table: a system, or a control arm that was measured beside one."""

    rank: int | None
    """1-based; None of an arm, which is no entry, and of a memory that has no value of some questions: its mean is over
    the others, and proves nothing beside theirs."""
    name: str
    run: BoardRun
    measures: Mapping[str, Numbers]
    is_arm: bool
    lacks: int = 0
    """Of how many of the questions it has no value."""


@dataclass(frozen=True, slots=True)
class Standings:
    """The runs that share their terms, best first."""

    terms: Terms
    rows: tuple[BoardRow, ...]


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """Runs, in tables of those that may be ranked together by one measure."""

    measure: str
    cost: str
    """The measure of tokens that such a number costs."""
    runs: tuple[BoardRun, ...]
    tables: tuple[Standings, ...]
    unranked: Mapping[str, str]
    """Run -> why it has no number."""


def read_board(folders: Sequence[Path], measure: str) -> Leaderboard:
    """Read the folders of runs.

    Raises:
        LcmError: if one is no run, one is named twice, or none has the measure, naming those that there are.
    """
    runs = [_run(f"{number:03d}", folder) for number, folder in enumerate(folders, start=1)]
    places = [run.folder.resolve() for run in runs]
    if twice := [run.folder for run, place in zip(runs, places, strict=True) if places.count(place) > 1]:
        raise LcmError(f"{twice[0]} is named twice: a run stands on a leaderboard once")
    by_terms: dict[Terms, list[BoardRun]] = {}
    unranked = {}
    for run in runs:
        told = run.summary.get("measures", {}).get(measure)
        if told is None or told["value"] is None or not told["n"]:
            why = next((one for one in run.of_external if HAS_NO_NUMBER in one), f"{measure} was not measured")
            unranked[run.name] = f"{run.system}, {run.summary['dataset']['name']}: {why}"
            continue
        by_terms.setdefault(_terms(run, measure), []).append(run)
    if not by_terms:
        known = dict.fromkeys(name for run in runs for name in run.summary.get("measures", {}))
        raise LcmError(f"none of the runs measured {measure}: choose of {', '.join(known) or 'nothing'}")
    for terms in list(by_terms):
        alike = [one for one in by_terms if one._replace(queries=terms.queries) == terms]
        most = max(alike, key=lambda one: one.queries)
        if most != terms and all(run.of_external for run in by_terms[terms]):  # an external memory that lacks values
            by_terms[most] += by_terms.pop(terms)
    tables = tuple(Standings(terms, _rows(of_terms, measure, terms.queries)) for terms, of_terms in by_terms.items())
    cutoff = re.search(r"@\d+$", measure)
    return Leaderboard(measure, f"tokens{cutoff[0] if cutoff else ''}", tuple(runs), tables, unranked)


def _run(name: str, folder: Path) -> BoardRun:
    run = BoardRun.open(folder)
    if changed := changed_in(folder):
        raise LcmError(f"{changed} is damaged: it is not as it was written; run `lcm evaluate` again")
    if not run.config:
        raise LcmError(f"{folder} has no {CONFIG}: name folders that `lcm evaluate` wrote")
    assert run.version != "", "what is missing or damaged is told now"
    return run.having(name)


def _terms(run: BoardRun, measure: str) -> Terms:
    about = run.summary["dataset"]
    measured = [run.summary["measures"], *(run.summary.get("arms", {}).values() if run.of_external else ())]
    return Terms(
        about["name"],
        about.get("protocol", ""),
        about["digest"],
        run.summary.get("definitions", ""),
        max(int(one[measure]["n"] or 0) for one in measured if measure in one),
        float(run.summary.get("interval", {}).get("confidence", 0.0)),
    )


def _rows(runs: Sequence[BoardRun], measure: str, queries: int) -> tuple[BoardRow, ...]:
    """Best first; arms among them, each once where several runs measured the same. Last what lacks questions."""
    sign = 1 if runs[0].directions.get(measure) == "lower" else -1
    rows = []
    for run in runs:
        measures = run.summary["measures"]
        rows.append(
            BoardRow(None, run.system, run, measures, is_arm=False, lacks=queries - int(measures[measure]["n"]))
        )
    seen = set()
    for run in runs:
        for arm, measures in run.summary.get("arms", {}).items():
            told = measures.get(measure) or {"value": None}
            if told["value"] is not None and (key := (arm, *sorted(told.items()))) not in seen:
                seen.add(key)
                rows.append(BoardRow(None, f"arm {arm}", run, measures, is_arm=True))
    rows.sort(key=lambda row: (row.lacks > 0, sign * row.measures[measure]["value"]))
    values = [row.measures[measure]["value"] for row in rows if not row.is_arm and not row.lacks]
    return tuple(
        row if row.is_arm or row.lacks else row._replace(rank=1 + values.index(row.measures[measure]["value"]))
        for row in rows
    )
