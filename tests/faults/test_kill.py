"""kill -9 at any statement of ingest and compaction: what was committed is there, and the batch goes on to its end."""

import random
import shutil
import signal
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from eval.batch.replay import Triggers
from lcm.store.store import Store
from tests.faults.batch import FILES, failures, outcome, work, write_files
from tests.faults.forking import Ask, warm

SEED = 20260105
POINTS: dict[Triggers, tuple[int, int]] = {"per_turn": (10, 2), "at_end": (8, 1)}
"""How many points are drawn inside a transaction, and how many outside."""


@pytest.fixture(scope="module")
def children(root: Path) -> Iterator[Ask]:
    with warm(root, "tests.faults.batch") as ask:
        yield ask


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder in memory where there is one: nothing here depends on the disk, for a kill leaves its cache alone."""
    memory = Path("/dev/shm")  # a folder of our own is made there
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        yield Path(folder)


@pytest.mark.slow
def test_a_batch_killed_at_any_statement_goes_on_to_the_same_end(children: Ask, place: Path) -> None:
    shard = write_files(place)
    Store(place / "empty.db").close()
    rng = random.Random(SEED)
    killed = Counter[str]()

    def run(into: Path, at: int = 0, after: bool = False) -> dict[str, Any]:
        into.mkdir()
        shutil.copy(place / "empty.db", into / f"{shard.name}.db")  # kills while the schema is made are another test's
        asked = {"into": str(into), "files": str(place), "triggers": triggers, "at": at, "after": after}
        return children(asked)[0]

    for triggers, (inside, outside) in POINTS.items():
        finished = run(place / f"whole {triggers}")
        assert finished["status"] == 0
        undisturbed = outcome(place / f"whole {triggers}", shard)
        assert all(undisturbed["done"])
        assert not failures(place / f"whole {triggers}" / f"{shard.name}.db")
        summaries = [summary for name, found in undisturbed.items() if "talk" in name for summary in found[2]]
        assert max(summary.depth for summary in summaries) >= 2
        assert len(summaries) > 5 * FILES
        flags = finished["said"][-1].removeprefix("finished ")
        points = [
            *rng.sample([at for at, flag in enumerate(flags, 1) if flag == "1"], inside),
            *rng.sample([at for at, flag in enumerate(flags, 1) if flag == "0"], outside),
        ]
        for at in points:
            into = place / "killed"
            ended = run(into, at, rng.random() < 0.5)
            assert ended["status"] == -signal.SIGKILL
            (_, where, verb) = next(line.split() for line in ended["said"] if line.startswith("killed"))
            killed[where] += 1
            commits = [line.split()[1:] for line in ended["said"] if line.startswith("committed")]
            committed = [int(number) for number in commits[-1]] if commits else [0, 0]
            with Store(into / f"{shard.name}.db") as store:
                here = [store.message_frame().height, store.summary_frame().height]
            assert not failures(into / f"{shard.name}.db"), f"{triggers}, statement {at}"
            if verb == "COMMIT":  # which may have been done
                assert all(now >= then for now, then in zip(here, committed, strict=True))
            else:
                assert here == committed
            work(into, shard, triggers)
            assert outcome(into, shard) == undisturbed, f"{triggers}, statement {at} of {len(flags)}"
            shutil.rmtree(into)
    assert killed.total() == sum(map(sum, POINTS.values()))
    assert killed["inside"] >= 15
