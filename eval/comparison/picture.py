"""The picture of a comparison: quality against what it costs, in tokens and in time."""

from pathlib import Path
from typing import Any

from eval.comparison.comparison import Comparison, Standing
from lcm.files import written_whole

_LONGEST_NAME = 40
_MOST_NAMED = 12


def draw(comparison: Comparison, path: Path) -> bool:
    """Draw each side at its quality, with the interval of its mean, over its cost; best first in the legend.

    Returns:
        Whether there is a cost to draw it over; nothing is drawn otherwise.
    """
    tokens = comparison.tokens()
    panels: list[tuple[str, list[tuple[int, float]]]] = []
    if tokens is not None and tokens != comparison.by:
        told = [(i, one.means[tokens]["value"]) for i, one in enumerate(comparison.standings) if tokens in one.means]
        panels.append((f"{tokens} (mean a question)", [(i, value) for i, value in told if value is not None]))
    timed = [(i, one.latency_ms["p50_ms"]) for i, one in enumerate(comparison.standings) if one.latency_ms]
    if timed:
        panels.append(("ms a live query (median)", timed))
    if not panels:
        return False
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # here, because importing it takes a second
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6 * len(panels), 5), layout="constrained")
    FigureCanvasAgg(figure)
    of_panel = figure.subplots(1, len(panels), squeeze=False)[0]
    for axes, (cost, points) in zip(of_panel, panels, strict=True):
        for i, value in points:
            _point(axes, comparison, i, value)
        axes.set(xlabel=f"{cost}: less is better", ylabel=comparison.by)
        axes.grid(visible=True, alpha=0.3)
    handles, names = of_panel[0].get_legend_handles_labels()
    figure.legend(handles[:_MOST_NAMED], names[:_MOST_NAMED], loc="outside lower center", fontsize="small", ncols=1)
    if comparison.label:
        figure.suptitle(_plain(comparison.label), fontsize="small")
    with written_whole(path) as file:
        figure.savefig(file, dpi=120)
    return True


def _point(axes: Any, comparison: Comparison, i: int, cost: float) -> None:
    standing = comparison.standings[i]
    mean = standing.means.get(comparison.by)
    if mean is None or mean["value"] is None:
        return
    value = mean["value"]
    ends = [(value - (mean["low"] or 0.0),), ((mean["high"] or 0.0) - value,)] if mean["low"] is not None else None
    marker = "s" if standing.is_baseline else "o"
    axes.errorbar(cost, value, yerr=ends, marker=marker, capsize=3, linestyle="none", label=_name(i, standing))
    axes.annotate(str(i + 1), (cost, value), textcoords="offset points", xytext=(6, 4), fontsize="small")


def _name(i: int, standing: Standing) -> str:
    name = standing.side.name
    short = name if len(name) <= _LONGEST_NAME else f"...{name[-_LONGEST_NAME + 3 :]}"
    return _plain(f"{i + 1} {short}{' (baseline)' if standing.is_baseline else ''}")


def _plain(text: str) -> str:
    """Text that matplotlib does not read as mathematics, and on one line."""
    return " ".join(text.split()).replace("$", r"\$")
