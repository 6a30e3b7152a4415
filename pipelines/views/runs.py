"""What a person is told of a run, and of the points of a sweep."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from eval.dataset.dataset import generated_label
from eval.measures.names import SYSTEM_ARM, Direction, telling
from eval.report import run_tables
from eval.study import results as of_points
from eval.study.gain import PAIRED, Gain, next_commands, paired_table
from eval.study.results import PointResult
from eval.table import Table, means_table
from lcm.records.summary import LEVELS
from pipelines.views.output import output
from pipelines.views.terminal import kept, say, show, show_incidents

_SECTION_TITLES = {"waiting": "simulated seconds that turns wait for compaction, over all turns"}
_PAIRED_POINTS = 12
"""So many are shown."""
_WHERE = "the run folder holds all"


def show_run(
    summary: Mapping[str, Any], folder: Path, directions: Mapping[str, Direction], against: Sequence[str] = ()
) -> None:
    """The run's tables: arms, then categories, then times; `against` are lines that say which arms it is better and
    worse than."""
    counts, dataset = summary["counts"], summary["dataset"]
    names = telling(summary["measures"] or next(iter(summary["arms"].values()), {}))  # it may have no number at all
    costs = [name for name, direction in directions.items() if direction == "lower"]
    label = generated_label(dataset)
    say(
        f"{dataset['name']} ({dataset['protocol']}): {run_tables.haystack(counts)}; "
        f"{counts['judged_queries']} of {counts['queries']} queries are judged"
    )
    if counts["judged_queries"] and names:
        rows = {SYSTEM_ARM: summary["measures"], **summary["arms"]}
        interval = f"[{summary['interval']['confidence']:.0%} bootstrap interval]"
        title = f"{_labelled('mean over judged queries', label)} {interval}"
        _show_means(means_table("arm", rows, names, costs), title)
    for line in (*against, *run_tables.served_lines(summary), *run_tables.embedding_lines(summary)):
        say(line)
    if summary["categories"] and summary["measures"] and names:
        _show_means(means_table("category", summary["categories"], names, costs), "the system, by category", label)
    for heading, title, answered, columns in run_tables.answer_tables(summary):
        _show_means(means_table(heading, answered, columns, costs), title, label)
    for timed in (*run_tables.timing_tables(summary), run_tables.index_table(summary)):
        if timed is not None:
            show(timed)
    _show_contexts(summary)
    if summary.get("decisions"):
        show(run_tables.decisions_table(summary["decisions"]))
    show_incidents(summary.get("incidents", {}))
    for note in (*summary["notes"], *summary["flags"]):
        say(f"note: {note}")
    kept(folder)


def _show_contexts(summary: Mapping[str, Any]) -> None:
    """What compaction did, what of the evidence the assembled contexts hold, and summaries beside references."""
    done = summary.get("compression") or {}
    if done.get("summaries"):
        levels = ", ".join(f"{done[level]:g} {level}" for level in LEVELS if done[level])
        by_depth = " / ".join(f"{done[f'depth_{depth}']:g}" for depth in range(int(done["depth"]) + 1))
        say(
            f"compaction: {done['ratio']:.2f} times smaller, {done['tokens_saved']:,.0f} tokens saved; "
            f"{done['summaries']:g} summaries ({levels}; by depth {by_depth}), mean fanout {done['fanout']:.1f}, "
            f"mean confidence {done['confidence']:.2f}; {done['recoverability']:.1%} of the messages can be reached"
        )
    table = run_tables.contexts_table(summary)
    if table is not None and run_tables.are_in_question(summary):
        title = "mean share of a query's evidence in the context assembled under a budget of tokens"
        _show_means(table, title, generated_label(summary["dataset"]))
    elif table is not None:
        say(f"{run_tables.UNCHANGED}: what they retain is retained@BUDGET of summary.json")
    for name, arms in run_tables.sections_of_means(summary).items():
        title = _SECTION_TITLES.get(name, "mean over conversations")
        _show_means(run_tables.conversations_table(name.replace("_", " "), arms), title)


def show_points(results: Sequence[PointResult], folder: Path, gain: Gain | None = None) -> None:
    """One row for each point of a sweep, what is best and significantly better marked, then what the best gains; a
    point without measures did not finish."""
    finished = [result for result in results if result.summary is not None]
    equal = of_points.why_equal(results, is_default_apart=gain is not None) or of_points.equal_points(folder, results)
    label = of_points.generated_labels(results)
    if finished:
        stars = {} if gain is None else gain.stars
        starred = f"; * = best, and significantly better than {gain.against}" if gain is not None and stars else ""
        told = of_points.points_table(results, of_points.compared_by(results), stars)
        _show_means(told, f"the system, by point{starred}", label)
    if (searched := run_tables.searches_table([result.summary for result in results])) is not None:
        show(searched)
    if gain is not None and not gain.rows.is_empty():
        _show_paired(gain, label)
    for note in (*of_points.repeated_notes(results), *equal):
        say(f"note: {note}")
    for i, result in enumerate(results):
        if result.error is not None:
            say(f"point {i} failed: {result.label}: {result.error}")
    if output().is_for_people:
        say(f"{len(finished)} of {len(results)} points kept: {folder}")
    else:
        kept(folder)
    if gain is not None:
        say(gain.told())
        if gain.is_better:
            say(f"its folder: {folder / gain.best.name}")
        for number, command in enumerate(next_commands(folder, is_better=gain.is_better)):
            say(f"{'     ' if number else 'next:'} {command}")


def _show_paired(gain: Gain, label: str) -> None:
    """Points against the baseline, best first: the fullest table that fits."""
    table = paired_table(gain.rows, gain.baseline_name, _PAIRED_POINTS)
    title = f"each point against {gain.against}, paired by {gain.drawn}"
    where = f"{PAIRED} in the sweep's folder holds all"
    show(replace(table, caption=_labelled(title, label)), where)
    if (untold := len(gain.rows) - _PAIRED_POINTS) > 0:
        say(f"{untold} more points: {where}")


def _show_means(table: Table, title: str, label: str = "") -> None:
    show(replace(table, caption=_labelled(title, label)), _WHERE)


def _labelled(title: str, label: str) -> str:
    return f"{title}; {label}" if label else title
