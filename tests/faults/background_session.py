"""A live session that is compacted in the background, killed at one point of it.

As a program: forks a child for each session.
"""

import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from lcm.compaction.lossless.lossless import Lossless
from lcm.compaction.planned_window import PlannedWindow
from lcm.compaction.scheduling.asynchronous import Asynchronous
from lcm.memory.memory import Memory
from lcm.records.conversation import Message
from lcm.records.summary import SummaryRequest, SummaryResult
from lcm.token_estimator.utf16_units import Utf16Units
from tests.faults.forking import Tell, serve
from tests.faults.killing_connection import KillingConnection
from tests.lcm.compaction.contexts import head
from tests.support.workspaces import LINES, system, transcript

POINTS = (
    *("before planning", "planned", "call 1", "call 2", "made"),
    *(f"statement {n}" for n in (1, 2, 20, 40, 60, 80, 100, 113)),
    "written",
)
"""The statements are those that write a plan."""
FIRST = 16
_TURN = 2


def messages() -> Sequence[Message]:
    return transcript([f"{line}. {line}, as I said before ({i})" for i, line in enumerate(LINES * 3)]).messages


class DyingSummarizer:
    def __init__(self, point: str) -> None:
        self._point, self._calls = point, 0

    def summarize(self, requests: Sequence[SummaryRequest], *, incidents: Counter[str]) -> list[SummaryResult]:
        self._calls += 1
        if self._point == f"call {self._calls}":
            die()
        return head(40).summarize(requests, incidents=incidents)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def session(asked: Mapping[str, Any], tell: Tell) -> None:
    """In a child: take in what is not stored yet, turn by turn, to its end or to the kill."""
    path, point = Path(asked["path"]), asked["point"]
    compaction = Lossless(
        DyingSummarizer(point), Utf16Units(), budget_tokens=100, fresh_tail_count=2, leaf_chunk_tokens=60,
        min_leaf_tokens=0, leaf_target_tokens=20, condensed_target_tokens=20, leaf_min_fanout=2,
    )  # fmt: skip
    with Memory.open(replace(system(), compaction=compaction, scheduling=Asynchronous(100_000)), path) as memory:
        _lay(memory, point)
        said = messages()[: -2 * _TURN] if point else messages()  # something is left to be said after a kill
        conversations = memory.store.conversations()["conversation_id"].to_list()
        known = len(memory.store.messages("talk")) if conversations else 0
        if not known:  # much at once, so that the first plan is of many summaries
            memory.take_turn("talk", said[:FIRST], clock=time.monotonic)
        for i in range(known or FIRST, len(said), _TURN):
            memory.take_turn("talk", said[i : i + _TURN], clock=time.monotonic)


def _lay(memory: Memory, point: str) -> None:
    """Have the process die where it is told to."""
    init, hold, apply = PlannedWindow.__init__, PlannedWindow.hold, PlannedWindow.apply

    def initialised(window: PlannedWindow, *given: Any) -> None:
        if point == "before planning":
            die()
        init(window, *given)

    def held(window: PlannedWindow) -> None:
        hold(window)
        if point == "planned":
            die()

    def applied(window: PlannedWindow) -> None:
        is_plan = bool(window.is_changed)
        if is_plan and point == "made":
            die()
        if is_plan and point.startswith("statement"):
            store: Any = memory.store
            connection = store._connection
            store._connection = KillingConnection(connection, lambda _: None, int(point.split()[1]))
            apply(window)
            store._connection = connection
            return
        apply(window)
        if is_plan and point == "written":
            die()

    patched: dict[str, Callable[..., None]] = {"__init__": initialised, "hold": held, "apply": applied}
    for name, function in patched.items():
        setattr(PlannedWindow, name, function)


if __name__ == "__main__":
    serve(session)
