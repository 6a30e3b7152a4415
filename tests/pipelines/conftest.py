"""`lcm` in this process, in an empty folder, without a model."""

import json
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pipelines import cli
from pipelines.views import progress

QUICK = (
    *("system=hybrid", "embedder=hashing", "arms=none", "tracking=none", "report=false"),
    *("measures.latency.queries=0", "means.resamples=20"),
)
"""An evaluation of the bundled sample that takes a second."""


@dataclass(frozen=True)
class Finished:
    """What `lcm` left behind."""

    code: int
    stdout: str
    stderr: str
    place: Path

    @property
    def summaries(self) -> list[Path]:
        return sorted(self.place.rglob("summary.json"))

    @property
    def folder(self) -> Path:
        """Of the one run."""
        (summary,) = self.summaries
        return summary.parent

    @property
    def summary(self) -> dict[str, Any]:
        return json.loads((self.folder / "summary.json").read_text())


Lcm = Callable[..., Finished]


@pytest.fixture(scope="session", autouse=True)
def wide_enough_for_every_column() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "200")
        yield


@pytest.fixture
def no_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a command says is the same however busy the machine is."""
    monkeypatch.setattr(progress, "FIRST_AFTER_S", math.inf)


@pytest.fixture
def lcm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Lcm:
    """Run `lcm ARGUMENTS` in the folder `place`, with a cache of its own."""
    monkeypatch.setattr(sys, "argv", sys.argv)
    monkeypatch.delenv("LCM_DATASETS_DIR", raising=False)
    monkeypatch.setenv("LCM_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "200")  # where tests from elsewhere take this fixture alone
    monkeypatch.setattr(progress, "FIRST_AFTER_S", math.inf)

    def run(*arguments: str, place: str = "here") -> Finished:
        folder = tmp_path / place
        folder.mkdir(exist_ok=True)
        monkeypatch.chdir(folder)
        capsys.readouterr()
        code = cli.run(list(arguments))
        return Finished(code, *capsys.readouterr(), folder)

    return run
