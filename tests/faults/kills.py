"""kill -9 at any moment of any long command, and the same command again. As a program: the table of `n=200` kills of
the commands that are named, or of all; `after=0.6`: none in the first 60 % of its time.

Each try works in an empty folder with a cache of its own, in a forked process of this warm one. The whole process group
is killed after a time drawn between the start and the end of an undisturbed run; then the command is given again, and
what it has made is held against what the undisturbed one made. A command that ended before its kill is drawn again.
"""

import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib

import eval.batch.replay
import eval.experiment.experiment
import eval.study.folder  # noqa: F401 - loaded before children are made, as what stands around it
import pipelines.compact
import pipelines.evaluate
import pipelines.ingest
import pipelines.questions
import pipelines.steps.trials
import pipelines.tune  # noqa: F401 - likewise
from pipelines import cli
from tests.faults import full_disk
from tests.faults import written_files as made

matplotlib.use("Agg")

SEED = 20260111
_START_S = 0.02
_REFUSED = {"evaluate": cli.BAD_INPUT}
"""A run that was complete when it was killed is not run again."""

Run, Answer = Callable[[], int], Callable[[], Any]
COMMANDS: dict[str, tuple[Run, Answer]] = {
    **{name: (partial(made.lcm, *command), answer) for name, (command, answer) in full_disk.ALONE.items()},
    "index": (lambda: made.filled("tiers"), lambda: made.searched("tiers")),
}
"""What takes long: how it is given, and what it has made."""


@dataclass(frozen=True)
class Ended:
    """One kill: when it was, what the same command said afterwards, and whether it made the same."""

    command: str
    after_s: float
    again: int
    is_equal: bool
    told: str

    @property
    def is_right(self) -> bool:
        is_done = self.again in (0, _REFUSED.get(self.command, 0))
        return is_done and self.is_equal and "Traceback" not in self.told and "a defect" not in self.told


def forked(place: Path, work: Callable[[], int], kill_after_s: float | None = None) -> tuple[int, str]:
    """Work in a folder, in a process group of its own: how that ended, and what was said."""
    child = os.fork()
    if not child:
        code = 1
        try:
            os.setpgid(0, 0)
            os.chdir(place)
            os.environ["LCM_CACHE_DIR"] = str(place / "cache")
            with Path("told.txt").open("w") as said:
                os.dup2(said.fileno(), 1)
                os.dup2(said.fileno(), 2)
            code = work()
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    if kill_after_s is not None:
        time.sleep(kill_after_s)
        try:
            os.killpg(child, signal.SIGKILL)
        except ProcessLookupError:  # it has not yet a group, or has ended
            os.kill(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code, (place / "told.txt").read_text() if (place / "told.txt").exists() else ""


def tries(folder: Path, n: int, names: tuple[str, ...] = tuple(COMMANDS), after: float = 0.0) -> Iterator[Ended]:
    """Kill each of some commands in turn, until so many were killed.

    Args:
        folder: an empty one, best in memory: a kill leaves what the system has in hand alone.
        n: so many.
        names: of the commands.
        after: the share of an undisturbed run's time before which none is killed.
    """
    rng = random.Random(SEED)
    inputs = folder / "inputs"
    inputs.mkdir()
    made.write_talks(inputs)
    code, said = forked(inputs, lambda: made.lcm("questions", "make", "talks", "into=questions.jsonl"))
    assert code == 0, said
    shutil.rmtree(inputs / "cache", ignore_errors=True)
    expected, seconds = {}, {}
    for name in names:
        run, answer = COMMANDS[name]
        place = _fresh(folder, inputs)
        began = time.monotonic()
        code, said = forked(place, run)
        seconds[name] = time.monotonic() - began
        assert code == 0, said
        expected[name] = _answer(place, answer)
        assert expected[name] is not None, f"{name} answers nothing: {(place / 'told.txt').read_text()}"
    killed = 0
    while killed < n:
        name = names[killed % len(names)]
        run, answer = COMMANDS[name]
        place = _fresh(folder, inputs)
        after_s = rng.uniform(max(_START_S, after * seconds[name]), max(2 * _START_S, seconds[name]))
        status, _ = forked(place, run, after_s)
        if status != -signal.SIGKILL:
            seconds[name] = min(seconds[name], after_s)  # it was done by then
            continue
        killed += 1
        again, told = forked(place, run)
        yield Ended(name, after_s, again, _answer(place, answer) == expected[name], told)


def _answer(place: Path, answer: Answer) -> str | None:
    """What a command has made, looked at by another process; None where that cannot be looked at."""
    code, _ = forked(place, lambda: not Path("answer.txt").write_text(repr(answer())))
    return (place / "answer.txt").read_text() if code == 0 else None


def _fresh(folder: Path, inputs: Path) -> Path:
    place = folder / "place"
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(inputs, place)
    return place


def main(names: tuple[str, ...], n: int, after: float) -> None:
    """Print a line for each kill, and a row for each command."""
    killed, right = Counter[str](), Counter[str]()
    memory = Path("/dev/shm")  # a folder of our own is made there
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        for ended in tries(Path(folder), n, names, after):
            killed.update((ended.command, "all"))
            right.update((ended.command, "all") if ended.is_right else ())
            print(f"the same {ended.command}" if ended.is_right else f"WRONG {ended}", flush=True)
    print("| command | kills | the same end |\n|---|---:|---:|")
    for name in (*names, "all"):
        print(f"| {name} | {killed[name]} | {right[name]} |")


if __name__ == "__main__":
    settings = dict(argument.split("=", 1) for argument in sys.argv[1:] if "=" in argument)
    asked = tuple(argument for argument in sys.argv[1:] if "=" not in argument)
    main(asked or tuple(COMMANDS), int(settings.get("n", 200)), float(settings.get("after", 0)))
