"""Documents: what they say is fixed, who may see them is decided in the query."""

from dataclasses import replace

import polars as pl
import pytest

from lcm.errors import StoreError
from lcm.records.conversation import Message, Transcript
from lcm.records.document import Document
from lcm.store.documents import DOCUMENT_SCHEMA
from lcm.store.store import Store
from tests.lcm.store.contents import TOKENS, dump, talk
from tests.support.workspaces import minute


def document(document_id: str = "d1", *sources: int, **changes: object) -> Document:
    sources = sources or (1,)
    fields = {
        "document_id": document_id,
        "text": f"text of {document_id}",
        "source_message_ids": tuple(f"talk:{i}" for i in sources),
        "conversation_id": "talk",
        "session_id": "talk session",
        "created_at": minute(max(sources)),
    }
    return Document(**(fields | changes))


@pytest.fixture
def store():
    with Store() as opened:
        opened.ingest(talk(5), TOKENS)
        yield opened


def ids(frame: pl.DataFrame) -> list[str]:
    return frame["document_id"].to_list()


def test_a_document_comes_back_with_all_that_was_written(store: Store) -> None:
    written = Document(
        document_id="d1",
        text="Tea 🍵, no coffee\0",
        source_message_ids=("talk:4", "talk:2"),
        conversation_id="talk",
        session_id="talk session",
        created_at=minute(4),
        kind="window",
        category="preference",
        scope="agent:a",
        importance=0.25,
        confidence=1 / 3,
        temporal_type="dynamic",
        valid_from=minute(5),
        valid_until=minute(60),
        invalidated_at=minute(50),
        overview="- tea",
        content="Tea 🍵, never coffee",
        last_accessed_at=minute(30),
        access_count=3,
        decay_tier="core",
        tokens=9,
        metadata={"why": ["\ud83d", 1.5]},
        role="user",
        is_durable=False,
        authority=0.5,
        decay_rate=0.25,
        hop_targets=("d2", "d3"),
    )
    assert store.add_documents([written]) == 1
    (row,) = store.documents().to_dicts()
    fields = {name: getattr(written, name) for name in DOCUMENT_SCHEMA if name not in ("length_utf16", "seq")}
    lists = {"source_message_ids": ["talk:4", "talk:2"], "hop_targets": ["d2", "d3"]}
    assert row == fields | lists | {"length_utf16": 18, "seq": 4}
    assert store.document("d1") == written
    metadata = store._connection.execute("SELECT metadata FROM documents").fetchall()
    assert metadata == [(r'{"why":["\ud83d",1.5]}',)]


def test_documents_are_ordered_by_instant_then_by_adding_all_or_those_of_the_ids(store: Store) -> None:
    assert store.documents().equals(pl.DataFrame(schema=DOCUMENT_SCHEMA))
    store.add_documents([document("late", 4), document("tie b", 2), document("early", 1)])
    store.add_documents([document("tie a", 2)])
    assert store.documents().schema == DOCUMENT_SCHEMA
    assert ids(store.documents()) == ["early", "tie b", "tie a", "late"]
    assert ids(store.documents(["late", "nobody", "early"])) == ["early", "late"]
    assert store.documents([]).equals(pl.DataFrame(schema=DOCUMENT_SCHEMA))


def test_a_stored_document_is_left_as_it_is(store: Store) -> None:
    store.add_documents([document("a"), document("b")])
    before = dump(store)
    assert store.add_documents([document("b"), document("a")]) == 0
    assert store.add_documents([replace(document("a"), importance=0.1, access_count=5)]) == 0
    assert dump(store) == before
    assert store.add_documents([document("a"), document("c"), document("c")]) == 1


def test_a_known_id_that_says_something_else_is_refused(store: Store) -> None:
    store.add_documents([document("a")])
    before = dump(store)
    for field, other in {
        "text": "other",
        "scope": "secret",
        "kind": "window",
        "session_id": "another",
        "created_at": minute(9),
        "source_message_ids": ("talk:1", "talk:2"),
    }.items():
        for known, first in (("a", document("new")), ("b", document("b"))):
            with pytest.raises(StoreError, match=f"stored with another {field};"):
                store.add_documents([first, document(known, **{field: other})])
    assert dump(store) == before


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"source_message_ids": ("talk:1", "talk:99")}, "'a' names the unknown source message 'talk:99'"),
        ({"conversation_id": "nobody's"}, "'a' names the unknown conversation \"nobody's\""),
        ({"source_message_ids": ()}, "'a' must name its source messages"),
        ({"source_message_ids": ("talk:1", "talk:1")}, "'a' must name its source messages, at least one and each once"),
        ({"temporal_type": "eternal"}, "does not take: CHECK constraint failed"),
        ({"scope": "\udc00"}, "scope '.udc00' holds half of a surrogate pair"),
    ],
)
def test_a_document_that_cannot_be_kept_is_refused_with_its_whole_batch(store, changes, reason):
    before = dump(store)
    with pytest.raises(StoreError, match=reason):
        store.add_documents([document("fine"), document("a", **changes)])
    assert dump(store) == before


def test_source_messages_cannot_be_deleted_under_a_document(store: Store) -> None:
    store.add_documents([document("a", 2)])
    connection = store._connection
    connection.execute("DELETE FROM context_items")
    with pytest.raises(Exception, match="FOREIGN KEY constraint failed"):
        connection.execute("DELETE FROM messages WHERE message_key = 'talk:2'")
    connection.execute("DELETE FROM documents")
    connection.execute("DELETE FROM messages WHERE message_key = 'talk:2'")
    assert connection.execute("SELECT count(*) FROM document_messages").fetchone() == (0,)


def test_a_document_names_messages_of_any_id() -> None:
    named = ["a\0b", "a\0c", "a"]
    messages = tuple(Message(one, "user", f"said by {one!r}", "talk session") for one in named)
    with Store() as store:
        store.ingest(Transcript("talk", messages), TOKENS)
        stored = store.messages_by_id(named)
        assert [stored[one].content for one in named] == [one.content for one in messages]
        store.add_documents([document("d\0", source_message_ids=("a\0c",), conversation_id="talk")])
        with pytest.raises(StoreError, match="d"):
            store.add_documents([document("d\0", source_message_ids=("a",), conversation_id="talk", text="other")])
        for found in (store.documents(), store.documents(["d\0"])):
            assert found["source_message_ids"].to_list() == [["a\0c"]]
        assert store.documents(["d"]).is_empty()
