"""The report page of any folder: of a run, a comparison, a sweep, a study or a gate."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl
from omegaconf import OmegaConf

from eval.comparison.comparison import Comparison
from eval.comparison.report import read_comparison
from eval.dataset.card import Card
from eval.dataset.dataset import Dataset
from eval.experiment.experiment import Progress
from eval.measures.names import SYSTEM_ARM
from eval.regression.report import read_regression
from eval.report.comparison_page import comparison_page, regression_page
from eval.report.explorer import Explorer, Texts
from eval.report.page import PAGE, ReportPage, write_page
from eval.report.ranking import Insight, ShownRanking, columns_of_run, insight_of, queries_of
from eval.report.run_page import about, run_page
from eval.report.study_page import study_page, sweep_page
from eval.run import Run, read_summary
from eval.study.results import compared_by
from eval.study.settings import DEFAULT, TRIAL_FOLDERS
from eval.study.sweep import point_of, read_points
from eval.table import counted
from lcm.errors import LcmError
from lcm.files import from_here
from pipelines.config import building
from pipelines.steps.interruption import interruption
from pipelines.steps.runs import dataset_of_run, repeated_run

_log = logging.getLogger(__name__)
_MOST_TEXT = 12 << 20
"""Bytes of the words in a page; the rest of the 20 MB that a page may have is for rankings and contexts."""
_MOST_SIDES = 5
_MOST_POINTS = 8
_MISFITS = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, pl.exceptions.PolarsError)
_IS_BRIEF = "`lcm report` of the folder adds how every stage treated the evidence, contexts and summaries"


def reported(folder: Path, show: Progress, dataset: Dataset | None = None, *, asks_memories: bool = False) -> str:
    """Write the page of a folder that was just made; returns what to say last: where it is.

    What was found is complete without it, so whatever keeps it from being written is told, and stops nothing.
    """
    try:
        return f"Page: {from_here(Reporter(show, asks_memories, dataset).write(folder))}"
    except Exception as error:
        if interruption(error):
            raise
        _log.debug("the page of %s could not be written", folder, exc_info=error)
        told = str(error) if isinstance(error, (LcmError, OSError)) else f"{type(error).__name__}: {error}"
        return f"The page could not be written: {' '.join(told.split())}"


@dataclass(frozen=True, slots=True)
class Reporter:
    """Writes the page of a folder."""

    show: Progress
    asks_memories: bool = True
    """Whether memories are asked again: for ladders, losses by stage, contexts and summaries, which takes about as long
    as the ranking of each run did."""
    dataset: Dataset | None = None
    """That of the runs, where it is at hand; None = as their configuration says."""

    def write(self, folder: Path, into: Path | None = None) -> Path:
        """Write the page; returns its path."""
        path = into or folder / PAGE
        write_page(path, self.page(folder))
        return path

    def page(self, folder: Path) -> ReportPage:
        """The page of a folder.

        Raises:
            LcmError: if the folder holds nothing complete, or not what lcm writes.
        """
        try:
            return self._page(folder)
        except _MISFITS as error:  # the shapes of what is read are checked; not whether all of it fits together
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            raise LcmError(
                f"{folder} holds what no page can be made of ({reason:.200}; --debug shows where): make it again"
            ) from error

    def _page(self, folder: Path) -> ReportPage:
        kind = str(read_summary(folder).get("kind", "run"))
        makers: Mapping[str, Callable[[Path], ReportPage]] = {
            "run": self._of_run,
            "comparison": self._of_comparison,
            "regression": self._of_regression,
            "sweep": self._of_sweep,
            "study": self._of_study,
        }
        if kind not in makers:
            raise LcmError(f"{folder} holds a {kind}, of which there is no page: name one of: {', '.join(makers)}")
        return makers[kind](folder)

    def of_comparison(self, comparison: Comparison) -> ReportPage:
        baseline = comparison.baseline.side
        others = [one.side for one in comparison.standings if not one.is_baseline]
        columns, queries, notes = self._sides([*others[:1], baseline, *others[1:]])
        page = comparison_page(comparison, columns, queries, _card(baseline))
        self._explore(page, baseline, columns, queries, notes)
        return page

    def _of_run(self, folder: Path) -> ReportPage:
        run = Run.open(folder, SYSTEM_ARM)
        insight, notes = self._insight(run)
        columns, queries = columns_of_run(run, insight), queries_of(run)
        page = run_page(run, columns, queries, _card(run))
        self._explore(page, run, columns, queries, notes)
        return page

    def _of_comparison(self, folder: Path) -> ReportPage:
        return self.of_comparison(read_comparison(folder))

    def _of_regression(self, folder: Path) -> ReportPage:
        found = read_regression(folder)
        columns, queries, notes = self._sides([found.candidate, found.baseline])
        page = regression_page(found, columns, queries, _card(found.baseline))
        self._explore(page, found.baseline, columns, queries, notes)
        return page

    def _of_sweep(self, folder: Path) -> ReportPage:
        results, summary = read_points(folder), read_summary(folder)
        first = next((Run(point_of(folder, one.name)) for one in results if one.summary is not None), None)
        page = sweep_page(folder, results, compared_by(results), None if first is None else _card(first))
        best = summary.get("best")
        if best:
            named = {
                best["folder"]: best["label"],
                best["baseline"]: "default" if best["is_default"] else "first point",
            }
            others = sorted(results, key=lambda one: -(one.value(best["measure"]) or 0.0))
            named = {**named, **{one.name: one.label for one in others if one.name not in named}}
            if best["is_default"] and best["folder"] == best["baseline"]:
                named[best["folder"]] = f"{best['label']} (the default)"
            self._explore_points([Run(point_of(folder, name), label) for name, label in named.items()], page)
        return page

    def _of_study(self, folder: Path) -> ReportPage:
        page = study_page(folder)
        summary = read_summary(folder)
        best = summary.get("best")
        names = dict.fromkeys([best["folder"], best["baseline"]] if best else [summary["tags"]["best_trial"]])
        trials = folder / TRIAL_FOLDERS
        runs = [Run(point_of(trials, name), name if name == DEFAULT else f"trial {name}") for name in names]
        self._explore_points(runs, page)
        return page

    def _explore_points(self, runs: Sequence[Run], page: ReportPage) -> None:
        """The explorer of points that were asked the same: what was chosen, then what it is held against, then
        others, as many as a page may hold."""
        there = list({run.name: run for run in runs if (run.folder / "per_query.parquet").is_file()}.values())
        if not there:
            return
        digest = there[0].summary["dataset"]["digest"]
        alike = [run for run in there if run.summary["dataset"]["digest"] == digest]
        notes = []
        if more := len(alike[_MOST_POINTS:]):
            notes.append(f"{counted(more, 'more point stands', 'more points stand')} in the tables alone")
        if other := len(there) - len(alike):
            notes.append(f"{counted(other, 'point was', 'points were')} asked another dataset: each has its own page")
        columns = [columns_of_run(run, with_arms=False)[0] for run in alike[:_MOST_POINTS]]
        self._explore(page, there[0], columns, queries_of(there[0]), notes)

    def _sides(self, sides: Sequence[Run]) -> tuple[list[ShownRanking], pl.DataFrame, list[str]]:
        """The rankings of the sides, over the questions that all of them were asked."""
        columns, notes = [], []
        for side in sides[:_MOST_SIDES]:
            insight, told = self._insight(side)
            columns.append(columns_of_run(side, insight, with_arms=False)[0])
            notes += told
        if len(sides) > _MOST_SIDES:
            more = len(sides) - _MOST_SIDES
            notes.append(f"{counted(more, 'more side stands', 'more sides stand')} in the tables alone")
        queries = queries_of(sides[0])
        for side in sides[1:]:
            queries = queries.join(side.queries.select("query_id"), on="query_id", how="semi", maintain_order="left")
        return columns, queries, list(dict.fromkeys(notes))

    def _explore(
        self,
        page: ReportPage,
        run: Run,
        columns: Sequence[ShownRanking],
        queries: pl.DataFrame,
        notes: Sequence[str],
    ) -> None:
        """Pack the explorer into a page; not where nothing was asked."""
        if queries.is_empty():
            return
        dataset, missing = (self.dataset, "") if self.dataset is not None else dataset_at_hand(run)
        told = [*notes, *([missing] if missing else [])]
        if any(column.ranking.is_empty() for column in columns):
            told.append("a folder holds no run.parquet: what it ranked is not at hand")
        explorer = Explorer(queries, columns, about(run.summary), told)
        explorer.pack(page.blocks, Texts(dataset, _MOST_TEXT))

    def _insight(self, run: Run) -> tuple[Insight | None, list[str]]:
        """What lies behind a run's rankings, or why that is not told."""
        if not self.asks_memories:
            return None, [_IS_BRIEF]
        try:
            again = repeated_run(run.folder)
            evaluator = again.experiment.evaluator
            asked, total = 0, len(evaluator.dataset.queries)

            def progress(queries: int) -> None:
                nonlocal asked
                asked += queries
                self.show("looking into", asked, total)

            return insight_of(evaluator, progress, again.require_same), []
        except (LcmError, ValueError, OSError) as error:
            return None, [f"how every stage treated the evidence is not told: {error}"]


def dataset_at_hand(run: Run) -> tuple[Dataset | None, str]:
    """The dataset of a run, loaded anew, or why it is not at hand."""
    try:
        return dataset_of_run(run), ""
    except (LcmError, ValueError, OSError) as error:
        return None, f"the dataset is not at hand, so words are not shown: {error}"


def _card(run: Run) -> Card | None:
    """The card of a run's dataset, where its configuration names one that can be built."""
    try:
        alone = OmegaConf.create({"dataset": run.config.get("dataset")})
        card: Card = building.build(alone, "dataset").card
    except (LcmError, ValueError, AttributeError):
        return None
    return card
