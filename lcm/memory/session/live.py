"""What happens in a live session beside its words: heartbeats, its end, and the beginning of the next one.

A new session keeps the conversation and the deeper summaries of its context; a reset begins an empty one. Whatever
leaves a context stays in the store, and recall finds it.

Source: lossless-claw 0.6.3, which deletes the heartbeats that are hidden here.
"""

import sqlite3
from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from lcm.javascript import trim
from lcm.memory.session.rules import SessionRules
from lcm.records.conversation import Message
from lcm.store.context import read_context, remove_from_context
from lcm.store.sessions import archive, find_session, hide, is_fresh, open_session
from lcm.store.store import Store

ResetReason = Literal["new", "reset"]

_CARRIES_ON = frozenset({"", "new", "unknown"})
"""Reasons of an end after which the conversation continues."""

_ASKS = "heartbeat.md"
_ANSWER = "heartbeat_ok"


def hide_heartbeats(store: Store, conversation_id: str, turn: Sequence[Message]) -> None:
    """Take the acknowledged heartbeats of a turn, which is stored, out of the context of its conversation."""
    found = heartbeat_ids(turn)
    if not found:
        return
    with store.writing() as connection:
        session = find_session(connection, conversation_id, conversation_id)
        assert session is not None  # it has just spoken
        hide(connection, session.conversation, found, store.last_said(conversation_id))


def heartbeat_ids(messages: Sequence[Message]) -> list[str]:
    """The ids of the acknowledged heartbeats among messages: from what the user said last to the acknowledgement.

    A host asks now and then whether anything is to be done, and an agent acknowledges that nothing is.
    """
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


def before_reset(
    store: Store, rules: SessionRules, now: datetime, reason: str, session_id: str, session_key: str = ""
) -> None:
    """`new`: prune the context to the summaries that outlive a session. `reset`: begin an empty conversation."""
    key = trim(session_key)
    if reason not in ResetReason.__args__ or not rules.writes(session_id, key):  # type: ignore[attr-defined]
        return
    with store.serialised(key or session_id), store.writing() as connection:
        if reason == "reset":
            _replace(connection, now, session_id, key, session_id, key)
        elif session := find_session(connection, session_id, key):
            _prune(connection, session.conversation, rules.new_session_retain_depth)


def session_end(
    store: Store,
    rules: SessionRules,
    now: datetime,
    reason: str,
    session_id: str,
    session_key: str = "",
    next_session_id: str = "",
    next_session_key: str = "",
) -> None:
    """Archive the conversation and begin the next one, unless the reason is `deleted` or one that carries on."""
    key = trim(session_key)
    if reason in _CARRIES_ON or not rules.writes(session_id, key):
        return
    with store.serialised(key or session_id), store.writing() as connection:
        session = find_session(connection, session_id, key)
        if session is None:
            return
        if reason == "deleted":
            archive(connection, session, now)
        else:
            _replace(connection, now, session_id, key, next_session_id or session_id, trim(next_session_key) or key)


def _replace(
    connection: sqlite3.Connection, now: datetime, session_id: str, key: str, next_id: str, next_key: str
) -> None:
    """Archive the conversation and make an empty one; one in which nothing has happened yet serves as that."""
    session = find_session(connection, session_id, key)
    if session is not None and is_fresh(connection, session):
        return
    if session is not None:
        archive(connection, session, now)
    open_session(connection, next_id, next_key, now)


def _prune(connection: sqlite3.Connection, conversation: int, retain_depth: int) -> None:
    if retain_depth < 0:
        return
    entries = read_context(connection, conversation)
    gone = [entry.ordinal for entry in entries if entry.depth is None or entry.depth < retain_depth]
    remove_from_context(connection, conversation, gone)
