"""An executor without processes: for claims that are not about them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from eval.batch.executor import Failed
from lcm.errors import LcmError


@dataclass(frozen=True, slots=True)
class Here:
    """Works on one item after the other."""

    def map(self, task: Callable[[Any], Iterable[Any]], items: Sequence[Any]) -> Iterator[Any]:
        for number, item in enumerate(items):
            try:
                yield from task(item)
            except (LcmError, OSError, ValueError) as error:
                yield Failed(number, str(error))
