"""A turn of a live session: what it says is stored once, and it is told whether compaction should look.

Source: lossless-claw 0.6.3; there a turn that says nothing new is not looked at, and a heartbeat is deleted; here it is
hidden.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from lcm.javascript import trim
from lcm.memory.session.preparer import MessagePreparer, live_message
from lcm.plugins.lossless_claw.session_file import identity
from lcm.records.conversation import Message
from lcm.store.messages import read_messages
from lcm.store.sessions import SessionRow, free_ids, hidden_ids, hide, open_session
from lcm.store.store import Store

_ASKS = "heartbeat.md"
_ANSWER = "heartbeat_ok"
"""Of a heartbeat: a host asks now and then whether anything is to be done, an agent acknowledges that nothing is."""


@dataclass(frozen=True, slots=True)
class TurnReport:
    """What became of one turn of a live session."""

    conversation_id: str | None
    """None: nothing of the session is stored."""
    stored_messages: int
    hidden_messages: int = 0
    is_compaction_due: bool = False
    """Compaction is to look whether a trigger says so."""


def ingest(
    store: Store,
    messages: Sequence[Message],
    preparer: MessagePreparer,
    now: datetime,
    session_id: str,
    session_key: str = "",
) -> int:
    """Store messages as one transaction, whatever was said before; gives how many.

    Raises:
        StoreError: if the store refuses; nothing is changed.
    """
    key = trim(session_key)
    if not messages or not preparer.rules.writes(session_id, key):
        return 0
    with store.serialised(key or session_id), store.writing() as connection:
        session = open_session(connection, session_id, key, now)
        return len(append_named(store, session, session_id, messages, preparer))


def ingest_turn(
    store: Store,
    messages: Sequence[Message],
    preparer: MessagePreparer,
    now: datetime,
    session_id: str,
    session_key: str = "",
    *,
    pre_prompt_message_count: int = 0,
    auto_compaction_summary: str | None = None,
    is_heartbeat: bool = False,
) -> TurnReport:
    """Store what a turn adds, as one transaction.

    A host may hand over the whole conversation again: a beginning that equals all that is stored is dropped. The
    original drops it even where the host says that all of that stood there before, and loses what is said twice.

    Args:
        store: where to.
        messages: as the host holds them; `live_message` makes them of its own.
        preparer: prepares them, by the session's rules.
        now: dates what is hidden, and messages without an instant.
        session_id: the session's.
        session_key: what outlives it; empty: the id serves.
        pre_prompt_message_count: how many of the messages stood there before the turn.
        auto_compaction_summary: what the host itself made of messages that it dropped; kept as said by the user.
        is_heartbeat: the turn only asked whether anything is to be done; nothing of it is stored.

    Raises:
        StoreError: if the store refuses; nothing is changed.
    """
    key = trim(session_key)
    if not preparer.rules.writes(session_id, key):
        return TurnReport(None, 0)
    with store.serialised(key or session_id), store.writing() as connection:
        session = open_session(connection, session_id, key, now)
        hidden = hidden_ids(connection, session.conversation)
        stored = read_messages(connection, session.conversation_id)
        visible = [message for message in stored if message.message_id not in hidden]
        before, new = messages[:pre_prompt_message_count], messages[pre_prompt_message_count:]
        said = [] if is_heartbeat else _not_replayed(visible, before, new)
        if auto_compaction_summary and not is_heartbeat:
            said.insert(0, live_message({"role": "user", "content": auto_compaction_summary}, session_id, now))
        added = append_named(store, session, session_id, said, preparer)
        gone = 0
        if preparer.rules.prune_heartbeat_turns and acknowledges(added):
            gone = hide(connection, session.conversation, heartbeat_ids([*visible, *added]), now)
        is_due = gone == 0 and bool(visible or added)
        return TurnReport(session.conversation_id, len(added), gone, is_due)


def append_named(
    store: Store, session: SessionRow, session_id: str, messages: Sequence[Message], preparer: MessagePreparer
) -> list[Message]:
    """Put messages behind those of a session; gives them as stored.

    One without an id is named by its place, and one whose id is taken gets a number.
    """
    with store.writing() as connection:
        (last,) = connection.execute(
            "SELECT coalesce(max(seq), 0) FROM messages WHERE conversation_id = ?", (session.conversation,)
        ).fetchone()
        wanted = [
            message.message_id or f"{session.conversation_id}:{seq}"
            for seq, message in enumerate(messages, start=last + 1)
        ]
        named = [
            replace(message, message_id=name, session_id=session_id)
            for message, name in zip(messages, free_ids(connection, wanted), strict=True)
        ]
        return preparer.append(store, session.conversation_id, named)


def _not_replayed(stored: Sequence[Message], before: Sequence[Message], new: Sequence[Message]) -> list[Message]:
    """What of a turn is not the replay of all that is stored.

    Where the host names all of that as said before the turn, the turn says the same words again.
    """
    if not stored or len(stored) > len(new) or identity(new[len(stored) - 1]) != identity(stored[-1]):
        return list(new)
    known = list(map(identity, stored))
    is_replay = list(map(identity, new[: len(stored)])) == known != list(map(identity, before))
    return list(new[len(stored) :] if is_replay else new)


def acknowledges(messages: Sequence[Message]) -> bool:
    """Say whether a turn asks for a heartbeat and gets the bare acknowledgement."""
    return any(map(_asks, messages)) and any(map(_answers, messages))


def heartbeat_ids(messages: Sequence[Message]) -> list[str]:
    """The ids of all acknowledged heartbeats of a conversation: from what the user said last to the acknowledgement."""
    found: dict[str, None] = {}
    since_user: int | None = None
    for place, message in enumerate(messages):
        if message.role == "user":
            since_user = place
        elif _answers(message) and since_user is not None:
            span = messages[since_user : place + 1]
            if any(map(_asks, span)):
                found |= dict.fromkeys(said.message_id for said in span)
    return list(found)


def _asks(message: Message) -> bool:
    return _ASKS in message.content.lower()


def _answers(message: Message) -> bool:
    return message.role == "assistant" and trim(message.content).lower() == _ANSWER
