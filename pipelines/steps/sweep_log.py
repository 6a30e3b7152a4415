"""The log of a sweep: its points go below it, several at a time, while the next ones run; what cannot be logged is told
once."""

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from eval.tracking.tracking import Log, Tracking, TrackingError

_AT_ONCE = 8
"""Points that wait for each other: what is the same for all is asked of the server once for so many."""


class SweepLog:
    """Logs folders beside the work; after the first refusal no more is tried."""

    def __init__(self, tracking: Tracking, folder: Path) -> None:
        self._tracking = tracking
        self._folder = folder
        self._thread = ThreadPoolExecutor(1)
        self._opened = ExitStack()
        self._log: Log | None = None
        self._waiting: list[Path] = []
        self._submitted: list[Path] = []
        self._logged: list[Future[None]] = []
        self._refused: str | None = None

    def __enter__(self) -> "SweepLog":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._thread.shutdown(cancel_futures=error is not None)
        self._opened.close()

    def open(self) -> Log:
        """Make ready for what is to be logged; takes seconds, on another core."""
        if self._log is None:
            self._log = self._opened.enter_context(self._tracking.logger())
        return self._log

    def submit(self, folder: Path) -> None:
        """Log a complete point, unless it is there already; with the points that wait, once they are several."""
        if not self._tracking.has(folder):
            self._submitted.append(folder)
            self._waiting.append(folder)
            self.open()
            if len(self._waiting) >= _AT_ONCE:
                self._log_waiting()

    def cancel(self) -> None:
        """Leave out what has not begun."""
        for future in self._logged:
            future.cancel()

    def finish(self) -> tuple[str | None, str | None]:
        """Log the sweep itself, its points being logged; returns where to look, and what is not there and why."""
        self._log_waiting()
        for future in self._logged:
            future.result()
        missing = sum(not self._tracking.has(folder) for folder in self._submitted)
        where = None
        if self._refused is None:
            try:
                where = (self._tracking.log if self._tracking.has(self._folder) else self.open())(self._folder)
            except TrackingError as error:
                self._refused = str(error)
        return where, None if self._refused is None else f"{missing} points were not logged: {self._refused}"

    def _log_waiting(self) -> None:
        if self._waiting:
            self._logged.append(self._thread.submit(self._tried, self.open(), self._waiting))
            self._waiting = []

    def _tried(self, log: Log, folders: Sequence[Path]) -> None:
        if self._refused is None:
            try:
                log(folders, self._folder)
            except TrackingError as error:
                self._refused = str(error)
