"""A benchmark on disk: every figure as JSON, the growth curves as a picture."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from eval.benchmark.growth import Curve
from eval.benchmark.peak_memory import IngestPeak
from eval.benchmark.timing import Comparison
from eval.run import environment, write_json
from lcm.files import written_whole

FIGURES = "benchmark.json"
PICTURE = "benchmark.png"


@dataclass(frozen=True, slots=True)
class Report:
    """What one benchmark measured."""

    comparisons: Sequence[Comparison]
    curves: Sequence[Curve]
    peaks: Sequence[IngestPeak]

    @property
    def missed(self) -> list[str]:
        """The comparisons whose ratio is not what it should be."""
        return [comparison.name for comparison in self.comparisons if comparison.is_met is False]


def write_report(folder: Path, report: Report, config: dict[str, Any], seconds: float) -> None:
    """Write the picture and, last, the figures."""
    if report.curves:
        draw_curves(folder / PICTURE, report.curves)
    figures = {
        "comparisons": [asdict(comparison) | {"is_met": comparison.is_met} for comparison in report.comparisons],
        "growth": [asdict(curve) | {"exponent": curve.exponent} for curve in report.curves],
        "memory": [asdict(peak) for peak in report.peaks],
        "missed": report.missed,
        "seconds": seconds,
        "config": config,
        "environment": environment(),
    }
    write_json(folder / FIGURES, figures)


def draw_curves(path: Path, curves: Sequence[Curve]) -> None:
    """One panel a family, both axes logarithmic, a line an operation; dotted: what linear growth would be."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # takes half a second to import
    from matplotlib.figure import Figure

    families = list(dict.fromkeys(curve.family for curve in curves))
    figure = Figure(figsize=(4 * len(families), 4), layout="constrained")
    FigureCanvasAgg(figure)
    for axes, family in zip(figure.subplots(1, len(families), squeeze=False)[0], families, strict=True):
        shown = [curve for curve in curves if curve.family == family]
        of_what = "seconds" if shown[0].unit == "s" else shown[0].unit
        axes.set(xscale="log", yscale="log", title=family, xlabel="documents", ylabel=of_what)
        for curve in shown:
            slope = "" if curve.exponent is None else f" (n^{curve.exponent:.2f})"
            axes.plot(curve.sizes, curve.seconds, marker="o", label=f"{curve.operation}{slope}")
        least = min(curve.seconds[0] for curve in shown)
        sizes = shown[0].sizes
        axes.plot(sizes, [least * size / sizes[0] for size in sizes], ":", color="grey", label="linear")
        axes.legend(fontsize="small")
    with written_whole(path) as file:
        figure.savefig(file, dpi=120)
