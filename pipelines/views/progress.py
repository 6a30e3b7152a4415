"""How far a command is, and how long the rest may take."""

import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeElapsedColumn
from rich.text import Text

from eval.experiment import experiment

_PLAIN_EVERY_S = 10.0


@dataclass(slots=True)
class Pace:
    """How long a step takes, by those that were made while it was watched: what was done before took no time here.

    Where fewer steps are done than were, it is about something else of the same name, as the next point of a sweep, and
    begins anew.
    """

    began_s: float = 0.0
    before: int = 0
    """Steps that were done when it began."""
    done: int = 0
    total: int = 0
    last_s: float = 0.0
    """When the last step was made."""

    def watch(self, done: int, total: int, now_s: float) -> None:
        if not self.total or done < self.done or total != self.total:
            self.began_s, self.before, self.last_s = now_s, done, now_s
        elif done > self.done:
            self.last_s = now_s
        self.done, self.total = done, total

    def told(self, now_s: float) -> str:
        """As `3.0 s each, 12 s left`; empty before the first step."""
        steps = self.done - self.before
        if steps < 1 or self.last_s <= self.began_s:
            return ""
        each_s = (self.last_s - self.began_s) / steps
        left_s = max(0.0, each_s * (self.total - self.done) - (now_s - self.last_s))
        rate = f"{each_s:.1f} s each" if each_s >= 1 else f"{1 / each_s:.1f}/s"
        return rate if self.done == self.total else f"{rate}, {_time(left_s)} left"


def _time(seconds: float) -> str:
    whole = round(seconds)
    if whole < 100:
        return f"{whole} s"
    return f"{round(seconds / 60)} min" if seconds < 100 * 60 else f"{seconds / 3600:.1f} h"


class _PaceColumn(ProgressColumn):
    """How fast each task goes, and how long it may still take."""

    def __init__(self, paces: dict[str, Pace]) -> None:
        super().__init__()
        self._paces = paces

    def render(self, task: Task) -> Text:
        return Text(self._paces[task.description].told(time.monotonic()))


@contextmanager
def progress() -> Iterator[experiment.Progress]:
    """A bar with the remaining time on a terminal; elsewhere a plain line now and then."""
    paces: dict[str, Pace] = defaultdict(Pace)
    if sys.stderr.isatty():
        columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
        with Progress(*columns, _PaceColumn(paces), console=Console(stderr=True), transient=True) as bar:
            tasks = {}

            def show(what: str, done: int, total: int) -> None:
                if what not in tasks:
                    tasks[what] = bar.add_task(what, total=total)
                elif done < paces[what].done:
                    bar.reset(tasks[what])
                paces[what].watch(done, total, time.monotonic())
                bar.update(tasks[what], completed=done, total=total)

            yield show
    else:
        told_s: dict[str, float] = defaultdict(time.monotonic)
        """When each was told last, or else begun."""

        def tell(what: str, done: int, total: int) -> None:
            now_s = time.monotonic()
            paces[what].watch(done, total, now_s)
            if now_s - told_s[what] >= _PLAIN_EVERY_S:
                told_s[what] = now_s
                pace = paces[what].told(now_s)
                Console(stderr=True).print(f"{what}: {done} of {total}{pace and f', {pace}'}", highlight=False)

        yield tell
