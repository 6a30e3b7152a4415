"""Messages on their way into the store: their large texts noted, their tokens counted, put behind what is there."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

from lcm.memory.session.exploration import Exploration
from lcm.memory.session.rules import SessionRules
from lcm.protocols.models import TokenEstimator
from lcm.records.conversation import Event, Message
from lcm.store.store import Store
from lcm.transcript.large_files import intercepted
from lcm.transcript.message_tokens import Rendering, Usage, message_tokens, usage_of
from lcm.transcript.parts import decompose


@dataclass(frozen=True, slots=True)
class MessagePreparer:
    """Prepares what a session says for the store, and puts it there."""

    rules: SessionRules
    token_estimator: TokenEstimator
    rendered: Rendering
    """The text whose tokens a message is counted by."""
    incidents: Counter[str] = field(default_factory=Counter)
    """Counts what is survived."""

    def prepared(self, message: Message) -> Message:
        """The message with its large texts noted."""
        threshold = self.rules.large_file_threshold_tokens
        if threshold is None:
            return message
        explore = partial(Exploration(self.rules.large_file_summarizer).explore, incidents=self.incidents)
        return intercepted(
            message, threshold, self.token_estimator, explore, every_tool_result=self.rules.rules == "corrected"
        )

    def append(self, store: Store, conversation_id: str, messages: Sequence[Message]) -> list[Message]:
        """Put a turn behind a conversation, which is made if need be; gives the messages as stored.

        Raises:
            StoreError: if a message id is taken; nothing is written.
        """
        prepared = list(map(self.prepared, messages))
        store.append(conversation_id, prepared, self.token_estimator, self.rendered)
        return prepared

    def count(self, messages: Sequence[Message]) -> list[int]:
        return message_tokens(messages, self.rendered, self.token_estimator)

    def usage(self, messages: Sequence[Message], events: Iterable[Event], first: int) -> Usage:
        """Hold the estimator against what a session recorded; see `usage_of`."""
        return usage_of(messages, self.rendered, self.token_estimator, events, first)


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
