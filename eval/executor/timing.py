"""Timing and workers, which do not go together."""

from eval.executor.executor import Executor
from eval.executor.none import NoExecutor
from lcm.errors import LcmError


def refuse_timing(executor: Executor, queries: int) -> None:
    """Refuse to time live queries beside workers.

    Args:
        queries: how many are to be timed.
    Raises:
        LcmError: saying what to set.
    """
    if queries and not isinstance(executor, NoExecutor):
        raise LcmError(
            f"latency.queries={queries}: queries cannot be timed while workers share the machine; set "
            "latency.queries=0, or time them with executor=none"
        )
