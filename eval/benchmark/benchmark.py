"""A benchmark: comparisons with the raw libraries, growth curves, live memories, and the memory of a long ingest."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from eval.benchmark.growth import Growth
from eval.benchmark.live import BuildSystem, LiveMemory
from eval.benchmark.peak_memory import PeakMemory
from eval.benchmark.report import Report
from eval.benchmark.timing import Comparison
from eval.experiment.experiment import Progress
from lcm.checks import check_range


class ComparisonChoice(Protocol):
    """A comparison that a benchmark can run: lcm against a bare library."""

    def run(self, repeats: int, seed: int) -> list[Comparison]:
        """Compare, `repeats` rounds after one that warms up, over synthetic inputs that `seed` decides.

        Raises:
            DisagreementError: if the two sides give different answers.
        """
        ...


@dataclass(frozen=True, slots=True)
class Benchmark:
    """The parts of a benchmark; null leaves a part out."""

    repeats: int
    seed: int
    comparisons: Mapping[str, ComparisonChoice | None] | None
    growth: Growth | None
    live: LiveMemory | None
    memory: PeakMemory | None

    def __post_init__(self) -> None:
        check_range(self, "repeats", ge=1)
        check_range(self, "seed", ge=0)

    def run(
        self, build: BuildSystem, peak_of_ingest: Callable[[Path], tuple[float, float]], progress: Progress
    ) -> Report:
        """Run everything, one part after the other.

        Args:
            build: builds a system by its choices.
            peak_of_ingest: takes a transcript in, in a new process; gives its peak of memory in MiB and its seconds.
            progress: hears what is being done.
        """
        chosen = [comparison for comparison in (self.comparisons or {}).values() if comparison is not None]
        comparisons: list[Comparison] = []
        for done, choice in enumerate(chosen):
            progress("comparing", done, len(chosen))
            comparisons += choice.run(self.repeats, self.seed)
        progress("comparing", len(chosen), len(chosen))
        curves = self.growth.run(self.repeats, self.seed, progress) if self.growth else []
        curves += self.live.run(self.seed, build, progress) if self.live else []
        peaks = self.memory.run(self.seed, peak_of_ingest, progress) if self.memory else []
        return Report(comparisons, curves, peaks)
