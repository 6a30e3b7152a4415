"""What goes in comes out; what is stored only grows."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Barrier

import polars as pl
import pytest
from hypothesis import given

from lcm.clock import EPOCH
from lcm.errors import StoreError
from lcm.records.conversation import Message, Part, Transcript
from lcm.store.conversations import CONVERSATION_SCHEMA, MESSAGE_SCHEMA
from lcm.store.messages import ORDINAL_STEP
from lcm.store.store import Store
from tests.lcm.store.contents import OPENED_AT, TOKENS, dump, is_sound, message, talk, transcripts
from tests.support.workspaces import minute


def dated(transcript: Transcript) -> list[Message]:
    """The messages with each missing instant replaced by the last known one."""
    known, messages = EPOCH, []
    for said in transcript.messages:
        known = said.created_at or known
        messages.append(replace(said, created_at=known))
    return messages


def changed(**fields: object) -> Transcript:
    """A talk of four messages, the second of which is another one."""
    messages = talk(4).messages
    return Transcript("talk", (messages[0], replace(messages[1], **fields), *messages[2:]))


@given(transcripts)
def test_messages_come_back_exactly_with_their_instants_filled_in(transcript: Transcript) -> None:
    with Store() as store:
        assert store.ingest(transcript, TOKENS) == len(transcript.messages)
        back = store.messages(transcript.conversation_id)
        assert back == dated(transcript)
        assert [list(said.envelope) for said in back] == [list(said.envelope) for said in transcript.messages]
        assert is_sound(store._connection)


@given(transcripts)
def test_the_same_transcript_twice_changes_no_byte_of_any_row(transcript: Transcript) -> None:
    with Store() as store:
        store.ingest(transcript, TOKENS)
        before = dump(store)
        assert store.ingest(transcript, TOKENS) == 0
        assert store.ingest(replace(transcript, messages=tuple(dated(transcript))), TOKENS) == 0
        assert dump(store) == before


@given(transcripts)
def test_a_transcript_that_grows_is_stored_as_if_it_came_whole(transcript: Transcript) -> None:
    with Store(opened_at=OPENED_AT) as whole, Store(opened_at=OPENED_AT) as grown:
        whole.ingest(transcript, TOKENS)
        for length in range(1, len(transcript.messages) + 1):
            shorter = replace(transcript, messages=transcript.messages[:length])
            assert grown.ingest(shorter, TOKENS) == 1
        full_text_shards = ("messages_fts_data", "messages_fts_idx")  # cut by transaction
        for table, rows in dump(whole).items():
            assert table in full_text_shards or dump(grown)[table] == rows, table


def test_a_file_keeps_what_was_stored_more_than_a_hundred_parts_in_their_order(tmp_path: Path) -> None:
    path = tmp_path / "new folder" / "workspace.db"
    parts = tuple(Part("tool" if n % 3 else "text", text=f"part {n}", metadata={"n": n}) for n in range(120, 0, -1))
    said = tuple(replace(message, parts=parts) for message in talk(3).messages)
    with Store(path) as store:
        store.ingest(Transcript("talk", said), TOKENS)
    with Store(str(path)) as store:
        assert store.messages() == list(said)
        assert store.ingest(Transcript("talk", said), TOKENS) == 0


def test_conversations_keep_the_order_of_their_first_ingest() -> None:
    with Store() as store:
        store.ingest(talk(1, "zebra"), TOKENS)
        store.ingest(talk(2, "ant"), TOKENS)
        store.ingest(talk(3, "zebra"), TOKENS)
        assert [said.message_id for said in store.messages()] == ["zebra:1", "zebra:2", "zebra:3", "ant:1", "ant:2"]
        assert store.messages("ant") == list(talk(2, "ant").messages)
        assert store.messages("nobody") == []
        assert store.ingest(Transcript("empty", ()), TOKENS) == 0
        assert store.conversations()["conversation_id"].to_list() == ["zebra", "ant"]


def test_a_missing_instant_is_the_last_known_one_even_from_an_earlier_ingest() -> None:
    undated = (message(1), message(2, created_at=minute(5)), message(3))
    with Store() as store:
        store.ingest(Transcript("talk", undated), TOKENS)
        store.ingest(Transcript("talk", (*undated, message(4))), TOKENS)
        assert [said.created_at for said in store.messages()] == [EPOCH, minute(5), minute(5), minute(5)]


def test_context_items_hold_every_message_in_order_with_gaps_between() -> None:
    columns = "ordinal, item_type, message_id"
    with Store() as store:
        store.ingest(talk(2), TOKENS)
        store.ingest(talk(3), TOKENS)
        items = store._connection.execute(f"SELECT {columns} FROM context_items ORDER BY ordinal").fetchall()
    assert items == [(ORDINAL_STEP * i, "message", i) for i in (1, 2, 3)]


def test_a_conversation_knows_its_newest_session_title_and_times() -> None:
    first, second = talk(1).messages[0], replace(talk(2).messages[1], session_id="another session")
    with Store() as store:
        store.ingest(Transcript("talk", (first,), title="Plans"), TOKENS)
        store.ingest(Transcript("talk", (first, second)), TOKENS)
        columns = "session_id, title, created_at, updated_at, active"
        row = store._connection.execute(f"SELECT {columns} FROM conversations").fetchall()
        frame = store.conversations()
    assert row == [("another session", "Plans", "2026-01-01T00:01:00.000Z", "2026-01-01T00:02:00.000Z", 1)]
    assert frame.schema == CONVERSATION_SCHEMA
    assert frame.rows() == [("talk", "Plans", 2, minute(1), minute(2))]


def test_the_message_frame_has_a_row_for_every_message() -> None:
    said = Message("m1", "tool", "twelve chars", "s1", minute(1), author="Ada")
    with Store() as store:
        assert store.message_frame().equals(pl.DataFrame(schema=MESSAGE_SCHEMA))
        store.ingest(Transcript("talk", (said,)), TOKENS)
        frame = store.message_frame()
    assert frame.schema == MESSAGE_SCHEMA
    assert frame.rows() == [("m1", "talk", "s1", 1, "tool", "Ada", minute(1), 12 // 4)]


@pytest.mark.parametrize(
    ("stored", "said", "reason"),
    [
        *(
            (3, changed(**{field: value}), rf"'talk': message 2 is stored as 'talk:2', .* another {field};")
            for field, value in {
                "role": "assistant",
                "content": "other words",
                "parts": (),
                "envelope": {"a": 1},
                "session_id": "another",
                "author": "Bo",
                "created_at": minute(99),
            }.items()
        ),
        (
            *(2, Transcript("talk", (talk(1).messages[0], message(9)))),
            "message 2 is stored as 'talk:2', but the transcript has 'talk:9' there",
        ),
        (3, talk(0), "message 1 is stored .* where the transcript has ended"),
        (3, talk(2), "message 3 is stored .* where the transcript has ended"),
        (0, Transcript("talk", (message(1), message(1))), "'talk': message 2 has the id 'talk:1', as an earlier one"),
        (1, Transcript("talk", (*talk(1).messages, message(1))), "message 2 has the id 'talk:1', as an earlier one"),
        (1, Transcript("other", talk(1).messages), r"'other': message 1 has the id 'talk:1', .* conversation 'talk'"),
        (0, changed(message_id="\udc00"), "holds half of a surrogate pair"),
        (0, changed(session_id="\udc00"), "holds half of a surrogate pair"),
    ],
)
def test_what_does_not_follow_what_is_stored_is_refused_by_conversation_position_and_field(stored, said, reason):
    with Store() as store:
        store.ingest(talk(stored), TOKENS)
        before = dump(store)
        with pytest.raises(StoreError, match=reason):
            store.ingest(said, TOKENS)
        assert dump(store) == before


def test_a_half_surrogate_pair_is_replaced_in_text_and_exact_in_json() -> None:
    half = "cut \ud83d"
    said = Message("m", "user", half, "s", EPOCH, half, (Part("text", half, metadata={"raw": half}),), {half: half})
    with Store() as store:
        store.ingest(Transcript("talk", (said,), title=half), TOKENS)
        (back,) = store.messages()
        assert store.ingest(Transcript("talk", (said,), title=half), TOKENS) == 0
    assert back.content == back.author == back.parts[0].text == "cut \ufffd"
    assert back.parts[0].metadata == {"raw": half}
    assert back.envelope == {half: half}


def test_a_file_that_is_no_database_and_a_folder_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a database, but long enough to look at" * 100)
    with pytest.raises(StoreError, match=r"notes\.txt.*not a database"):
        Store(path)
    with pytest.raises(StoreError, match="cannot open the store"):
        Store(tmp_path)


def test_writes_in_one_transaction_happen_together_and_a_failed_one_undoes_itself_or_all() -> None:
    twice = Transcript("other", (message(9), message(9)))
    with Store() as store:
        before = dump(store)
        with pytest.raises(StoreError, match="earlier"), store.transaction():
            store.ingest(talk(2), TOKENS)
            store.ingest(twice, TOKENS)
        assert dump(store) == before
        with store.transaction():
            store.ingest(talk(2), TOKENS)
            with pytest.raises(StoreError, match="earlier"):
                store.ingest(twice, TOKENS)
            assert store.ingest(talk(3), TOKENS) == 1
        assert store.conversations()["conversation_id"].to_list() == ["talk"]
        assert store.messages() == list(talk(3).messages)
        assert is_sound(store._connection)


def test_a_writer_that_waits_in_vain_says_so(tmp_path: Path) -> None:
    path = tmp_path / "shared.db"
    with Store(path) as holder, Store(path) as waiting:
        waiting._connection.execute("PRAGMA busy_timeout = 0")
        holder._connection.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="cannot begin a transaction: database is locked"):
            waiting.ingest(talk(1), TOKENS)
        assert waiting.messages() == []
        holder._connection.execute("ROLLBACK")
        assert waiting.ingest(talk(1), TOKENS) == 1


def test_a_new_file_is_opened_by_many_at_once_who_write_in_turns(tmp_path: Path) -> None:
    path, start = tmp_path / "new.db", Barrier(8)

    def write(name: str) -> None:
        start.wait()
        with Store(path, OPENED_AT) as store:
            for length in range(1, 6):
                store.ingest(talk(length, name), TOKENS)
                store.ingest(talk(1, f"{name} {length}"), TOKENS)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, "abcdefgh"))
    with Store(path) as store:
        assert store.conversations().height == 8 * (1 + 5)
        assert [store.messages(name) for name in "abcdefgh"] == [list(talk(5, name).messages) for name in "abcdefgh"]
        assert is_sound(store._connection)


@pytest.mark.parametrize("beside", ["memory.db-wal", "memory.db-locks", "memory.db.0123456789abcdef.vectors"])
def test_an_emptied_store_is_no_new_one(tmp_path: Path, beside: str) -> None:
    path = tmp_path / "memory.db"
    path.touch()
    Store(path).close()  # as a file that was just made is
    path.write_bytes(b"")
    (tmp_path / beside).write_bytes(b"something")
    with pytest.raises(StoreError, match=rf"^the store [^\n]*memory\.db is empty, but [^\n]*{beside}; restore"):
        Store(path)


def test_a_damaged_row_is_told_with_the_path_of_its_store(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with Store(path) as store:
        store.ingest(talk(3), TOKENS)
        store._connection.execute("UPDATE messages SET created_at = 'then' WHERE seq = 3")
    with Store(path) as store, pytest.raises(StoreError, match=r"memory\.db is damaged: a row .* `lcm doctor"):
        store.messages()
