"""kill -9 at any statement of ingest and compaction: what was committed is there, and the batch goes on to its end."""

import json
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from eval.batch.replay import Triggers
from lcm.store.connection import connect
from lcm.store.doctor import DoctorCheck, scan
from lcm.store.store import Store
from tests.faults.batch import FILES, outcome, work, write_files

SEED = 20260105
POINTS: dict[Triggers, tuple[int, int]] = {"per_turn": (95, 15), "at_end": (80, 10)}
"""How many points are drawn inside a transaction, and how many outside; 200 in all, and a quarter in the fast part."""

Child = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def child(root: Path) -> Iterator[Child]:
    """Run a batch in a forked process, killed at a statement; 0: to its end."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.faults.zygote"],
        cwd=root,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as zygote:

        def run(into: Path, files: Path, triggers: Triggers, at: int = 0, after: bool = False) -> dict[str, Any]:
            asked = {"into": str(into), "files": str(files), "triggers": triggers, "at": at, "after": after}
            zygote.stdin.write(json.dumps(asked) + "\n")
            zygote.stdin.flush()
            return json.loads(zygote.stdout.readline())

        yield run
        zygote.stdin.close()


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder in memory where there is one: nothing here depends on the disk, for a kill leaves its cache alone."""
    memory = Path("/dev/shm")  # a folder of our own is made there
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        yield Path(folder)


@pytest.mark.parametrize("share", [4, pytest.param(1, marks=pytest.mark.full)])
def test_a_batch_killed_at_any_statement_goes_on_to_the_same_end(
    share: int, child: Child, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shard = write_files(place)
    empty = place / "empty.db"
    Store(empty).close()
    rng = random.Random(SEED)
    killed: Counter[tuple[str, str]] = Counter()
    for triggers, (inside, outside) in POINTS.items():
        whole = place / f"whole {triggers}"
        whole.mkdir()
        shutil.copy(empty, whole / f"{shard.name}.db")
        finished = child(whole, place, triggers)
        assert finished["status"] == 0
        undisturbed = outcome(whole, shard)
        assert all(undisturbed["done"])
        assert not failures(whole / f"{shard.name}.db")
        summaries = [summary for name, found in undisturbed.items() if "talk" in name for summary in found[2]]
        assert max(summary.depth for summary in summaries) >= 2
        assert len(summaries) > 5 * FILES
        flags = finished["said"][-1].removeprefix("finished ")
        points = [
            *rng.sample([at for at, flag in enumerate(flags, 1) if flag == "1"], inside // share),
            *rng.sample([at for at, flag in enumerate(flags, 1) if flag == "0"], outside // share),
        ]
        for at in points:
            into = place / "killed"
            into.mkdir()
            shutil.copy(empty, into / f"{shard.name}.db")  # kills while the schema is made are another test's
            ended = child(into, place, triggers, at, rng.random() < 0.5)
            assert ended["status"] == -signal.SIGKILL
            *_, (_, where, phase) = (line.split() for line in ended["said"] if line.startswith("killed"))
            killed[where, phase] += 1
            commits = [line.split()[1:] for line in ended["said"] if line.startswith("committed")]
            committed = [int(number) for number in commits[-1]] if commits else [0, 0]
            with Store(into / f"{shard.name}.db") as store:
                here = [store.message_frame().height, store.summary_frame().height]
            assert not failures(into / f"{shard.name}.db"), f"{triggers}, statement {at}"
            if phase == "transaction":  # the commit itself may have been done
                assert all(now >= then for now, then in zip(here, committed, strict=True))
            else:
                assert here == committed
            work(into, shard, triggers)
            assert outcome(into, shard) == undisturbed, f"{triggers}, statement {at} of {len(flags)}"
            shutil.rmtree(into)
    with capsys.disabled():
        phases = ", ".join(f"{n} {where} {phase}" for (where, phase), n in sorted(killed.items()))
        print(f"\n{killed.total()} kills, inside or outside a transaction: {phases}")
    assert killed.total() == sum(inside // share + outside // share for inside, outside in POINTS.values())
    assert sum(n for (where, _), n in killed.items() if where == "inside") >= 150 // share
    assert {"ingest", "compaction", "reading", "transaction"} <= {phase for _, phase in killed}


def failures(path: Path) -> list[DoctorCheck]:
    with closing(connect(path)) as connection:
        return [check for check in scan(connection) if check.status == "fail"]
