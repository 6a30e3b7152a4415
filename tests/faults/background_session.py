"""A live session that is compacted in the background, killed at one statement of the first plan that it writes.

As a program: forks a child for each session.
"""

import os
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from lcm.compaction.lossless.lossless import Lossless
from lcm.compaction.scheduling import Asynchronous
from lcm.compaction.window import PlannedWindow
from lcm.memory.memory import Memory
from lcm.records.conversation import Message
from lcm.token_estimator import Utf16Units
from tests.faults.forking import Tell, serve
from tests.faults.killing_connection import KillingConnection
from tests.lcm.compaction.contexts import head
from tests.support.workspaces import LINES, system, transcript

WRITTEN = 1000
"""No statement of a plan has this number: the kill strikes when the plan is written."""
FIRST = 16
_TURN = 2


def messages() -> Sequence[Message]:
    return transcript([f"{line}. {line}, as I said before ({i})" for i, line in enumerate(LINES * 3)]).messages


def session(asked: Mapping[str, Any], tell: Tell) -> None:
    """In a child: take in what is not stored yet, turn by turn, until statement `at` of a plan; 0 = to its end."""
    compaction = Lossless(
        head(40), Utf16Units(), budget_tokens=100, fresh_tail_count=2, leaf_chunk_tokens=60,
        min_leaf_tokens=0, leaf_target_tokens=20, condensed_target_tokens=20, leaf_min_fanout=2,
    )  # fmt: skip
    parts = replace(system(), compaction=compaction, scheduling=Asynchronous(100_000))
    with Memory.open(parts, Path(asked["path"])) as memory:
        if asked["at"]:
            _kill_at(memory.store, asked["at"])
        said = messages()[: -2 * _TURN] if asked["at"] else messages()  # something is left to be said after a kill
        conversations = memory.store.conversations()["conversation_id"].to_list()
        known = len(memory.store.messages("talk")) if conversations else 0
        if not known:  # much at once, so that the first plan is of many summaries
            memory.take_turn("talk", said[:FIRST], clock=time.monotonic)
        for i in range(known or FIRST, len(said), _TURN):
            memory.take_turn("talk", said[i : i + _TURN], clock=time.monotonic)


def _kill_at(store: Any, number: int) -> None:
    apply = PlannedWindow.apply

    def applied(window: PlannedWindow) -> None:
        is_plan = bool(window.is_changed)
        if is_plan:
            store._connection = KillingConnection(store._connection, lambda _: None, number)
        apply(window)
        if is_plan:
            os.kill(os.getpid(), signal.SIGKILL)

    setattr(PlannedWindow, "apply", applied)  # noqa: B010 - what a child of the tests does alone


if __name__ == "__main__":
    serve(session)
