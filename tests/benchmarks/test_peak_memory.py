"""Peaks of memory: of the command alone, whatever this process holds."""

import sys
from pathlib import Path

import pytest

from benchmarks import peak_memory
from benchmarks.peak_memory import PeakMemory, peak_of


def holding(mib: int) -> list[str]:
    return [sys.executable, "-c", f"block = bytearray(b'x') * ({mib} * 2**20); print('done')"]


def test_a_peak_is_the_commands_own(tmp_path: Path) -> None:
    held = bytearray(b"x") * (400 * 2**20)
    small, seconds = peak_of(holding(1), tmp_path)
    large, _ = peak_of(holding(200), tmp_path)
    assert len(held) > 0
    assert small < 100
    assert 195 < large - small < 205
    assert seconds > 0


def test_a_command_that_fails_is_told_with_what_it_said(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"ended with 3: no such file"):
        peak_of([sys.executable, "-c", "import sys; print('no such file', file=sys.stderr); sys.exit(3)"], tmp_path)


def test_a_small_and_the_wanted_transcript_are_taken_in_by_the_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[tuple[int, int]] = []

    def peak_of(command: list[str], folder: Path) -> tuple[float, float]:
        assert (command[1:4], command[5:]) == (["-m", "pipelines.cli", "ingest"], ["into=workspace.db"])
        file = Path(command[4])
        taken.append((file.stat().st_size, len(file.read_text().splitlines())))
        return 50.0, 1.5

    monkeypatch.setattr(peak_memory, "peak_of", peak_of)
    peaks = PeakMemory(transcript_mb=0.25).run(0, lambda *_: None)
    assert [(peak.transcript_bytes, peak.messages) for peak in peaks] == taken
    assert [(peak.peak_mb, peak.seconds) for peak in peaks] == [(50.0, 1.5)] * 2
    assert [size // 1024 // 16 for size, _ in taken] == [4, 16]


@pytest.mark.parametrize("size", [0, -1, float("nan")])
def test_a_transcript_has_a_size(size: float) -> None:
    with pytest.raises(ValueError, match=r"^transcript_mb must be > 0, got "):
        PeakMemory(transcript_mb=size)
