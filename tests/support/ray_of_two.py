"""A Ray of two workers on this machine, for all tests of a process: it takes seconds to start."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from eval.executor import Ray

RAY_OF_TWO = (pytest.mark.slow, pytest.mark.xdist_group("ray"))


@pytest.fixture(scope="session")
def ray_of_two() -> Iterator[None]:
    """Whoever works by Ray finds it started."""
    folder = Path(tempfile.mkdtemp(prefix="ray", dir="/tmp"))  # names of sockets are short
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_TMPDIR", str(folder))
        with Ray(workers=2)._connected() as ray:
            assert ray.cluster_resources()["CPU"] == 2
            yield
    shutil.rmtree(folder, ignore_errors=True)
