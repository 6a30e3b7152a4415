"""The messages of a conversation with the instants from which what they say was known."""

from collections.abc import Sequence
from dataclasses import replace

from lcm.clock import END_OF_CLOCKS, EPOCH
from lcm.memory.live_documents import LiveDocuments
from lcm.records.conversation import Message


class DatedMessages:
    """The `dated` messages of the conversation that was read last: while it grows, only what is new is read."""

    def __init__(self, live: LiveDocuments) -> None:
        """
        Args:
            live: the documents of the workspace: their store is read, and again from the start when their version says
                that another process has written to it.
        """
        self._live = live
        self._read: tuple[str, int] = ("", live.version)
        self._messages: list[Message] = []

    def read(self, conversation_id: str, extracted: int) -> tuple[list[Message], list[str]]:
        """The messages of a conversation, of which documents were made of the first `extracted`.

        Returns:
            The messages from the first, until the next call, and the ids of those that were read now and are dated by
            no set clock.
        """
        store, key = self._live.store, (conversation_id, self._live.version)
        messages = self._messages if key == self._read else []
        del messages[extracted:]
        found = store.messages(conversation_id, max(extracted, 1))
        # The last id tells whether another conversation has taken the name.
        if messages and len(messages) == extracted and found[0].message_id == messages[-1].message_id:
            new, unset = dated([messages[-1], *found[1:]])
            messages += new[1:]
        else:
            messages, unset = dated(store.messages(conversation_id) if extracted else found)
        self._read, self._messages = key, messages
        return messages, unset


def dated(messages: Sequence[Message]) -> tuple[list[Message], list[str]]:
    """The messages, each with the latest instant so far: what was said later is not known earlier.

    An instant outside the years 1970-2099 is that of a clock that was not set, and counts as none.

    Returns:
        The messages, and the ids of those whose instant was passed over.
    """
    latest = EPOCH
    found, unset = [], []
    for message in messages:
        instant = message.created_at
        if instant is not None and not EPOCH <= instant < END_OF_CLOCKS:
            unset.append(message.message_id)
            instant = None
        latest = max(latest, instant or latest)
        found.append(message if message.created_at == latest else replace(message, created_at=latest))
    return found, unset
