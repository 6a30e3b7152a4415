"""What the command line does, from Python: `import lcm_harness as lcm` gives what stands here.

Arguments are words of the command line, one each. Nothing is printed but progress and warnings; what is wrong is an
`LcmError`, whose text is the line that the command would end with.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from eval.comparison.report import ROWS, headline, read_comparison, table
from eval.run import PAGE, Run, read_summary, read_table
from eval.study.gain import PAIRED
from eval.study.results import compared_by, points_table
from eval.study.sweep import POINTS, point_of, read_points
from lcm.errors import LcmError
from lcm.files import from_here
from lcm.memory.memory import Memory
from lcm.memory.system import System
from lcm.redaction import redact_logs
from pipelines import cli
from pipelines.config.building import build
from pipelines.config.composition import CONFIGURATION_ERRORS, composed, explain
from pipelines.steps.interruption import INTERRUPTED
from pipelines.views.output import collecting, folder_of

# What a library of ours says of its own bars, which nobody sees: lcm shows its progress itself.
warnings.filterwarnings("ignore", message="IProgress not found")


@dataclass(frozen=True, slots=True)
class _Made:
    """What a command made, in its folder."""

    folder: Path

    @property
    def page(self) -> Path:
        """The page of it."""
        return self.folder / PAGE


@dataclass(frozen=True, slots=True)
class Sweep(_Made):
    """A sweep that was made: its points, each a run."""

    @property
    def table(self) -> pl.DataFrame:
        """A row for each point, in order: what is swept, what was measured."""
        return read_table(self.folder / POINTS)

    @property
    def paired(self) -> pl.DataFrame:
        """Each point against the default, query by query: difference, interval, p after Holm; best first."""
        return read_table(self.folder / PAIRED)

    @property
    def runs(self) -> dict[str, Run]:
        """Label -> the run of each point that finished, in order."""
        points = read_summary(self.folder)["points"]
        return {one["label"]: Run.open(point_of(self.folder, one["folder"])) for one in points if one["error"] is None}

    @property
    def best(self) -> Run:
        """The run of the highest of the points that are significantly better than the default; where none is, of the
        highest of all: `told` says which it is."""
        return Run.open(point_of(self.folder, self._best["folder"]))

    @property
    def told(self) -> str:
        """What the best point is worth, in a sentence."""
        return str(self._best["told"])

    @property
    def _best(self) -> Mapping[str, Any]:
        best = read_summary(self.folder).get("best")
        if not best:
            raise LcmError(f"{self.folder}: none of its points is best, for they are not measured alike; see `table`")
        return dict(best)

    def _repr_html_(self) -> str:
        results, best = read_points(self.folder), read_summary(self.folder).get("best") or {}
        told = points_table(results, compared_by(results), best.get("stars", {}))
        return replace(told, caption=best.get("told", ""), notes=(f"kept in {from_here(self.folder)}",))._repr_html_()


@dataclass(frozen=True, slots=True)
class Comparison(_Made):
    """Sides that were held against the first of them."""

    @property
    def table(self) -> pl.DataFrame:
        """A row for each side and measure: difference from the first side, interval, p after Holm."""
        return read_table(self.folder / ROWS)

    def _repr_html_(self) -> str:
        found = read_comparison(self.folder)
        told = replace(table(found), caption="; ".join(headline(found)), notes=(f"kept in {from_here(self.folder)}",))
        return told._repr_html_()


@dataclass(frozen=True, slots=True)
class Choice:
    """A memory system that has no workspace yet."""

    system: System

    def open(self, path: Path | str = ":memory:") -> Memory:
        """Open the workspace in an SQLite file, made if missing; `with` closes it."""
        return Memory.open(self.system, path)


def evaluate(*arguments: str) -> Run:
    """Evaluate a memory system over a dataset: `evaluate("system=lancedb_pro", "dataset=sample")`.

    Returns:
        The run, complete in its folder, logged as `tracking` says.
    Raises:
        LcmError: if an argument is wrong, or names many runs.
    """
    return Run.open(_made("evaluate", arguments))


def sweep(*arguments: str) -> Sweep:
    """Evaluate every combination of values: `sweep("fusion.dense_weight=0.2,0.5,1.0")`; what ran before is kept.

    Raises:
        LcmError: as `evaluate`; and if a point failed, when all were tried.
    """
    return Sweep(_made("evaluate", ("-m", *arguments)))


def compare(baseline: str | Run, *others: str | Run) -> Comparison:
    """Hold sides against the first of them, as `lcm compare` does: `compare(run, "neighbours")`.

    Args:
        baseline: a run, or whatever a side may be on the command line.
        others: the same; and settings, as `measures=recall@10`.
    Raises:
        LcmError: as `evaluate`; and if sides cannot be compared.
    """
    sides = (str(side.folder) if isinstance(side, Run) else side for side in (baseline, *others))
    return Comparison(_made("compare", list(sides)))


def memory(*arguments: str) -> Choice:
    """The memory system that a configuration describes: `memory("system=unified").open("workspace.db")`."""
    try:
        return Choice(build(composed(list(arguments)), "memory"))
    except CONFIGURATION_ERRORS as error:
        raise LcmError(explain(error)) from error


def _made(pipeline: str, arguments: Sequence[str]) -> Path:
    """Run a command; returns the folder that it made."""
    redact_logs()
    try:
        with collecting() as told:
            code = cli.asked(pipeline, list(arguments))
    except CONFIGURATION_ERRORS as error:
        raise LcmError(explain(error)) from error
    if code == INTERRUPTED:
        raise KeyboardInterrupt
    if told.place is None:
        raise LcmError(f"{' '.join(arguments)} makes nothing: leave out what only shows")
    return (folder_of(told.place) or told.place).absolute()
