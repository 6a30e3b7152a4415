"""Parts come back in the order in which they were said, however many there are."""

from dataclasses import replace
from pathlib import Path

from lcm.records.conversation import Part, Transcript
from lcm.store.store import Store
from tests.lcm.store.contents import TOKENS
from tests.support.workspaces import transcript

PARTS = tuple(Part("tool" if n % 3 else "text", text=f"part {n}", metadata={"n": n}) for n in range(120, 0, -1))


def many_parts() -> Transcript:
    whole = transcript()
    return replace(whole, messages=tuple(replace(message, parts=PARTS) for message in whole.messages[:3]))


def test_more_than_a_hundred_parts_keep_their_order(tmp_path: Path) -> None:
    path = tmp_path / "workspace.db"
    with Store(path) as store:
        store.ingest(many_parts(), TOKENS)
        assert [message.parts for message in store.messages()] == [PARTS] * 3
    with Store(path) as store:
        assert [message.parts for message in store.messages()] == [PARTS] * 3
        assert store.ingest(many_parts(), TOKENS) == 0
