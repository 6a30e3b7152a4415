"""A turn of a live session: what it says is stored once, and it is told whether compaction should look.

Source: lossless-claw 0.6.3; there a turn that says nothing new is not looked at, and a heartbeat is deleted; here it is
hidden.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from lcm.javascript import trim
from lcm.memory.session import MessagePreparer, heartbeat_ids, live_message
from lcm.memory.session_bootstrap import append_named, identity
from lcm.records.conversation import Message
from lcm.store.conversations import open_session
from lcm.store.messages import read_messages
from lcm.store.store import Store
from lcm.store.summaries import hidden_ids, hide


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
        if preparer.rules.prune_heartbeat_turns and _acknowledges(added):
            gone = hide(connection, session.conversation, heartbeat_ids([*visible, *added]), now)
        is_due = gone == 0 and bool(visible or added)
        return TurnReport(session.conversation_id, len(added), gone, is_due)


def _not_replayed(stored: Sequence[Message], before: Sequence[Message], new: Sequence[Message]) -> list[Message]:
    """What of a turn is not the replay of all that is stored.

    Where the host names all of that as said before the turn, the turn says the same words again.
    """
    if not stored or len(stored) > len(new) or identity(new[len(stored) - 1]) != identity(stored[-1]):
        return list(new)
    known = list(map(identity, stored))
    is_replay = list(map(identity, new[: len(stored)])) == known != list(map(identity, before))
    return list(new[len(stored) :] if is_replay else new)


def _acknowledges(messages: Sequence[Message]) -> bool:
    """Say whether a turn asks for a heartbeat and gets the bare acknowledgement."""
    said = [(message.role, trim(message.content).lower()) for message in messages]
    return any("heartbeat.md" in text for _, text in said) and ("assistant", "heartbeat_ok") in said
