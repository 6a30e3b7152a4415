"""The plot of a sweep: a measure over a swept number, or a heat map over two.

Distractors are drawn as what they make of a haystack: the messages that a query sees, in a logarithmic scale.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from eval.sweep.results import HAYSTACK, PointResult, drawn, generated_labels, numbers
from lcm.files import written_whole

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
