"""Executors: in which process, and on which machine, the items of a work are done."""

from collections.abc import Callable, Generator, Iterable, Sequence
from typing import NamedTuple, Protocol, TypeVar

from lcm.errors import LcmError
from lcm.faults import MachineFaultError, is_of_machine, told

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

THREAD_COUNTS = (
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "POLARS_MAX_THREADS", "RAYON_NUM_THREADS",
)  # fmt: skip
"""What numeric libraries read when they are imported: a worker each is as many threads as there are cores."""
EXPECTED = (LcmError, OSError, ValueError)
"""What a task raises where something is wrong with its item."""


class FailedItem(NamedTuple):
    """An item of work that its worker did not finish, and why."""

    item: int
    """Its place among the items."""
    reason: str


class WorkerEnd(NamedTuple):
    """The last message of a worker: why it failed, or None where it did not."""

    failure: str | None
    is_of_machine: bool = False
    """Whether the machine is the reason, as a full disk is, rather than the item."""

    def raise_of_machine(self) -> None:
        """Raises MachineFaultError where the machine is the reason: the other items would meet it too."""
        if self.is_of_machine:
            raise MachineFaultError(self.failure)


class Executor(Protocol):
    """An `executor` choice: works on items, each in one place from its beginning to its end.

    Laws: every result of every item is given, those of one item in order; an item that fails gives one `FailedItem` and
    stops no other, but a fault of the machine, such as a full disk, ends all with a `MachineFaultError`; relative paths
    mean the same to a worker as to the caller, where it has the caller's folder; closing what `map` gives, or an error
    in it, ends every worker.
    """

    def map(
        self, task: Callable[[_Item], Iterable[_Result]], items: Sequence[_Item]
    ) -> Generator[_Result | FailedItem, None, None]:
        """Give what `task` gives for each item, as it comes.

        Args:
            task: can be pickled, as can items and results; raises one of `EXPECTED` for what is wrong with its item.
            items: what is worked on.
        """
        ...


def end_of(error: BaseException, where: str = "") -> WorkerEnd:
    """The last message of a worker that an error ended."""
    return WorkerEnd(reason_of(error) + where, is_of_machine(error))


def reason_of(error: BaseException) -> str:
    """What an error says, in one line."""
    return " ".join((told(error) or str(error)).split()) or type(error).__name__
