"""The messages of a conversation with the instants from which what they say was known."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import overload

from lcm.clock import END_OF_CLOCKS, EPOCH
from lcm.memory.live_documents import LiveDocuments
from lcm.records.conversation import Message

_READ_BEFORE = 256
"""Messages before the new ones that are read with them: more than a step or an admission looks back as a rule."""


class DatedMessages:
    """The `dated` messages of the conversation that was read last: while it grows, only what is new is read.

    Of a long conversation that was there before, the beginning stays in the store until somebody looks at it.
    """

    def __init__(self, live: LiveDocuments) -> None:
        """
        Args:
            live: the documents of the workspace: their store is read, and again from the start when their version says
                that another process has written to it.
        """
        self._live = live
        self._read: tuple[str, int] = ("", live.version)
        self._messages = _LastMessages([], 0, list)

    def read(self, conversation_id: str, extracted: int) -> tuple[Sequence[Message], list[str]]:
        """The messages of a conversation, of which documents were made of the first `extracted`.

        Returns:
            The messages from the first, until the next call, and the ids of those that were read now and are dated by
            no set clock.
        """
        store, key = self._live.store, (conversation_id, self._live.version)
        messages = self._messages if key == self._read else _LastMessages([], 0, list)
        messages.cut(extracted)
        found = store.messages(conversation_id, max(extracted, 1))
        # The last id tells whether another conversation has taken the name.
        if messages and len(messages) == extracted and found[0].message_id == messages[-1].message_id:
            new, unset = dated([messages[-1], *found[1:]])
            messages.add(new[1:])
        else:
            before = max(extracted - _READ_BEFORE, 0)
            latest = store.latest_instant(conversation_id, before, EPOCH, END_OF_CLOCKS) if before else None
            last, unset = dated(store.messages(conversation_id, before + 1) if extracted else found, latest or EPOCH)
            messages = _LastMessages(last, before, lambda: dated(store.messages(conversation_id))[0])
        self._read, self._messages = key, messages
        return messages, unset


class _LastMessages(Sequence[Message]):
    """Messages from the first, of which all but the last are read when one of them is looked at."""

    def __init__(self, last: list[Message], before: int, read_all: Callable[[], list[Message]]) -> None:
        """
        Args:
            last: the last ones.
            before: how many stand before them.
            read_all: reads the messages from the first.
        """
        self._last, self._before, self._read_all = last, before, read_all

    def __len__(self) -> int:
        return self._before + len(self._last)

    def __iter__(self) -> Iterator[Message]:
        return iter(self._from(0))

    @overload
    def __getitem__(self, place: int) -> Message: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Message]: ...
    def __getitem__(self, place: int | slice) -> Message | Sequence[Message]:
        places = range(len(self))[place]
        if isinstance(places, int):
            return self._from(places)[places - self._before]
        last = self._from(min(places, default=len(self)))
        return [last[one - self._before] for one in places]

    def cut(self, count: int) -> None:
        """Keep the first `count`."""
        del self._last[max(count - self._before, 0) :]

    def add(self, messages: Sequence[Message]) -> None:
        self._last += messages

    def _from(self, place: int) -> list[Message]:
        """The last messages, this one among them."""
        if place < self._before:
            self._last, self._before = self._read_all()[: len(self)], 0
        return self._last


def dated(messages: Sequence[Message], latest: datetime = EPOCH) -> tuple[list[Message], list[str]]:
    """The messages, each with the latest instant so far: what was said later is not known earlier.

    An instant outside the years 1970-2099 is that of a clock that was not set, and counts as none.

    Args:
        messages: of a conversation.
        latest: of what was said before them.
    Returns:
        The messages, and the ids of those whose instant was passed over.
    """
    found, unset = [], []
    for message in messages:
        instant = message.created_at
        if instant is not None and not EPOCH <= instant < END_OF_CLOCKS:
            unset.append(message.message_id)
            instant = None
        latest = max(latest, instant or latest)
        found.append(message if message.created_at == latest else replace(message, created_at=latest))
    return found, unset
