"""lcm benchmark [KEY=VALUE ...] [GROUP=CHOICE ...]

Time lcm against the libraries that it stands on, both sides in turns within one run, over synthetic texts; draw how
each operation grows; ask and fill live memories; watch the memory of a long ingest. Kept in runs/DATE/TIME:
benchmark.json, benchmark.png.

  lcm benchmark                                 everything; some minutes
  lcm benchmark repeats=3 sizes=[1000,10000]    less
  lcm benchmark comparisons.embedding=null      leave a comparison out; growth=null, live=null
  lcm benchmark transcript_mb=1024 hnsw.ef=200
  lcm benchmark live.sizes=[600,5000,50000]     live queries of larger memories
  lcm benchmark strict=true                     exit with 1 where a target is missed
  --cfg job                                     show the composed configuration
  --debug                                       show the traceback of an error"""

import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from omegaconf import DictConfig

from eval.benchmark.benchmark import Benchmark
from eval.benchmark.growth import Curve
from eval.benchmark.peak_memory import IngestPeak, peak_of
from eval.benchmark.report import FIGURES, Report, write_report
from eval.benchmark.timing import Comparison
from eval.experiment.run_folder import CONFIG
from lcm.errors import LcmError
from lcm.files import write_text
from lcm.memory.system import System
from pipelines.config import building
from pipelines.config.command_line import Command, claimed
from pipelines.config.composition import composed, explained
from pipelines.views.progress import progress
from pipelines.views.terminal import kept, say, show_table

BENCHMARK = "benchmark"
TARGET_MISSED = 1


def main(asked: Command) -> int:
    """`lcm benchmark [KEY=VALUE ...] [GROUP=CHOICE ...]`."""
    with explained(), claimed(asked) as folder:
        return benchmark(asked.config, folder.absolute())


def benchmark(config: DictConfig, folder: Path) -> int:
    """One run; returns the exit code."""
    started = time.perf_counter()
    if (folder / FIGURES).exists():
        raise LcmError(f"hydra.run.dir={folder} holds a benchmark already: name another folder, or remove that first")
    timed: Benchmark = building.build(config, BENCHMARK)
    is_strict = building.flag(config, "strict")
    with progress() as show:
        report = timed.run(build_system, peak_of_ingest, show)
    plain = building.resolved(config)
    write_text(folder / CONFIG, building.resolved_text(plain))
    write_report(folder, report, plain, time.perf_counter() - started)
    show_report(report, folder)
    return TARGET_MISSED if is_strict and report.missed else 0


def build_system(choices: Sequence[str]) -> System:
    """The memory system of some choices of `lcm evaluate`."""
    system = building.build(composed(choices), "memory")
    assert isinstance(system, System)
    return system


def peak_of_ingest(path: Path) -> tuple[float, float]:
    """Run `lcm ingest` on a transcript in a new process; returns its peak of resident memory in MiB and its seconds."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pipelines.cli", "ingest", str(path.resolve()), "into=workspace.db"]
        return peak_of(command, Path(folder))


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
