"""How far a download is."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from eval import download
from pipelines.views.terminal import console

Shown = Callable[[str, int | None], AbstractContextManager[download.Progress]]
"""A bar for a file of a name and size, while it comes."""


@contextmanager
def downloading() -> Iterator[Shown]:
    """Show a bar for each file, and its speed."""
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=console(), transient=True) as bars:

        @contextmanager
        def shown(name: str, size_bytes: int | None) -> Iterator[download.Progress]:
            task = bars.add_task(name, total=size_bytes)
            yield lambda there, whole: bars.update(task, completed=there, total=whole)
            bars.remove_task(task)

        yield shown
