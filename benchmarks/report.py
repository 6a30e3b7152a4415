"""A benchmark on disk and on the terminal: every figure as JSON, the growth curves as a picture, tables."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path

from benchmarks.growth import Curve
from benchmarks.peak_memory import IngestPeak
from benchmarks.timing import Comparison
from eval.run import environment, write_json
from lcm.files import written_whole
from pipelines.views.terminal import kept, say, show_table

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


def write_report(folder: Path, report: Report, config: object, seconds: float) -> None:
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


def show_report(report: Report, folder: Path) -> None:
    """Print what was measured: comparisons, curves, peaks."""
    if report.comparisons:
        headings = ("comparison", "unit", "ours", "bare", "ratio", "of a round", "target", "met?")
        show_table(headings, map(_row, report.comparisons))
    for sizes, curves in groupby(report.curves, key=lambda curve: curve.sizes):
        counts = (f"{size:,}" for size in sizes)
        show_table(("seconds at so many documents", *counts, "exponent"), map(_curve, curves))
    if report.peaks:
        show_table(("transcript", "messages", "peak of memory", "seconds"), map(_peak, report.peaks))
    for comparison in report.comparisons:
        if comparison.facts:
            facts = ", ".join(f"{name} {value:g}" for name, value in comparison.facts.items())
            say(f"{comparison.name}: {facts}")
    if report.missed:
        say(f"missed: {', '.join(report.missed)}")
    kept(folder)


def _row(comparison: Comparison) -> tuple[str, ...]:
    target = comparison.target
    return (
        comparison.name,
        comparison.unit,
        _figure(comparison.ours),
        _figure(comparison.bare),
        f"{comparison.ratio:.3f}",
        f"{comparison.ratio_low:.3f}-{comparison.ratio_high:.3f}",
        f"{target.bound} {target.limit:g}" if target else "-",
        {True: "yes", False: "missed", None: "-"}[comparison.is_met],
    )


def _figure(value: float) -> str:
    """Four digits, and no exponent where a person reads thousands."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def _curve(curve: Curve) -> tuple[str, ...]:
    slope = "-" if curve.exponent is None else f"{curve.exponent:.2f}"
    name = curve.operation if curve.unit == "s" else f"{curve.operation} ({curve.unit})"
    return name, *(f"{seconds:.4g}" for seconds in curve.seconds), slope


def _peak(peak: IngestPeak) -> tuple[str, ...]:
    size = f"{peak.transcript_bytes / 2**20:.4g} MiB"
    return size, f"{peak.messages:,}", f"{peak.peak_mb:.0f} MiB", f"{peak.seconds:.1f}"
