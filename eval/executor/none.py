"""The executor without workers."""

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from eval.executor.executor import EXPECTED, FailedItem, end_of

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class NoExecutor:
    """Runs every item in this process, one after the other."""

    def map(
        self, task: Callable[[_Item], Iterable[_Result]], items: Sequence[_Item]
    ) -> Generator[_Result | FailedItem, None, None]:
        for number, item in enumerate(items):
            try:
                yield from task(item)
            except EXPECTED as error:
                ended = end_of(error)
                ended.raise_of_machine()
                yield FailedItem(number, str(ended.failure))
