"""One trained T5 and one with random weights for all tests and workers, the former exported once."""

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from filelock import FileLock

from lcm.compaction.summarizer.t5 import T5
from lcm.records.summary import SummaryRequest
from tests.lcm.compaction.summarizer.tiny_t5 import build


class TinyT5(NamedTuple):
    trained: Path
    """A folder as transformers saves it; so is the next one."""
    untrained: Path
    cache: Path
    """Holds the exports of both."""


@pytest.fixture(scope="session")
def built_t5(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TinyT5]:
    """Trained by 140 steps, and exported by a first use; the one with random weights is exported by whoever uses it."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:  # the workers' folders are neighbours: what is beside them is shared
        shared = shared.parent
    place = shared / "tiny-t5"
    tiny = TinyT5(place / "tiny", place / "untrained", place / "cache")
    with FileLock(shared / "tiny-t5.lock"), pytest.MonkeyPatch.context() as environment:
        environment.setenv("LCM_CACHE_DIR", str(tiny.cache))
        if not (place / "done").exists():
            build(tiny.untrained, steps=0)
            build(tiny.trained, steps=140)
            T5(model=str(tiny.trained)).summarize(
                [SummaryRequest("the weather was fine again.", 8)], incidents=Counter()
            )
            (place / "done").touch()
    yield tiny


@pytest.fixture
def tiny_t5(built_t5: TinyT5, monkeypatch: pytest.MonkeyPatch) -> TinyT5:
    """The models, and this process's cache with their exports."""
    monkeypatch.setenv("LCM_CACHE_DIR", str(built_t5.cache))
    return built_t5
