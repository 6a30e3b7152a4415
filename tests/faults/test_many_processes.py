"""Four processes at one thing at once: nothing is lost, doubled or mixed up, and nobody hears of a defect.

Beside these: stores (`test_two_processes.py`), the stage cache (`tests/eval/cache/test_stage_cache.py`), sweeps
(`tests/pipelines/test_sweep.py`), evaluations that share cache, folder and database
(`tests/pipelines/test_evaluate.py`), and live sessions (`tests/lcm/memory/session`).
"""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.faults.written_files import COMPACT, TUNE, at, compacted, tuned, write_talks

_EMBED = """
from pathlib import Path
from lcm.retrieval.embedder.cache import CachedEmbedder
from lcm.retrieval.embedder.hashing import Hashing

texts = [f"text {i}" for i in range(600)]
with CachedEmbedder(Hashing(), Path("cache")) as embedder:
    assert (embedder.embed(texts, "document") == Hashing().embed(texts, "document")).all()
"""

_LCM = "import sys; from pipelines import cli; sys.exit(cli.run(sys.argv[2:]))"
N = 4


def at_once(root: Path, place: Path, program: str, *arguments: str) -> list[tuple[int, str]]:
    """Run several processes in a folder; returns how each ended, and what it said."""
    environment = {**os.environ, "PYTHONPATH": str(root), "LCM_CACHE_DIR": str(place / "cache")}
    started = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(number), *arguments],
            cwd=place, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )
        for number in range(N)
    ]  # fmt: skip
    said = [process.communicate(timeout=600)[1] for process in started]
    return [(process.returncode, text) for process, text in zip(started, said, strict=True)]


@pytest.mark.slow
def test_a_cache_gives_each_what_it_would_alone(root: Path, tmp_path: Path) -> None:
    assert at_once(root, tmp_path, _EMBED) == [(0, "")] * N


def made_together(
    root: Path, folder: Path, command: tuple[str, ...], answer: Callable[[], Any]
) -> list[tuple[int, str]]:
    """How each of several processes ended that were given a command at once; what they made is what one makes."""
    alone, together = folder / "alone", folder / "together"
    for place in (alone, together):
        place.mkdir()
        write_talks(place)
    ended = at_once(root, together, _LCM, *command)
    with at(alone):
        answer()
        expected = answer()  # the second time, as there
    with at(together):
        assert answer() == expected
    return ended


@pytest.mark.full
def test_a_batch_is_made_once_and_the_others_are_told(root: Path, tmp_path: Path) -> None:
    ended = made_together(root, tmp_path, COMPACT, compacted)
    assert 0 in [code for code, _ in ended]
    assert all(code == 0 or (code == 2 and "another `lcm compact` is at work there" in said) for code, said in ended)


@pytest.mark.full
def test_a_study_is_made_together(root: Path, tmp_path: Path) -> None:
    assert [code for code, _ in made_together(root, tmp_path, TUNE, tuned)] == [0] * N
