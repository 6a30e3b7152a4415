"""Plots of a study, most of them by Optuna."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from eval.tuning.study_report import StudyReport

_SLICES = 12
"""Keys that are drawn, the most important first."""
_DPI = 110
_PANEL_INCHES = 3.2


def write_plots(folder: Path, study: Any, report: StudyReport) -> list[str]:
    """Draw what there is enough of to draw; returns the names of the files, in the order to look at them.

    history.png: the trials as they came. importance.png: what the first objective depends on, where that is told.
    slices.png: it against each key. pareto.png: two or three objectives against each other.
    """
    import matplotlib

    matplotlib.use("Agg")
    from optuna.visualization import matplotlib as drawn

    first = report.objectives[0]
    names = [one.measure for one in report.objectives]
    target: dict[str, Any] = {"target": lambda trial: trial.values[0], "target_name": first.measure}
    searched = dict.fromkeys(key for trial in report.complete for key in trial.assignment)
    keys = list(report.importances or searched)[:_SLICES]
    plots: dict[str, Callable[[], Any]] = {}
    if 2 <= len(names) <= 3:
        plots["pareto.png"] = lambda: drawn.plot_pareto_front(study, target_names=names)
    # Without a target, which a single objective needs none of, the best so far is drawn too.
    plots["history.png"] = lambda: drawn.plot_optimization_history(study, **(target if len(names) > 1 else {}))
    if report.importances:
        plots["importance.png"] = lambda: _bars(report)
    if len(report.complete) > 1:
        plots["slices.png"] = lambda: drawn.plot_slice(study, params=keys, **target)
    for name, draw in plots.items():
        _draw(folder / name, draw)
    return list(plots)


def _bars(report: StudyReport) -> Any:
    import matplotlib.pyplot as plt

    keys = list(report.importances)[:_SLICES][::-1]
    _, axes = plt.subplots(figsize=(7, 0.6 + 0.4 * len(keys)))
    axes.barh(keys, [report.importances[key] for key in keys])
    axes.set_xlabel(f"share of what {report.objectives[0].measure} depends on (PED-ANOVA)")
    return axes


def _draw(path: Path, draw: Callable[[], Any]) -> None:
    import matplotlib.pyplot as plt
    from matplotlib.figure import Figure

    from lcm.files import written_whole

    with warnings.catch_warnings():  # of axes without an extent, where few trials differ
        warnings.simplefilter("ignore", UserWarning)
        drawn = draw()
    axes = drawn if hasattr(drawn, "get_figure") else drawn.flat[0]
    figure = axes.get_figure()
    assert isinstance(figure, Figure)
    panels = len(getattr(drawn, "flat", ()))
    if panels > 1:
        figure.set_size_inches(_PANEL_INCHES * panels, 4)
    try:
        with written_whole(path) as file:
            figure.savefig(file, dpi=_DPI, bbox_inches="tight")
    finally:
        plt.close(figure)
