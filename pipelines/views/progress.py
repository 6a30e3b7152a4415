"""How far a command is, and how long the rest may take."""

import math
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from html import escape
from importlib import import_module
from threading import Event, Lock, Thread

from rich import progress as bars
from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
from rich.text import Text

from eval import download
from eval.experiment import experiment
from pipelines.views.output import PipeSafeConsole, output, tell_beside

FIRST_AFTER_S = 1.0
"""A step that takes longer is told, where there is no bar."""
_EVERY_S = 10.0
_LOOK_EVERY_S = 0.25


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

    def line(self, now_s: float) -> str:
        """How many steps are done of several, and how long they take."""
        share = f"{self.done} of {self.total}" if self.total > 1 else ""
        return ", ".join(filter(None, (share, self.told(now_s))))

    def told(self, now_s: float) -> str:
        """As `3.0 s each, 12 s left`; before the first step, or of a single one, how long it takes so far."""
        steps = self.done - self.before
        if steps < 1 or self.last_s <= self.began_s or self.total - self.before == 1:
            so_far_s = (self.last_s if steps else now_s) - self.began_s
            return f"{_time(so_far_s)}{'' if steps else ' so far'}" if so_far_s >= FIRST_AFTER_S else ""
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


class _Lines:
    """Plain lines, now and then: of a step that takes more than a second, and then every ten, also while it says
    nothing itself."""

    def __init__(self) -> None:
        self._paces: dict[str, Pace] = defaultdict(Pace)
        self._told_s: dict[str, float] = {}
        self._last = ""
        self._lock = Lock()

    def show(self, what: str, done: int, total: int) -> None:
        now_s = time.monotonic()
        with self._lock:
            self._paces[what].watch(done, total, now_s)
            self._told_s.setdefault(what, now_s - _EVERY_S + FIRST_AFTER_S)
            self._last = what
            self._tell_if_due(what, now_s)

    def look(self, is_over: Event) -> None:
        while not is_over.wait(_LOOK_EVERY_S):
            with self._lock:
                if self._last and self._paces[self._last].done < self._paces[self._last].total:
                    self._tell_if_due(self._last, time.monotonic())

    def _tell_if_due(self, what: str, now_s: float) -> None:
        if now_s - self._told_s[what] < _EVERY_S:
            return
        self._told_s[what] = now_s
        if told := self._paces[what].line(now_s):
            tell_beside(f"{what}: {told}")


class _Cell:
    """One line with a bar below the cell of a notebook, which goes when all is done."""

    def __init__(self) -> None:
        shown = import_module("IPython.display")
        self._html = shown.HTML
        self._line = shown.display(self._html(""), display_id=True)
        self._paces: dict[str, Pace] = defaultdict(Pace)
        self._told_s = -math.inf

    def show(self, what: str, done: int, total: int) -> None:
        now_s = time.monotonic()
        self._paces[what].watch(done, total, now_s)
        if now_s - self._told_s >= _LOOK_EVERY_S:
            self._told_s = now_s
            bar = f'<progress value="{done}" max="{total}"></progress>'
            self._line.update(self._html(f"{bar} {escape(what)}: {self._paces[what].line(now_s)}"))

    def clear(self) -> None:
        self._line.update(self._html(""))


def _is_in_notebook() -> bool:
    """Whether a kernel of Jupyter runs this: it alone has a shell with a kernel."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and getattr(ipython.get_ipython(), "kernel", None) is not None


@contextmanager
def progress() -> Iterator[experiment.Progress]:
    """A bar with the remaining time on a terminal or in a notebook; elsewhere a plain line now and then; nothing for
    `--quiet`."""
    if output().is_quiet:
        yield lambda *_: None
        return
    if _is_in_notebook():
        cell = _Cell()
        try:
            yield cell.show
        finally:
            cell.clear()
        return
    if not sys.stderr.isatty():
        lines, is_over = _Lines(), Event()
        looking = Thread(target=lines.look, args=(is_over,), daemon=True)
        looking.start()
        try:
            yield lines.show
        finally:
            is_over.set()
            looking.join()
        return
    paces: dict[str, Pace] = defaultdict(Pace)
    columns = TextColumn("{task.description}"), BarColumn(), bars.MofNCompleteColumn(), bars.TimeElapsedColumn()
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


@contextmanager
def working(what: str) -> Iterator[None]:
    """A step that cannot say how far it is."""
    with progress() as show:
        show(what, 0, 1)
        yield
        show(what, 1, 1)


Shown = Callable[[str, int | None], AbstractContextManager[download.Progress]]
"""A bar for a file of a name and size, while it comes."""


@contextmanager
def downloading() -> Iterator[Shown]:
    """Show a bar for each file, and its speed."""
    columns = (BarColumn(), bars.DownloadColumn(), bars.TransferSpeedColumn(), bars.TimeRemainingColumn())
    screen = PipeSafeConsole(soft_wrap=True)
    with Progress(TextColumn("{task.description}"), *columns, console=screen, transient=True) as shows:

        @contextmanager
        def shown(name: str, size_bytes: int | None) -> Iterator[download.Progress]:
            task = shows.add_task(name, total=size_bytes)
            yield lambda there, whole: shows.update(task, completed=there, total=whole)
            shows.remove_task(task)

        yield shown
