"""kill -9 between the plan and the end of its writing: every message is there, nothing stands in part, and the next
session does the work again."""

import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from lcm.store.connection import connect
from lcm.store.doctor import scan
from lcm.store.store import Store
from tests.faults.background_session import POINTS, messages
from tests.faults.forking import Ask, warm


@pytest.fixture(scope="module")
def children(root: Path) -> Iterator[Ask]:
    with warm(root, "tests.faults.background_session") as ask:
        yield ask


def require_whole(path: Path, count: int) -> int:
    """Doctor finds nothing, and the context leads to every message once; how many summaries there are."""
    with closing(connect(path)) as connection:
        assert [check for check in scan(connection) if check.status == "fail"] == []
    with Store(path) as store:
        said = [message.message_id for message in store.messages("talk")]
        assert said == [message.message_id for message in messages()[:count]]
        covered = store.edges("talk").filter("is_message")["source_id"].to_list()
        raw = [entry.item_id for entry in store.context("talk") if entry.is_message]
        assert sorted([*covered, *raw]) == sorted(said)
        return len(store.summaries("talk"))


@pytest.mark.slow
@pytest.mark.parametrize("point", POINTS)
def test_a_session_killed_at_any_point_of_background_compaction_goes_on(
    children: Ask, tmp_path: Path, point: str
) -> None:
    path = tmp_path / "talk.db"
    assert children({"path": str(path), "point": point})[0]["status"] == -signal.SIGKILL
    with Store(path) as store:
        count = len(store.messages("talk"))
    assert 0 < count <= len(messages())
    made = require_whole(path, count)
    assert (made > 0) == (point == "written")
    assert children({"path": str(path), "point": ""})[0]["status"] == 0
    assert require_whole(path, len(messages())) > 0
