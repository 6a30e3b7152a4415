"""What a person sees: tables, progress, warnings."""

import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from eval.dataset.dataset import generated_label
from eval.measures.means import WHOLE_FROM, usual_n, written
from eval.measures.measure import Direction
from eval.measures.names import (
    ANSWER_MEASURES,
    BY_REQUEST,
    CONTEXT_MEASURES,
    HEADLINE,
    RANKING_MEASURES,
    REPAIRED,
    SYSTEM_ARM,
    WHOLE,
    kind_of,
)
from eval.report.answer_tables import answer_tables
from eval.report.contexts import UNCHANGED, are_in_question
from eval.report.conversations import COUNTS
from eval.report.plain import counted
from eval.report.served import served_lines
from eval.shape import sections
from eval.study.gain import PAIRED, Gain, next_commands
from eval.study.results import (
    PointResult,
    changed_measures,
    equal_points,
    generated_labels,
    is_cost,
    repeated_notes,
    why_equal,
)
from eval.tracking.tracking import Log, TrackingError
from lcm.encoding import printable
from lcm.records.summary import LEVELS
from lcm.redaction import redacted
from pipelines.config.command_line import Command, shown
from pipelines.views.fitting import fullest, widest
from pipelines.views.index_table import index_table, points_table
from pipelines.views.output import as_json, folder_of, from_here, output
from pipelines.views.paired_table import INTERVAL, PAIRED_POINTS, paired_table
from pipelines.views.pipe import PipeSafeConsole
from pipelines.views.progress import working

_COLUMNS = 5
"""So many of the most telling measures stand in every table that has them, on 80 columns; intervals where they fit."""
_SHOWN = 20
_FIRST_SHOWN = ("retained", "recoverable", "missing", "context_tokens")
"""Of what survives: what a narrow terminal has room for."""
_SECTION_TITLES = {"waiting": "simulated seconds that turns wait for compaction, over all turns"}

RETAINED = ("retained", "context_tokens", "verbatim", "summarised", "reachable", "expansions")
"""The columns of the table of contexts, as far as they say something."""

Measures = Mapping[str, Mapping[str, float | None]]
"""Measure -> value, n, low, high, as in the summary."""


def console() -> Console:
    """A console as wide as the terminal, or as `COLUMNS` says; of 80 columns where output goes to a file or a pipe."""
    return PipeSafeConsole(soft_wrap=True)


def warn(message: str) -> None:
    if output().is_quiet:
        return
    Console(stderr=True, soft_wrap=True).print(
        printable(redacted(f"lcm: warning: {message}")), highlight=False, markup=False
    )


def warn_in_part(what: str, lines: Sequence[str]) -> None:
    """Warn of each line; of many, of the first, and how many there are."""
    for line in lines[:_SHOWN]:
        warn(f"{what}: {line}")
    if len(lines) > _SHOWN:
        warn(f"{len(lines)} {what} in all")


def say(text: str) -> None:
    """Print words as they are, without colours or markup."""
    console().print(printable(redacted(text)), highlight=False, markup=False)


def say_where(text: str) -> None:
    """Say where a page is served: on stderr where standard output is for a program."""
    out = console() if output().is_for_people else Console(stderr=True, soft_wrap=True)
    out.print(printable(redacted(text)), highlight=False, markup=False)


def kept(place: Path, more: str = "", verb: str = "Kept") -> None:
    """Say where the result of a command lies: its last line but what is logged, and all that is left of it for
    `--quiet`."""
    place = from_here(place)
    output().place = place
    if output().is_quiet and not output().is_json:
        sys.stdout.write(f"{printable(redacted(str(folder_of(place) or place)))}\n")
    else:
        say(f"{verb}: {place}{more}")


def tell_json(value: Any) -> None:
    """The result of a command, as itself has it for a program."""
    output().result = value
    if output().is_for_people:
        say(as_json(value))


