"""Messages on their way into the store: named, their large texts taken out, put behind those that are there."""

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from lcm.memory.session.exploration import Exploration
from lcm.memory.session.rules import SessionRules
from lcm.protocols import TokenEstimator
from lcm.records import Message
from lcm.store.messages import Wording, append
from lcm.store.session_rows import SessionRow, free_ids
from lcm.transcript.large_files import intercepted
from lcm.transcript.parts import decompose


@dataclass(frozen=True, slots=True)
class MessagePreparer:
    """With what a session listens."""

    rules: SessionRules
    token_estimator: TokenEstimator
    wording: Wording
    """The text whose tokens a message is counted by."""

    def prepared(self, message: Message) -> Message:
        """The message with its large texts noted."""
        threshold = self.rules.large_file_threshold_tokens
        if threshold is None:
            return message
        explore = Exploration(self.rules.large_file_summarizer).explore
        return intercepted(
            message, threshold, self.token_estimator, explore, every_tool_result=self.rules.every_tool_result
        )

    def count(self, messages: Sequence[Message]) -> list[int]:
        return self.token_estimator.count([self.wording(message) for message in messages])


def live_message(
    native: Mapping[str, Any], session_id: str, created_at: datetime | None = None, message_id: str = ""
) -> Message:
    """A message as a host hands it over; without an id it is named by its place."""
    said = decompose(native)
    return Message(
        message_id=message_id,
        role=said.role,
        content=said.content,
        session_id=session_id,
        created_at=created_at,
        parts=said.parts,
        envelope=said.envelope,
    )


def hear(
    connection: sqlite3.Connection,
    session: SessionRow,
    session_id: str,
    messages: Sequence[Message],
    preparer: MessagePreparer,
) -> tuple[Message, ...]:
    """Put messages behind those of the conversation, inside the caller's transaction; gives them as stored."""
    (stored,) = connection.execute(
        "SELECT coalesce(max(seq), 0) FROM messages WHERE conversation_id = ?", (session.conversation,)
    ).fetchone()
    wanted = [
        message.message_id or f"{session.conversation_id}:{seq}"
        for seq, message in enumerate(messages, start=stored + 1)
    ]
    named = [
        preparer.prepared(replace(message, message_id=name, session_id=session_id))
        for message, name in zip(messages, free_ids(connection, wanted), strict=True)
    ]
    append(connection, session.conversation_id, named, preparer.token_estimator, preparer.wording)
    return tuple(named)
