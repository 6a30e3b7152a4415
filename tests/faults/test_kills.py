"""kill -9 of each long command at a random moment: the same command again makes what it would have made."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.kills import COMMANDS


@pytest.mark.slow
@pytest.mark.parametrize(
    ("names", "kills", "after"),
    [
        pytest.param(("evaluate", "sweep", "tune"), 3, 0.6, id="a run, a sweep and a study"),
        pytest.param(tuple(COMMANDS), 2 * len(COMMANDS), 0.0, id="all", marks=pytest.mark.full),
    ],
)
def test_a_killed_command_given_again_makes_the_same(
    names: tuple[str, ...], kills: int, after: float, root: Path
) -> None:
    """What writes a store, a batch or an index is killed in CI by tests of its own; a sweep and a study late, when
    something of them is finished."""
    command = [sys.executable, "-m", "tests.faults.kills", *names, f"n={kills}", f"after={after}"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "WRONG" not in done.stdout
    assert f"| all | {kills} | {kills} |" in done.stdout
