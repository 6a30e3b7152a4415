"""`lcm` in this process, in an empty folder, without a model."""

import math
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pipelines import cli
from pipelines.views import progress
from tests.support.looked_at import QUICK, Finished

__all__ = ["QUICK", "Finished"]


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
    """Run `lcm ARGUMENTS` in the folder `place`, with a cache of its own; a whole path names any folder."""
    monkeypatch.setattr(sys, "argv", sys.argv)
    monkeypatch.delenv("LCM_DATASETS_DIR", raising=False)
    monkeypatch.setenv("LCM_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "200")  # where tests from elsewhere take this fixture alone
    monkeypatch.setattr(progress, "FIRST_AFTER_S", math.inf)

    def run(*arguments: str, place: str | Path = "here") -> Finished:
        folder = tmp_path / place
        folder.mkdir(exist_ok=True)
        monkeypatch.chdir(folder)
        capsys.readouterr()
        code = cli.run(list(arguments))
        return Finished(code, *capsys.readouterr(), folder)

    return run