def show_table(headings: Sequence[str], rows: Iterable[Sequence[object]], numbers: Collection[str] = ()) -> None:
    """Print a table, its cells as they are: words are folded, and columns of numbers stand to the right, unbroken."""
    table = Table()
    for heading in headings:
        is_number = heading in numbers
        table.add_column(heading, justify="right" if is_number else "left", overflow="fold", no_wrap=is_number)
    for row in rows:
        table.add_row(*(escape(printable(str(cell))) for cell in row))
    console().print(table, highlight=False, soft_wrap=False)


def show_config(command: Command) -> int:
    """Print the configuration that a command looks at; returns the exit code."""
    say(shown(command).rstrip("\n"))
    return 0


def log_and_report(log: Log, folder: Path, parent: Path | None = None) -> bool:
    """Log a complete folder and say where; whether tracking works."""
    try:
        with working("logging"):
            where = log(folder, parent)
    except TrackingError as error:
        warn(str(error))
        return False
    if where and parent is None:
        say(f"Logged: {where}")
    return True


def show_run(
    summary: Mapping[str, Any], folder: Path, directions: Mapping[str, Direction], against: Sequence[str] = ()
) -> None:
    """The run's tables: arms, then categories, then times.

    Args:
        directions: measure of queries -> which way it is better.
        against: which arms the system is better and worse than, a line by rankings and one by answers.
    """
    out = console()
    counts, dataset = summary["counts"], summary["dataset"]
    names = _shown(summary["measures"] or next(iter(summary["arms"].values()), {}))  # it may have no number at all
    costs = [name for name, direction in directions.items() if direction == "lower"]
    label = generated_label(dataset)
    held = ", ".join(counted(counts[f"{noun}s"], noun) for noun in ("workspace", "message", "document"))
    say(
        f"{dataset['name']} ({dataset['protocol']}): {held}; "
        f"{counts['judged_queries']} of {counts['queries']} queries are judged"
    )
    if counts["judged_queries"] and names:
        rows = {SYSTEM_ARM: summary["measures"], **summary["arms"]}
        interval = f"[{summary['interval']['confidence']:.0%} bootstrap interval]"
        _print_table(out, "arm", rows, names, f"{_labelled('mean over judged queries', label)} {interval}", costs)
    for line in (*against, *served_lines(summary)):
        say(line)
    if summary["categories"] and summary["measures"] and names:
        title = _labelled("the system, by category", label)
        _print_table(out, "category", summary["categories"], names, title, costs)
    for heading, title, answered, columns in answer_tables(summary):
        _print_table(out, heading, answered, columns, _labelled(title, label), costs)
    for name, section in summary["timing"].items():
        if name != "seconds" and section:
            parts = [column for column in next(iter(section.values())) if column.endswith("_ms")]
            times = ((part, *(f"{values[column]:.2f}" for column in parts)) for part, values in section.items())
            show_table((f"{name.removesuffix('_ms')}, ms", *(one.removesuffix("_ms") for one in parts)), times)
    headings, searched = index_table(summary)
    if searched:
        show_table(headings, searched, headings[1:])
    _show_contexts(out, summary, costs)
    if summary.get("decisions"):
        total = sum(summary["decisions"].values())
        decided = ((action, n, f"{n / total:.1%}") for action, n in summary["decisions"].items())
        show_table(("candidates", "decided", "share"), decided)
    show_incidents(summary.get("incidents", {}))
    for note in (*summary["notes"], *summary["flags"]):
        say(f"note: {note}")
    kept(folder)


def show_incidents(incidents: Mapping[str, int]) -> None:
    """What failed and was survived, by name and times."""
    for what, times in incidents.items():
        say(survived(what, times))


def survived(what: str, times: int) -> str:
    """What failed and was survived, and how often."""
    return f"survived: {what}, {'once' if times == 1 else f'{times:,} times'}"


