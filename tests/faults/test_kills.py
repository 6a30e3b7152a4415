"""kill -9 of each long command at a random moment: the same command again makes what it would have made."""

import subprocess
import sys
from pathlib import Path

import pytest

KILLS = 12
"""Two of each command."""


@pytest.mark.full
def test_a_killed_command_given_again_makes_the_same(root: Path) -> None:
    command = [sys.executable, "-m", "tests.faults.kills", f"n={KILLS}"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "WRONG" not in done.stdout
    assert f"| all | {KILLS} | {KILLS} |" in done.stdout
