"""make benchmark ARGS="[KEY=VALUE ...] [GROUP=CHOICE ...]", or python -m benchmarks, at the top of the checkout

Time lcm against the libraries that it stands on, both sides in turns within one run, over synthetic texts; draw how
each operation grows; ask and fill live memories; watch the memory of a long ingest. Kept in runs/DATE/TIME:
benchmark.json, benchmark.png.

  python -m benchmarks                                 everything; some minutes
  python -m benchmarks repeats=3 sizes=[1000,10000]    less
  python -m benchmarks comparisons.embedding=null      leave a comparison out; growth=null, live=null
  python -m benchmarks transcript_mb=1024 hnsw.ef=200
  python -m benchmarks live.sizes=[600,5000,50000]     live queries of larger memories
  python -m benchmarks strict=true                     exit with 1 where a target is missed
  python -m benchmarks to=FOLDER                       keep it elsewhere

Every key stands in benchmarks/benchmark.yaml, every group in conf/."""

import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from hydra import compose, initialize_config_dir
from hydra.errors import HydraException
from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from benchmarks.growth import Growth
from benchmarks.live import LiveMemory
from benchmarks.peak_memory import PeakMemory
from benchmarks.report import FIGURES, Report, show_report, write_report
from benchmarks.timing import Comparison
from eval.experiment.experiment import Progress
from lcm.errors import LcmError
from pipelines.config.conf_folder import conf_dir
from pipelines.views.progress import progress

TARGET_MISSED, BAD_INPUT = 1, 2


class ComparisonChoice(Protocol):
    """A comparison that a benchmark can run: lcm against a bare library."""

    def run(self, repeats: int, seed: int) -> list[Comparison]:
        """Compare, `repeats` rounds after one that warms up, over synthetic inputs that `seed` decides.

        Raises:
            DisagreementError: if the two sides give different answers.
        """
        ...


def main(arguments: Sequence[str]) -> int:
    """`python -m benchmarks [KEY=VALUE ...]`; returns the exit code."""
    if {"-h", "--help"} & set(arguments):
        sys.stdout.write(f"{__doc__}\n")
        return 0
    try:
        return benchmark(composed(arguments))
    except (LcmError, HydraException, OmegaConfBaseException) as error:
        sys.stderr.write(f"benchmarks: {error}\n")
        return BAD_INPUT


def composed(arguments: Sequence[str]) -> DictConfig:
    """`benchmark.yaml` with the groups of `conf/`, and what was asked for."""
    with initialize_config_dir(str(Path(__file__).resolve().parent), version_base="1.3"):
        return compose("benchmark", [f"hydra.searchpath=[file://{conf_dir()}]", *arguments])


def benchmark(config: DictConfig) -> int:
    """Measure, keep and show; returns the exit code."""
    started, folder = time.perf_counter(), Path(config.to)
    if (folder / FIGURES).exists():
        raise LcmError(f"to={folder} holds a benchmark already: name another folder, or remove that first")
    for key, least in (("repeats", 1), ("seed", 0)):
        if config[key] < least:
            raise LcmError(f"{key} must be >= {least}, got {config[key]}")
    built = {key: instantiate(config[key], _convert_="all") for key in ("comparisons", "growth", "live", "memory")}
    with progress() as show:
        report = measured(**built, repeats=config.repeats, seed=config.seed, show=show)
    folder.mkdir(parents=True, exist_ok=True)
    plain = OmegaConf.to_container(config, resolve=True)
    write_report(folder, report, plain, time.perf_counter() - started)
    show_report(report, folder)
    return TARGET_MISSED if config.strict and report.missed else 0


def measured(
    comparisons: Mapping[str, ComparisonChoice | None] | None,
    growth: Growth | None,
    live: LiveMemory | None,
    memory: PeakMemory | None,
    *,
    repeats: int,
    seed: int,
    show: Progress,
) -> Report:
    """Run one part after the other; None leaves a part out."""
    chosen = [comparison for comparison in (comparisons or {}).values() if comparison is not None]
    found: list[Comparison] = []
    for done, choice in enumerate(chosen):
        show("comparing", done, len(chosen))
        found += choice.run(repeats, seed)
    show("comparing", len(chosen), len(chosen))
    curves = growth.run(repeats, seed, show) if growth else []
    curves += live.run(seed, show) if live else []
    return Report(found, curves, memory.run(seed, show) if memory else [])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
