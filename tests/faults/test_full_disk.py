"""A full disk, a read-only one, too few open files: one line with the path, and the same result when there is room."""

import errno
import json
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from lcm.faults import is_of_machine, told
from tests.faults.full_disk import COMMANDS, DESCRIPTORS

CHEAP = ("ingest", "compact")

_UNSHARE = ["unshare", "--map-root-user", "--mount"]


def test_every_refusal_of_the_system_is_a_line_with_path_and_remedy() -> None:
    wrong = []
    for name in ("ENOSPC", "EDQUOT", "EFBIG", "EROFS", "EMFILE", "ENFILE", "EIO"):
        line = told(OSError(getattr(errno, name), "refused"), "runs/a")
        if line is None or not line.startswith("runs/a: refused; ") or not is_of_machine(OSError(errno.ENOSPC, "full")):
            wrong.append((name, line))
    assert not wrong
    assert not is_of_machine(PermissionError(errno.EACCES, "denied", "a"))
    assert told(PermissionError(errno.EACCES, "denied", "a")) == "a: denied; name a path that can be used"
    assert told(sqlite3.OperationalError("no such table: a"), "a") is None


@pytest.mark.slow
@pytest.mark.skipif(
    subprocess.run([*_UNSHARE, "true"], capture_output=True, check=False).returncode != 0,
    reason="no disk can be mounted here without privileges",
)
@pytest.mark.parametrize("names", [CHEAP, pytest.param(tuple(COMMANDS), marks=pytest.mark.full)], ids=["some", "all"])
def test_long_commands_tell_of_a_full_disk_and_go_on_when_there_is_room(
    names: tuple[str, ...], root: Path, tmp_path: Path
) -> None:
    """A disk that is too small for each, one that is read-only, and too few files in three places."""
    command = [*_UNSHARE, sys.executable, "-m", "tests.faults.full_disk", str(tmp_path), *names]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    tries = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(tries) == len(names) * (2 + len(DESCRIPTORS))
    wrong = [
        one
        for one in tries
        if not one["is_equal"] or one["is_raw"] or one["second"] != 0 or one["first"] not in (0, 74)
        or (one["first"] != 0 and not one["told"])
    ]  # fmt: skip
    assert not wrong
    assert sum(one["first"] == 74 for one in tries) > len(names) // 2, "the disks are no longer too small"
