"""The page of a sweep: its points side by side, what the best gains beyond chance, and what each setting does."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from eval.comparison.wording import interval, probability, signed
from eval.dataset.card import Card
from eval.measures.means import written
from eval.report.comparison_page import dataset
from eval.report.figure import Interval, intervals, lines
from eval.report.parts import Cell, Figure, Notes, Part, ReportPage, Row, Section, Table, Tone
from eval.report.plain import sentence
from eval.report.run_page import survived
from eval.run import read_summary, read_table
from eval.study.gain import next_commands, with_baseline
from eval.study.results import HAYSTACK, PointResult, drawn, generated_labels, is_cost, numbers, repeated_notes

_MOST_MEASURES = 9
_MOST_LINES = 8
_DRAWN = {"query": "judged questions", "conversation": "conversations"}
_TONES: Mapping[str, Tone] = {"better": "better", "worse": "worse"}


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
    costs = {name for name in measures if is_cost(results, name)}
    rows: list[Row] = []
    for number, result in enumerate(results):
        is_best = best is not None and best.get("verdict") == "better" and result.name == best["folder"]
        is_default = best is not None and best["is_default"] and result.name == best["baseline"]
        values = [_value(result, name, number in stars.get(name, ()), name in costs) for name in measures]
        rows.append(
            (Cell(f"{number} {result.label}", "own" if is_best else "", "the default" if is_default else ""), *values)
        )
    starred = "; * is the best, and significantly better than the baseline" if stars else ""
    return Section(
        "points",
        "The points",
        [Table(f"Means over {_DRAWN[drawn(results)]}{starred}", ("point", *measures), rows)],
    )


def _value(result: PointResult, measure: str, is_starred: bool, is_cost: bool) -> Cell:
    entry = result.told.get(measure) if result.summary is not None else None
    if entry is None or entry["value"] is None:
        return Cell("–", "quiet")
    note = "" if entry["low"] is None else f"{written(entry['low'], is_cost)} – {written(entry['high'], is_cost)}"  # type: ignore[arg-type]
    return Cell(f"{written(entry['value'], is_cost)}{'*' if is_starred else ''}", "own" if is_starred else "", note)


def _gains(paired: pl.DataFrame, best: Mapping[str, Any] | None, results: Sequence[PointResult]) -> Section | None:
    if paired.is_empty() or best is None:
        return None
    label = next((one.label for one in results if one.name == best["baseline"]), "")
    baseline = "the default" if best["is_default"] else label
    rows: list[Row] = []
    shown = []
    for row in with_baseline(paired):
        if row is None:
            rows.append((Cell(baseline, "own"), f"{paired['baseline'][0]:.3f}", "", "", "", "baseline"))
            continue
        label = f"{row['point']} {row['label']}"
        difference = signed(row["difference"], row["lower_is_better"])
        verdict = Cell(row["verdict"], _TONES.get(row["verdict"], ""))
        told = (f"{row['candidate']:.3f}", difference, interval(row), probability(row["p_holm"]), verdict)
        rows.append((label, *told))
        shown.append(Interval(label, row["difference"], row["low"], row["high"]))
    measure = paired["measure"][0]
    figure = Figure(
        f"{measure}: each point against {baseline}",
        intervals(shown[:30], f"differences of {measure}; the table tells the numbers", zero=0.0),
    )
    word = "question" if drawn(results) == "query" else "conversation"
    caption = f"Paired by {word}; the intervals hold for all points together, p is corrected over all of them (Holm)"
    table = Table(
        caption,
        ("point", measure, "difference", "95 % interval of all", "p (Holm)", "verdict"),
        rows,
        frozenset({0, 5}),
    )
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
