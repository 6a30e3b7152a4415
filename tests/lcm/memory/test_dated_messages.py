"""A conversation whose beginning stays in the store is, to whoever looks, the conversation from its start."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.memory import documents
from lcm.memory.documents import DatedMessages, dated
from lcm.memory.memory import Memory
from lcm.records.conversation import Message, Transcript
from tests.support.workspaces import minute, system

UNSET = datetime(2150, 1, 1, tzinfo=UTC)
places = st.integers(-30, 30)


@given(st.lists(st.one_of(st.integers(0, 50).map(minute), st.just(UNSET)), min_size=2, max_size=25), st.data())
def test_a_conversation_read_from_its_end_is_the_one_read_from_its_start(
    instants: list[datetime], data: st.DataObject
) -> None:
    messages = [Message(f"m{i}", "user", f"goat {i}", "s", at) for i, at in enumerate(instants)]
    extracted = data.draw(st.integers(1, len(messages) - 1))
    with pytest.MonkeyPatch.context() as patch, Memory.open(system()) as memory:
        patch.setattr(documents, "_READ_BEFORE", 3)
        memory.store.ingest(Transcript("talk", tuple(messages)), memory.system.token_estimator)
        whole = dated(memory.store.messages("talk"))[0]
        found = DatedMessages(memory.live)
        unset = found.read("talk", extracted)
        assert len(found) == len(whole)
        for place in data.draw(st.lists(st.one_of(places, st.slices(len(whole))), max_size=4)):
            try:
                expected = whole[place]
            except IndexError:
                with pytest.raises(IndexError):
                    found[place]
            else:
                assert found[place] == expected
        newest = {message.message_id for message in messages[extracted:]}
        assert newest.intersection(unset) == {m.message_id for m in messages[extracted:] if m.created_at == UNSET}
        memory.store.append(
            "talk", [replace(messages[0], message_id="more", created_at=minute(7))], memory.system.token_estimator
        )
        for _ in range(2):
            assert found.read("talk", len(whole)) == []
            assert list(found) == dated(memory.store.messages("talk"))[0]


def test_new_messages_of_a_long_conversation_are_read_without_what_was_said_long_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    messages = tuple(Message(f"m{i}", "user", f"goat {i}", "s", minute(i)) for i in range(600))
    with Memory.open(system()) as memory:
        memory.store.ingest(Transcript("talk", messages), memory.system.token_estimator)
        read: list[int] = []
        plain = memory.store.messages

        def counted(name: str | None = None, first: int = 1) -> list[Message]:
            found = plain(name, first)
            read.append(len(found))
            return found

        monkeypatch.setattr(memory.store, "messages", counted)
        found = DatedMessages(memory.live)
        found.read("talk", 590)
        assert [message.message_id for message in found[590:]] == [f"m{i}" for i in range(590, 600)]
        assert max(read) < 300
        assert found[0].message_id == "m0"
        assert max(read) == 600