def _show_contexts(out: Console, summary: Mapping[str, Any], costs: Collection[str]) -> None:
    """What compaction did, what of the evidence the assembled contexts hold, and summaries beside references."""
    done = summary.get("compression") or {}
    if done.get("summaries"):
        levels = ", ".join(f"{done[level]:g} {level}" for level in LEVELS if done[level])
        by_depth = " / ".join(f"{done[f'depth_{depth}']:g}" for depth in range(int(done["depth"]) + 1))
        out.print(
            f"compaction: {done['ratio']:.2f} times smaller, {done['tokens_saved']:,.0f} tokens saved; "
            f"{done['summaries']:g} summaries ({levels}; by depth {by_depth}), mean fanout {done['fanout']:.1f}, "
            f"mean confidence {done['confidence']:.2f}; {done['recoverability']:.1%} of the messages can be reached",
            highlight=False,
        )
    measures = summary["measures"]
    budgets = [name.partition("@")[2] for name in measures if name.startswith("retained@")]
    if budgets and are_in_question(summary):
        rows = {
            budget: {name: measures[f"{name}@{budget}"] for name in RETAINED if f"{name}@{budget}" in measures}
            for budget in budgets
        }
        told = [name for name in RETAINED if any((row.get(name) or {}).get("value") for row in rows.values())]
        title = "mean share of a query's evidence in the context assembled under a budget of tokens"
        label = generated_label(summary["dataset"])
        _print_table(out, "budget", rows, told or RETAINED, _labelled(title, label), {kind_of(name) for name in costs})
    elif budgets:
        say(f"{UNCHANGED}: what they retain is retained@BUDGET of summary.json")
    for name, section in sections(summary).items():
        arms = [] if name == "answers" else [one for one in section.values() if isinstance(one, Mapping)]
        means = [entry for entries in arms for entry in entries.values()]
        if means and all(isinstance(entry, Mapping) and "value" in entry for entry in means):
            every = dict.fromkeys(name for entries in arms for name in entries)
            names = [*(name for name in _FIRST_SHOWN if name in every), *(n for n in every if n not in _FIRST_SHOWN)]
            tokens = [name for name in names if name.endswith("_tokens") or name in COUNTS]
            title = _SECTION_TITLES.get(name, "mean over conversations")
            _print_table(out, name.replace("_", " "), section, names, title, tokens)


def show_points(results: Sequence[PointResult], folder: Path, gain: Gain | None = None) -> None:
    """One row for each point of a sweep, what is best and significantly better marked, then what the best gains; a
    point without measures did not finish."""
    out = console()
    finished = [result for result in results if result.summary is not None]
    equal = why_equal(results, is_default_apart=gain is not None) or equal_points(folder, results)
    if finished:
        names = compared_by(results)
        rows = {f"{i} {result.label}": result.told for i, result in enumerate(results)}
        stars = {} if gain is None else gain.stars
        starred = f"; * = best, and significantly better than {gain.against}" if gain is not None and stars else ""
        title = _labelled(f"the system, by point{starred}", generated_labels(results))
        costs = [name for name in names if is_cost(results, name)]
        _print_table(out, "point", rows, names, title, costs, stars)
    headings, searched = points_table([result.summary for result in results])
    if searched:
        show_table(headings, searched, headings[1:])
    if gain is not None and not gain.rows.is_empty():
        _show_paired(gain, generated_labels(results))
    for note in (*repeated_notes(results), *equal):
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
    out = console()
    choices = ((), ("p (Holm)",), ("p (Holm)", "difference", INTERVAL))
    table, hidden = fullest(out, partial(paired_table, gain), choices)
    say(_labelled(f"each point against {gain.against}, paired by {gain.drawn}", label))
    out.print(table, highlight=False, soft_wrap=False)
    if hidden:
        say(f"{', '.join(hidden)} in a wider terminal; {PAIRED} in the sweep's folder holds all")
    if (untold := len(gain.rows) - PAIRED_POINTS) > 0:
        say(f"{untold} more points: {PAIRED} in the sweep's folder holds all")


def _labelled(title: str, label: str) -> str:
    return f"{title}; {label}" if label else title


