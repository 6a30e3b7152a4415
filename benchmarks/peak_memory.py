"""How much memory a process needs at most while it takes in a long transcript."""

import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks import corpus
from eval.experiment.experiment import Progress
from lcm.checks import check_range

# Between us and the command stands a process that is small when it forks: what a child needed at most counts what
# its parent held when it was forked off, and we hold a lot.
_OBSERVER = """
import resource, subprocess, sys
code = subprocess.call(sys.argv[1:], stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(code)
"""
_MB = 2**20
_SMALL_BYTES = _MB // 16


@dataclass(frozen=True, slots=True)
class IngestPeak:
    """The peak memory of ingesting one transcript in a process of its own."""

    transcript_bytes: int
    messages: int
    peak_mb: float
    """Resident memory at most, in MiB; the interpreter and its libraries included."""
    seconds: float
    """Of the whole process."""


@dataclass(frozen=True, slots=True)
class PeakMemory:
    """Peaks for a transcript of `transcript_mb` MiB and, to tell what the process needs anyway, for one of 64 KiB."""

    transcript_mb: float

    def __post_init__(self) -> None:
        check_range(self, "transcript_mb", gt=0)

    def run(self, seed: int, progress: Progress) -> list[IngestPeak]:
        """Write the transcripts and have them taken in."""
        sizes = (_SMALL_BYTES, int(self.transcript_mb * _MB))
        peaks = []
        with tempfile.TemporaryDirectory() as folder:
            for done, size in enumerate(sizes):
                progress("watching memory", done, len(sizes))
                file = Path(folder) / f"{size}.jsonl"
                messages = corpus.write_chat(file, size, seed)
                peaks.append(IngestPeak(file.stat().st_size, messages, *peak_of_ingest(file)))
                file.unlink()
        progress("watching memory", len(sizes), len(sizes))
        return peaks


def peak_of_ingest(path: Path) -> tuple[float, float]:
    """Run `lcm ingest` on a transcript in a new process; returns its peak of resident memory in MiB and its seconds."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pipelines.cli", "ingest", str(path.resolve()), "into=workspace.db"]
        return peak_of(command, Path(folder))


def peak_of(command: list[str], folder: Path) -> tuple[float, float]:
    """Run a command in a folder; returns its peak of resident memory in MiB and its seconds.

    Raises:
        RuntimeError: if it fails, with the end of what it said.
    """
    started = time.perf_counter()
    done = subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-c", _OBSERVER, *command], cwd=folder, capture_output=True, text=True, check=False
    )
    seconds = time.perf_counter() - started
    if done.returncode:
        said = " ".join(done.stderr.split())[-500:]
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}: {said}")
    return int(done.stdout) / 1024, seconds
