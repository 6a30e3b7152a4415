"""kill -9 while a plan is written, before, and behind it: every message is there, nothing stands in part, and the next
session does the work again.

Of a plan that is not written yet the disk knows nothing: a kill at its first statement is one at any earlier moment."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from lcm.store.store import Store
from tests.faults.background_session import WRITTEN, messages
from tests.faults.batch import failures
from tests.faults.forking import Ask, warm


@pytest.fixture(scope="module")
def children(root: Path) -> Iterator[Ask]:
    with warm(root, "tests.faults.background_session") as ask:
        yield ask


def require_whole(path: Path, count: int) -> int:
    """Doctor finds nothing, and the context leads to every message once; how many summaries there are."""
    assert failures(path) == []
    with Store(path) as store:
        said = [message.message_id for message in store.messages("talk")]
        assert said == [message.message_id for message in messages()[:count]]
        covered = store.edges("talk").filter("is_message")["source_id"].to_list()
        raw = [entry.item_id for entry in store.context("talk") if entry.is_message]
        assert sorted([*covered, *raw]) == sorted(said)
        return len(store.summaries("talk"))


@pytest.mark.slow
@pytest.mark.parametrize("at", [1, 2, 20, 40, 60, 80, 100, 113, WRITTEN])
def test_a_session_killed_at_any_point_of_background_compaction_goes_on(children: Ask, tmp_path: Path, at: int) -> None:
    path = tmp_path / "talk.db"
    assert children({"path": str(path), "at": at})[0]["status"] == -signal.SIGKILL
    with Store(path) as store:
        count = len(store.messages("talk"))
    assert 0 < count <= len(messages())
    made = require_whole(path, count)
    assert (made > 0) == (at == WRITTEN)
    assert children({"path": str(path), "at": 0})[0]["status"] == 0
    assert require_whole(path, len(messages())) > 0