def compared_by(results: Sequence[PointResult]) -> list[str]:
    """The measures that points are compared by: those that the swept part changes, then those of a run's table that all
    have, and what contexts retain."""
    points = [result.measures for result in results if result.measures]
    if not points:
        return []
    names = [*_shown(points[0]), *(name for name in points[0] if name.startswith("retained@"))]
    usual = [name for name in names if all(name in measures for measures in points)]
    return list(dict.fromkeys([*changed_measures(results), *usual]))


def _shown(measures: Measures) -> list[str]:
    known = {name: name for name in measures} | {
        name.removeprefix("session."): name for name in measures if name.removeprefix("session.") not in measures
    }
    usual = {*RANKING_MEASURES, *CONTEXT_MEASURES, *ANSWER_MEASURES}.difference(BY_REQUEST)
    repaired = (f"{REPAIRED}{name}" for name in ("recall@10", "nDCG@10"))
    added = [*repaired, *(name for name in measures if kind_of(name) not in usual)]
    names = dict.fromkeys(known[name] for name in (*HEADLINE, *added, *WHOLE) if name in known)
    return list(names) or [name for name in measures if name not in ANSWER_MEASURES][:6]


def _print_table(
    out: Console,
    heading: str,
    rows: Mapping[str, Measures],
    names: Sequence[str],
    title: str,
    costs: Collection[str] = (),
    stars: Mapping[str, Collection[int]] = MappingProxyType({}),
) -> None:
    """Print the fullest table that fits: columns go from the right while five are left, then intervals."""
    made = partial(_table, heading, rows, costs=costs, stars=stars)
    several = range(len(names), min(len(names), _COLUMNS) - 1, -1)
    found = widest(out, lambda n: made(names=names[:n], with_intervals=True), several)
    with_intervals = found is not None
    if found is None:
        found = widest(out, lambda n: made(names=names[:n], with_intervals=False), range(len(names), 0, -1))
    n, table = found or (1, made(names=names[:1], with_intervals=False))
    kept = names[:n]
    if not with_intervals:
        title = title.partition(" [")[0]
    table.columns[0].max_width = out.width // 2
    say(title)
    out.print(table, highlight=False, soft_wrap=False)
    hidden = [f"{len(names) - len(kept)} more measures"] if len(kept) < len(names) else []
    hidden += [] if with_intervals else ["intervals"]
    if hidden:
        say(f"{' and '.join(hidden)} in a wider terminal; the run folder holds all")


def _table(
    heading: str,
    rows: Mapping[str, Measures],
    names: Sequence[str],
    costs: Collection[str],
    stars: Mapping[str, Collection[int]],
    *,
    with_intervals: bool,
) -> Table:
    table = Table()
    table.add_column(heading, overflow="fold")
    table.add_column("n", justify="right")
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)
    for number, (label, measures) in enumerate(rows.items()):
        n = usual_n(map(measures.get, names))
        cells = (
            _cell(measures.get(name), n, with_intervals, number in stars.get(name, ()), name in costs) for name in names
        )
        table.add_row(escape(label), f"{n:g}", *cells)
    return table


def _cell(
    entry: Mapping[str, float | None] | None, n: float, with_interval: bool, is_starred: bool, is_cost: bool
) -> str:
    """A mean, with its own n where that is not the row's, and perhaps a star; a cost that is written as a whole number
    without its interval."""
    if entry is None or entry["value"] is None:
        return "-"
    star = "*" if is_starred else ""
    own = "" if entry["n"] in (n, None) else f" n={entry['n']:g}"
    mean = f"{written(entry['value'], is_cost)}{star}"
    is_whole = is_cost and entry["value"] > WHOLE_FROM
    if is_whole or not with_interval or entry["low"] is None or entry["high"] is None:
        return f"{mean}{own}"
    return f"{mean} [dim][{_bound(entry['low'])} {_bound(entry['high'])}][/dim]{own}"


def _bound(value: float) -> str:
    """Three digits in four places: `.997`, `1.00`, `12.3`."""
    if abs(value) >= 0.9995:
        return f"{value:#.3g}" if abs(value) < 100 else f"{value:.0f}"
    return f"{value:.3f}".replace("0.", ".", 1)
