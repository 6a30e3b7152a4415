"""The page of a sweep: its points side by side, what the best gains beyond chance, and what each setting does."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from eval.dataset.card import Card
from eval.report.comparison_page import dataset
from eval.report.figure import Interval, intervals, lines
from eval.report.parts import Figure, Notes, Part, ReportPage, Section
from eval.report.run_page import survived
from eval.run import read_summary, read_table
from eval.study.gain import next_commands, paired_table
from eval.study.results import (
    HAYSTACK,
    PointResult,
    drawn,
    generated_labels,
    is_cost,
    numbers,
    points_table,
    repeated_notes,
)
from eval.table import sentence

_MOST_MEASURES = 9
_MOST_LINES = 8
_DRAWN = {"query": "judged questions", "conversation": "conversations"}


def sweep_page(
    folder: Path, results: Sequence[PointResult], measures: Sequence[str], card: Card | None = None
) -> ReportPage:
    """A page without its explorer.

    Args:
        measures: the columns of the table.
        card: of the dataset, where it is known.
    """
    summary = read_summary(folder)
    paired = read_table(folder / "paired.parquet")
    finished = sum(result.summary is not None for result in results)
    best = summary.get("best")
    found = [
        _points(results, list(measures)[:_MOST_MEASURES], best),
        _gains(paired, best, results),
        _curves(results, measures),
        _failures(results),
        _datasets(results, card),
        survived(summary | {"notes": [*repeated_notes(results), *summary.get("notes", ())]}),
    ]
    return ReportPage(
        kind="sweep",
        title=f"{folder.resolve().name}: {finished} of {len(results)} points",
        headline=_headline(folder, summary),
        sections=[section for section in found if section is not None],
        label=generated_labels(results),
    )


def _headline(folder: Path, summary: Mapping[str, Any]) -> list[str]:
    """What the sweep came to, in the words of the terminal, and what can be done with it next."""
    best = summary.get("best")
    if best is None:
        return ["No point is best: none finished, or all are equal."]
    told = best.get("told") or summary["tags"]["best_point"]
    is_better = best.get("verdict") == "better"
    commands = zip(("Next", "Or"), next_commands(folder, is_better=is_better), strict=False)
    its_folder = [f"Its folder: {best['folder']}."] if is_better else []
    return [f"{sentence(told)}.", *its_folder, *(f"{word}: {command}" for word, command in commands)]


def _points(results: Sequence[PointResult], measures: Sequence[str], best: Mapping[str, Any] | None) -> Section:
    stars = {} if best is None else best.get("stars", {})
    table = points_table(results, measures, stars)
    rows = []
    for result, (label, *others) in zip(results, table.rows, strict=True):
        is_best = best is not None and best.get("verdict") == "better" and result.name == best["folder"]
        is_default = best is not None and best["is_default"] and result.name == best["baseline"]
        told = label._replace(tone="own" if is_best else "", note="the default" if is_default else "")
        rows.append((told, *others))
    starred = "; * is the best, and significantly better than the baseline" if stars else ""
    caption = f"Means over {_DRAWN[drawn(results)]}{starred}"
    return Section("points", "The points", [replace(table, rows=rows, caption=caption)])


def _gains(paired: pl.DataFrame, best: Mapping[str, Any] | None, results: Sequence[PointResult]) -> Section | None:
    if paired.is_empty() or best is None:
        return None
    label = next((one.label for one in results if one.name == best["baseline"]), "")
    baseline = "the default" if best["is_default"] else label
    shown = [
        Interval(f"{row['point']} {row['label']}", row["difference"], row["low"], row["high"])
        for row in paired.iter_rows(named=True)
    ]
    measure = paired["measure"][0]
    figure = Figure(
        f"{measure}: each point against {baseline}",
        intervals(shown[:30], f"differences of {measure}; the table tells the numbers", zero=0.0),
    )
    word = "question" if drawn(results) == "query" else "conversation"
    caption = f"Paired by {word}; the intervals hold for all points together, p is corrected over all of them (Holm)"
    table = replace(paired_table(paired, baseline), caption=caption)
    return Section("gains", "What they gain beyond chance", [figure, table])


def _curves(results: Sequence[PointResult], measures: Sequence[str]) -> Section | None:
    """Of each swept number a figure: a line for each setting of the other keys."""
    finished = [result for result in results if result.summary is not None]
    quality = next((name for name in measures if not is_cost(results, name)), None)
    swept = list(dict.fromkeys(key for result in finished for key in result.settings))
    parts: list[Part] = []
    for key in swept if quality is not None else ():
        values = numbers([result.settings.get(key) for result in finished])
        if values is None or len(set(values)) < 2:
            continue
        if key == HAYSTACK:
            values = [float(result.messages_a_query or 0) for result in finished]
        series: dict[str, list[tuple[float, float]]] = {}
        for value, result in zip(values, finished, strict=True):
            others = " ".join(f"{other}={result.settings.get(other)}" for other in swept if other != key)
            y = result.value(quality or "")
            if y is not None:
                series.setdefault(others or str(quality), []).append((value, y))
        shown = {name: sorted(line) for name, line in list(series.items())[:_MOST_LINES]}
        words = f"{quality} by {'messages that a question sees' if key == HAYSTACK else key}"
        parts.append(Figure(words, lines(shown, f"{words}; the table tells the numbers", key, str(quality))))
    return Section("settings", "What the settings do", parts) if parts else None


def _datasets(results: Sequence[PointResult], card: Card | None) -> Section | None:
    """What the points were asked: one dataset mostly; of a sweep over datasets, each."""
    asked: dict[str, Mapping[str, Any]] = {}
    for result in results:
        if result.summary is not None:
            asked.setdefault(result.summary["dataset"]["digest"], result.summary)
    sections = [
        dataset(one, one["counts"]["queries"], one["counts"]["judged_queries"], card if len(asked) == 1 else None)
        for one in asked.values()
    ]
    return Section("dataset", sections[0].title, [part for one in sections for part in one.parts]) if sections else None


def _failures(results: Sequence[PointResult]) -> Section | None:
    told = [
        f"point {i}, {result.label}: {result.error}" for i, result in enumerate(results) if result.error is not None
    ]
    return Section("failures", "What failed", [Notes(told)]) if told else None
