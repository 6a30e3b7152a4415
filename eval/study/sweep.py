"""The folder of a sweep: the folders of its points, and once all were tried what became of them side by side."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from eval.run import BEGAN, SUMMARY, Run, commit, read_summary, read_table, write_frame, write_summary
from eval.study.gain import PAIRED, Gain, not_taken
from eval.study.gain import markdown as gain_markdown
from eval.study.results import (
    HAYSTACK,
    PointResult,
    drawn,
    equal_points,
    frame,
    generated_labels,
    is_cost,
    markdown,
    numbers,
    repeated_notes,
    why_equal,
)
from eval.tracking.entry import system_name, title
from lcm.derived import seal
from lcm.errors import LcmError
from lcm.faults import counting, made_again
from lcm.files import private, write_text, written_whole

_MOST_LINES = 8


def plot(results: Sequence[PointResult], measures: Sequence[str], path: Path) -> bool:
    """Draw what there is to draw.

    Args:
        measures: what to show over one number, a line each; of two numbers only the first is shown.
        path: of the PNG file.
    Returns:
        Whether a number was swept; nothing is drawn otherwise.
    """
    finished = [result for result in results if result.summary is not None]
    swept = list(dict.fromkeys(key for result in finished for key in result.settings))
    values = {key: found for key in swept if (found := numbers([result.settings.get(key) for result in finished]))}
    varied = [key for key in values if len(set(values[key])) > 1]
    if not varied or not measures:
        return False
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # here, because importing it takes a second
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    others = [key for key in swept if key not in varied[:2]]
    if len(varied) >= 2 and _is_grid(finished, others):
        _heat_map(figure, axes, finished, values, varied[:2], measures[0])
    else:
        _lines(axes, finished, values[varied[0]], varied[0], [key for key in swept if key != varied[0]], measures)
    if label := generated_labels(finished):
        figure.suptitle(label, fontsize="small")
    with written_whole(path) as file:
        figure.savefig(file, dpi=120)
    return True


def _is_grid(results: Sequence[PointResult], others: Sequence[str]) -> bool:
    """Whether two numbers are all that was swept."""
    return len({tuple(result.settings.get(key) for key in others) for result in results}) == 1


def _heat_map(
    figure: Any,
    axes: Any,
    results: Sequence[PointResult],
    values: dict[str, list[float]],
    keys: Sequence[str],
    measure: str,
) -> None:
    across, up = (sorted(set(values[key])) for key in keys)
    cells = [[float("nan")] * len(across) for _ in up]
    for i, result in enumerate(results):
        value = result.value(measure)
        if value is not None:
            cells[up.index(values[keys[1]][i])][across.index(values[keys[0]][i])] = value
    image = axes.imshow(cells, origin="lower", aspect="auto", cmap="viridis")
    axes.set_xticks(range(len(across)), [f"{value:g}" for value in across], rotation=45)
    axes.set_yticks(range(len(up)), [f"{value:g}" for value in up])
    axes.set(xlabel=keys[0], ylabel=keys[1], title=measure)
    figure.colorbar(image, ax=axes)


def _lines(
    axes: Any,
    results: Sequence[PointResult],
    values: Sequence[float],
    key: str,
    others: Sequence[str],
    measures: Sequence[str],
) -> None:
    """A line for each measure, or for each setting of the other keys by the first measure."""
    grouped: dict[str, list[tuple[float, PointResult]]] = {}
    if key == HAYSTACK:
        values, key = [result.messages_a_query or 0 for result in results], "messages that a query sees"
        axes.set_xscale("log")
    for value, result in zip(values, results, strict=True):
        group = " ".join(f"{other}={result.settings.get(other)}" for other in others)
        grouped.setdefault(group, []).append((value, result))
    shown = measures[:_MOST_LINES] if len(grouped) == 1 else measures[:1]
    for group, points in list(grouped.items())[:_MOST_LINES]:
        points.sort(key=lambda point: point[0])
        for measure in shown:
            line = [(value, y) for value, result in points if (y := result.value(measure)) is not None]
            axes.plot(*zip(*line, strict=True), marker="o", label=" ".join(filter(None, (measure, group))))
    means = f"mean over {'judged queries' if drawn(results) == 'query' else 'conversations'}"
    axes.set(xlabel=key, ylabel=shown[0] if len(shown) == 1 else means)
    axes.legend(fontsize="small")


POINTS = "points.parquet"
TABLE = "sweep.md"
PLOT = "sweep.png"
_PLOTTED_FIRST = "recall@10"
_LONGEST_TAG = 500


@private()
def write_sweep(
    folder: Path,
    results: Sequence[PointResult],
    measures: Sequence[str],
    wanted: Sequence[Sequence[str]],
    incidents: Counter[str],
    found: Gain | None,
) -> None:
    """Write the table, the plot and, last, the summary, which says that every point was tried.

    A sweep in which nothing has changed since stays as it is.

    Args:
        measures: the columns of the table; of these the plot shows what is no cost.
        wanted: the overrides of each point.
        incidents: what was found damaged and made again, by name and times; those of earlier runs of the sweep stay.
        found: which point is best, if any is, and what it gains.
    """
    told = [{"folder": result.name, "label": result.label, "error": result.error} for result in results]
    table = frame(results)
    before = read_summary(folder) if (folder / SUMMARY).exists() else {}
    with counting(incidents):
        if not incidents and _holds(folder, before, told, table) and before.get("best") == (found and found.record()):
            return
    write_frame(folder / POINTS, table)
    write_frame(folder / PAIRED, pl.DataFrame() if found is None else found.rows)
    seal(folder, (POINTS, PAIRED))
    finished = [result for result in results if result.summary is not None]
    heading = f"{folder.resolve().name}: {len(finished)} of {len(results)} points"
    equal = why_equal(results, is_default_apart=found is not None) or equal_points(folder, results)
    table_text = markdown(results, measures, heading, [*repeated_notes(results), *equal], found.stars if found else {})
    write_text(folder / TABLE, table_text + gain_markdown(found))
    of_queries = {name for result in finished for name in result.measures or {}}
    shares = sorted(
        (name for name in measures if name in of_queries and not is_cost(results, name)),
        key=lambda name: _PLOTTED_FIRST not in name,
    )
    if not plot(results, shares, folder / PLOT):
        (folder / PLOT).unlink(missing_ok=True)
    tops = {name: top for name in measures if name in of_queries and (top := _top(results, found, name)) is not None}
    swept: dict[str, dict[str, None]] = {}
    for result in results:
        for key, value in result.settings.items():
            swept.setdefault(key, {})[value] = None
    common = set(wanted[0]).intersection(*wanted)
    common_overrides = [override for override in wanted[0] if override in common]
    runs = [one.summary for one in finished if one.summary is not None]
    datasets = {one["dataset"]["digest"]: one["dataset"] for one in runs if "dataset" in one}
    label = generated_labels(results).removeprefix("generated questions: ")
    summary = {
        "kind": "sweep",
        "name": "sweep",
        "title": title(_shared(finished), common_overrides, [f"{', '.join(swept)} ({len(results)} points)"]),
        **({"dataset": dict(*datasets.values())} if len(datasets) == 1 else {}),
        "commit": commit(),
        "metrics": {
            "points": len(results),
            "finished": len(finished),
            "failed": len(results) - len(finished),
            **{f"best/{name}": top for name, top in tops.items()},
        },
        "params": {},  # of a run they are never changed; a grid may grow
        "tags": {
            "overrides": " ".join(common_overrides)[:_LONGEST_TAG],
            **{f"swept/{key}": ",".join(values)[:_LONGEST_TAG] for key, values in swept.items()},
            **({"generated_questions": label} if label else {}),
            **({"best_point": found.told()[:_LONGEST_TAG]} if found else {}),
            **({"equal_points": " ".join(equal)[:_LONGEST_TAG]} if equal else {}),
        },
        "incidents": dict(sorted((Counter(before.get("incidents", {})) + incidents).items())),
        "notes": equal,
        "points": told,
        "best": found and found.record(),
    }
    began = [one["timing"]["seconds"][BEGAN] for one in runs if BEGAN in one.get("timing", {}).get("seconds", {})]
    write_summary(folder, summary, min(began, default=None))


def _top(results: Sequence[PointResult], found: Gain | None, measure: str) -> float | None:
    """What the point reached that is best by a measure, and significantly better than what all are held against; where
    none is, what that reached. Where nothing was held against anything, what all points have in common."""
    if found is not None:
        starred = found.stars.get(measure)
        return (results[starred[0]] if starred else found.baseline).value(measure)
    values = {one.value(measure) for one in results} - {None}
    return values.pop() if len(values) == 1 else None


def _shared(finished: Sequence[PointResult]) -> list[str]:
    """The system and the dataset, where all points have the same."""
    told = [one.summary for one in finished if one.summary is not None]
    names = {system_name(one) for one in told}, {str(one["dataset"]["name"]) for one in told if "dataset" in one}
    return [next(iter(found)) for found in names if len(found) == 1]


def point_of(folder: Path, name: str) -> Path:
    """The folder of a point, by the name that the summary of its sweep has for it.

    Raises:
        LcmError: if that is no name of a folder in the sweep's.
    """
    if Path(name).name != name or name == "..":
        raise LcmError(f"{folder / SUMMARY} is damaged: {name!r} is no point of this sweep; repeat the sweep")
    return folder / name


def numbered_point(path: Path) -> tuple[Path, str] | None:
    """The folder of a point that is named by its number, SWEEP/3, and what it is called; None of another path.

    Raises:
        LcmError: if the sweep has no such point, or it did not finish.
    """
    folder = path.parent
    if path.exists() or not path.name.isdecimal() or not (folder / SUMMARY).is_file():
        return None
    summary = read_summary(folder)
    if summary.get("kind") != "sweep":
        return None
    points, number = summary["points"], int(path.name)
    if number >= len(points):
        raise LcmError(f"{folder} has points 0 to {len(points) - 1}, no point {number}")
    if points[number]["error"] is not None:
        raise LcmError(f"{folder}: point {number}, {points[number]['label']}, did not finish; name another")
    return point_of(folder, points[number]["folder"]), points[number]["label"]


def best_point(folder: Path) -> tuple[Path, str]:
    """The folder of the best point of a sweep, and what it is called.

    Raises:
        LcmError: if no point is significantly better than what the sweep is held against, or its folder is not there.
    """
    summary = read_summary(folder)
    best = summary.get("best")
    if not best:
        raise LcmError(f"{folder}: no point of this sweep is best; name one by its number, as {folder}/0")
    point = point_of(folder, best["folder"])
    if best.get("verdict") != "better":
        against = "the default" if best["is_default"] else "the first point"
        number = [one["folder"] for one in summary["points"]].index(best["folder"])
        highest = f"{best['label']}, the highest by {best['measure']}"
        raise LcmError(
            not_taken(str(folder), f"{against} by {best['measure']}", f"the point, as {folder}/{number} ({highest})")
        )
    if not (point / SUMMARY).is_file():
        raise LcmError(f"{point}, the best point of the sweep, is not there: repeat the sweep, or name another point")
    return point, f"{best['label']}, best by {best['measure']}"


def _holds(
    folder: Path, before: Mapping[str, Any], told: Sequence[Mapping[str, str | None]], table: pl.DataFrame
) -> bool:
    """Whether this is what the folder says already."""
    if before.get("points") != told or not all((folder / name).exists() for name in (POINTS, PAIRED)):
        return False
    try:
        read_table(folder / PAIRED)
        return read_table(folder / POINTS).equals(table)
    except LcmError as error:
        made_again("table of a sweep", f"{error}; written again")
        return False


def read_points(folder: Path) -> list[PointResult]:
    """The points of a sweep as its folder keeps them."""
    told = read_summary(folder)["points"]
    table = read_table(folder / POINTS)
    if len(table) != len(told):
        raise LcmError(f"{folder / POINTS} is damaged ({len(table)} points, not {len(told)}); repeat the sweep")
    results = []
    for number, point in enumerate(told):
        kept = point_of(folder, point["folder"])
        run = Run(kept) if point["error"] is None and (kept / SUMMARY).is_file() else None
        results.append(
            PointResult(
                point["folder"],
                point["label"],
                {key: str(table[key][number]) for key in _swept(point["label"]) if key in table.columns},
                run.summary if run else None,
                point["error"],
                run.directions if run else {},
            )
        )
    return results


def _swept(label: str) -> list[str]:
    """The keys that a point's label names."""
    return [one.partition("=")[0].lstrip("+") for one in label.split(" ") if "=" in one]
