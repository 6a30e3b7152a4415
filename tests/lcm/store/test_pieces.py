"""Transcripts that come in pieces are stored as whole ones are, and what stands beside messages is kept."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.clock import format_instant
from lcm.errors import StoreError
from lcm.records.conversation import Event, Transcript
from lcm.store.store import Store
from tests.lcm.store.contents import TOKENS, dump, is_sound, json_values, message, talk
from tests.support.workspaces import minute


def cut(transcript: Transcript, *sizes: int) -> list[Transcript]:
    """Pieces of so many messages each, the last one with the rest."""
    pieces, at = [], 0
    for size in (*sizes, len(transcript.messages)):
        pieces.append(replace(transcript, messages=transcript.messages[at : at + size]))
        at += size
    return [piece for piece in pieces if piece.messages]


@given(st.lists(st.integers(1, 4), max_size=4), st.lists(st.integers(1, 4), max_size=4), st.integers(0, 9))
def test_pieces_of_any_size_are_the_whole_and_only_what_is_new_is_added(
    first: list[int], second: list[int], known: int
) -> None:
    whole = talk(9)
    with Store() as store, Store() as other:
        other.ingest(whole, TOKENS)
        assert store.ingest_pieces(cut(talk(known), *first), TOKENS) == known
        assert store.ingest_pieces(cut(whole, *second), TOKENS) == 9 - known
        assert store.messages() == other.messages()
        assert store.conversations().equals(other.conversations())


def test_conversations_may_alternate() -> None:
    one, other = talk(4, "one"), talk(3, "other")
    pieces = [cut(one, 1)[0], cut(other, 2)[0], cut(one, 1)[1], cut(other, 2)[1]]
    with Store() as store:
        assert store.ingest_pieces(pieces, TOKENS) == 7
        assert store.messages("one") == list(one.messages)
        assert store.messages("other") == list(other.messages)


def test_an_instant_is_carried_from_piece_to_piece() -> None:
    messages = (message(1, created_at=minute(5)), *(message(n) for n in range(2, 5)))
    with Store() as store:
        store.ingest_pieces(cut(Transcript("talk", messages), 2, 1), TOKENS)
        assert {m.created_at for m in store.messages()} == {minute(5)}
        assert store.ingest_pieces(cut(Transcript("talk", messages), 1), TOKENS) == 0


def changed(at: int) -> list[Transcript]:
    """Pieces of a longer talk whose message at that place says something else."""
    messages = talk(9).messages
    other = (*messages[: at - 1], replace(messages[at - 1], content="other"), *messages[at:])
    return cut(Transcript("talk", other), 2, 2, 2)


@pytest.mark.parametrize("pieces", [changed(1), changed(4), cut(talk(4), 3)], ids=["first", "later", "too short"])
def test_a_conversation_that_changed_stays_and_the_others_are_taken_in(pieces: list[Transcript]) -> None:
    known = replace(talk(6), events=(Event("mode", {"is": "old"}, 2), Event("mode", {"is": "older"}, 6)), title="Old")
    new = [replace(piece, events=(Event("mode", {"is": "new"}, 1),), title="New") for piece in pieces]
    with Store() as store, Store() as other:
        for one in (store, other):
            one.ingest(known, TOKENS)
        refused: dict[str, str] = {}
        assert store.ingest_pieces([*new[:1], talk(2, "other"), *new[1:]], TOKENS, refused=refused) == 2
        assert [*refused] == ["talk"]
        assert "a transcript may only grow" in refused["talk"]
        other.ingest(talk(2, "other"), TOKENS)
        assert dump(store) | {"schema_migrations": []} == dump(other) | {"schema_migrations": []}


def breaking() -> Iterator[Transcript]:
    yield talk(8)
    raise RuntimeError("the stream broke")


@pytest.mark.parametrize(
    ("pieces", "reason"),
    [
        *((changed(at), f"message {at} is stored as 'talk:{at}', .* another content") for at in (1, 4, 6)),
        (cut(talk(4), 3), "message 5 is stored as 'talk:5', where the transcript has ended"),
        (
            [talk(6), Transcript("talk", (message(9), message(1)))],
            "'talk': message 8 has the id 'talk:1', as an earlier one has",
        ),
        (breaking(), "the stream broke"),
    ],
    ids=["first", "in a later piece", "last", "too short", "an id twice", "breaking"],
)
def test_pieces_that_cannot_follow_what_is_stored_are_refused_and_nothing_is_written(pieces, reason):
    with Store() as store:
        store.ingest(talk(6), TOKENS)
        before = dump(store)
        with pytest.raises((StoreError, RuntimeError), match=reason):
            store.ingest_pieces(pieces, TOKENS)
        assert dump(store) == before
        assert is_sound(store._connection)


@given(st.lists(st.tuples(st.text(max_size=5), json_values), max_size=5))
def test_events_come_back_exactly_in_order(recorded: list[tuple[str, object]]) -> None:
    events = tuple(Event(f"kind {i}", native, min(i, 2)) for i, (_, native) in enumerate(recorded))
    with Store() as store:
        store.ingest(replace(talk(2), events=events), TOKENS)
        assert store.events("talk") == list(events)
        assert store.events("nobody") == []


def test_events_are_those_of_the_newest_version() -> None:
    header, mark = Event("session", {"updated": 1}), Event("mark", None, 2)
    with Store() as store:
        store.ingest(replace(talk(2), events=(header, mark)), TOKENS)
        newer = (Event("session", {"updated": 2}), mark, Event("mark", [], 3))
        assert store.ingest(replace(talk(3), events=newer), TOKENS) == 1
        assert store.events("talk") == list(newer)
        last = replace(talk(3), messages=talk(3).messages[2:], events=newer[1:])
        assert store.ingest_pieces([replace(talk(2), events=newer[:1]), last], TOKENS) == 0
        assert store.events("talk") == list(newer)


def test_a_conversation_may_begin_with_events_alone() -> None:
    header = Event("session", {})
    with Store() as store:
        store.ingest_pieces([Transcript("talk", (), events=(header,)), talk(2)], TOKENS)
        (row,) = store.conversations().iter_rows(named=True)
        assert (row["messages"], row["first_at"], row["last_at"]) == (2, minute(1), minute(2))
        created = store._connection.execute("SELECT session_id, created_at FROM conversations").fetchone()
        assert created == ("talk session", format_instant(minute(1)))
