"""Long commands on disks that are too small, read-only, or of too many files: as a program, in a namespace of its own.

`unshare -rm python -m tests.faults.full_disk FOLDER COMMAND ...` mounts a disk in memory for each try, runs a command
on it until that ends, makes room, runs it again, and prints a line of JSON: the command, both exit codes, what was
said, and whether the answer is that of an undisturbed run.
"""

import itertools
import json
import random
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from lcm.store.store import Store
from tests.faults.written_files import (
    COMPACT,
    EVALUATE,
    SWEEP,
    TUNE,
    ask,
    at,
    compacted,
    lcm,
    lcm_or_raise,
    numbers,
    swept,
    tuned,
    write_talks,
)

SEED = 20260110
_ROOM_KIB = 256 * 1024
_LEAST_KIB = 64
DESCRIPTORS = (2, 3, 6)
"""How many files may be opened where there are few: each stops the commands elsewhere."""
RUN = (*EVALUATE, "hydra.run.dir=runs/base")
IN_WORKERS = ("executor=local", "executor.workers=2")
COMPACT_IN_WORKERS = (*(part for part in COMPACT if part not in ("shards=1", "executor=none")), "shards=2", *IN_WORKERS)


def said_of_store() -> Any:
    with Store("memory.db") as store:
        return [(one.message_id, one.content) for one in store.messages()]


Commands = dict[str, tuple[tuple[str, ...], Callable[[], Any]]]
ALONE: Commands = {
    "ingest": (("ingest", "talks", "into=memory.db"), said_of_store),
    "compact": (COMPACT, compacted),
    "evaluate": (RUN, lambda: numbers("runs/base")),
    "sweep": (SWEEP, swept),
    "tune": (TUNE, tuned),
}
"""What takes long in one process: how it is given, and what it has made."""
COMMANDS: Commands = {
    **ALONE,
    "compact in workers": (COMPACT_IN_WORKERS, lambda: compacted(COMPACT_IN_WORKERS)),
    "evaluate in workers": ((*RUN, *IN_WORKERS), lambda: numbers("runs/base")),
}


def main(folder: Path, names: Sequence[str]) -> None:
    rng = random.Random(SEED)
    inputs = folder / "inputs"
    inputs.mkdir()
    write_talks(inputs)
    with at(inputs):
        lcm_or_raise("questions", "make", "talks", "into=questions.jsonl")
    shutil.rmtree(inputs / "cache", ignore_errors=True)
    for name in names:
        command, answer = COMMANDS[name]
        place = _mounted(folder / f"whole-{name}", inputs, _ROOM_KIB)
        with at(place):
            lcm_or_raise(*command)
            size = rng.randrange(_LEAST_KIB, shutil.disk_usage(place).used // 1024)
            whole = repr(answer())
        _unmounted(place)
        ways: list[tuple[str, int | None, int | None]] = [(f"{size} KiB", size, None), ("read-only", None, None)]
        ways += [(f"{left} files", None, left) for left in DESCRIPTORS]
        for how, kib, left in ways:
            told = _tried(folder / f"{how}-{name}", inputs, name, whole, kib, left)
            print(json.dumps({"command": name, "how": how, **told}), flush=True)


def _tried(place: Path, inputs: Path, name: str, whole: str, size: int | None, left: int | None) -> dict[str, Any]:
    """One try on a disk of a size in KiB; None = it is read-only or, where `left` files may be opened, roomy."""
    command, answer = COMMANDS[name]
    _mounted(place, inputs, size or _ROOM_KIB)
    if size is None and left is None:
        _mount("-o", "remount,ro", str(place))
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    if left is not None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (_limit_that_leaves(left), limits[1]))
    with at(place):
        first = ask(partial(lcm, *command))
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        _mount("-o", f"remount,rw,size={_ROOM_KIB}k", str(place))
        second = ask(partial(lcm, *command))
        if first.answer == 0 and name.startswith("evaluate"):  # it is complete, and not run again
            second.answer = 0
        found = repr(answer()) if second.answer == 0 else None
    _unmounted(place)
    return {
        "first": first.answer, "second": second.answer, "is_equal": found == whole, "again": second.text[-400:],
        "told": [line for line in first.text.splitlines() if line.startswith("lcm: ")][-3:],
        "is_raw": first.is_raw or "a defect" in first.text,
    }  # fmt: skip


def _limit_that_leaves(n: int) -> int:
    used = {int(one.name) for one in Path("/proc/self/fd").iterdir()}
    free = (number for number in range(max(used) + n + 1) if number not in used)
    return 1 + list(itertools.islice(free, n))[-1]


def _mounted(place: Path, inputs: Path, size_kib: int) -> Path:
    place.mkdir()
    held = sum(1 + path.stat().st_size // 4096 for path in inputs.rglob("*")) * 4 + 16
    _mount("-t", "tmpfs", "-o", f"size={held + size_kib}k", "tmpfs", str(place))
    shutil.copytree(inputs, place, dirs_exist_ok=True)
    return place


def _unmounted(place: Path) -> None:
    subprocess.run(["umount", "-l", str(place)], check=True)  # where the system has it
    place.rmdir()


def _mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)  # likewise


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:] or tuple(COMMANDS))
