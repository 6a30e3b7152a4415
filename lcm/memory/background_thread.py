"""One thread that compacts beside the others, one context after another, and dies with the process."""

from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Thread

from lcm.records.summary import CompactionReport

Job = Callable[[], CompactionReport]
_Given = tuple[Job, Future[CompactionReport]]


class BackgroundThread:
    """Does jobs in the order given, each once; what a job raises is kept for whoever asks for its result.

    A daemon: a job that never ends holds up neither the end of the process nor anybody who does not wait for it.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._jobs = SimpleQueue[_Given | None]()
        self._thread: Thread | None = None

    def submit(self, job: Job) -> Future[CompactionReport]:
        if self._thread is None:
            self._thread = Thread(target=self._work, name=self._name, daemon=True)
            self._thread.start()
        ended = Future[CompactionReport]()
        self._jobs.put((job, ended))
        return ended

    def close(self) -> None:
        """Let it end after the jobs that it was given."""
        self._jobs.put(None)

    def _work(self) -> None:
        while (given := self._jobs.get()) is not None:
            job, ended = given
            try:
                ended.set_result(job())
            except BaseException as error:  # whatever it is: a turn that waits for the job must hear of it
                ended.set_exception(error)
