"""A conversation's messages as a tail sees them, each made when it is first asked for."""

from collections.abc import Sequence
from typing import overload
from zoneinfo import ZoneInfo

from lcm.compaction.recent_tail import Turn
from lcm.context.assembly.clean_up import cleaned, pruned
from lcm.context.assembly.memory_header import Source, entry
from lcm.context.assembly.pairing import Piece
from lcm.context.assembly.runtime_message import RuntimeMessage, readable_text
from lcm.context.assembly.shown_items import ShownItems
from lcm.protocols.models import TokenEstimator
from lcm.records.conversation import Message
from lcm.transcript.message_tokens import message_tokens
from lcm.transcript.passages import utterance
from lcm.transcript.recorded_metadata import recorded_bundle
from lcm.transcript.rendering.agent_form import turn_of

_AHEAD = 64
"""How many turns are made at once, so that an estimator gets batches."""


class TailTurns(Sequence[Turn]):
    """Messages, and what each takes of a budget: as an agent's message, or as an entry."""

    def __init__(
        self, messages: Sequence[Message], estimator: TokenEstimator, *, as_entries: bool, source: Source = "session"
    ) -> None:
        self.messages = messages
        self._source = source
        self._estimator = estimator
        self._shown = None if as_entries else ShownItems(messages, estimator, ZoneInfo("UTC"))
        self._entries: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self.messages)

    @overload
    def __getitem__(self, place: int) -> Turn: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Turn]: ...
    def __getitem__(self, place: int | slice) -> Turn | Sequence[Turn]:
        if isinstance(place, slice):
            return [self[at] for at in range(*place.indices(len(self)))]
        message = self.messages[place]
        if self._shown is None:
            return Turn(self._entry_tokens(place), message.role, _bundle(message))
        shown = self._shown[place]
        return Turn(shown.tokens, "tool" if shown.results else message.role, _bundle(message))

    def agent_messages(self, first: int) -> tuple[list[RuntimeMessage], dict[int, str]]:
        """The messages from a place on as a model is sent them, results behind their calls; and what each place says
        there, where it is not left out."""
        if self._shown is None:
            raise TypeError("turns that are shown as entries are no messages of an agent")
        places = range(first, len(self))
        chosen = [placed for place in places for placed in self._shown[place].messages]
        standing = pruned(chosen, first, self._shown, "corrected")
        messages = cleaned(standing, "corrected")
        kept: set[Piece] = {piece for placed in messages for piece in placed.pieces}
        said: dict[int, list[str]] = {}
        for placed in standing:
            if placed.pieces[0] in kept:
                said.setdefault(placed.pieces[0][0], []).append(readable_text(placed.message))
        return [placed.message for placed in messages], {place: "\n".join(texts) for place, texts in said.items()}

    def _entry_tokens(self, place: int) -> int:
        if place not in self._entries:
            places = [at for at in range(max(0, place + 1 - _AHEAD), place + 1) if at not in self._entries]
            counts = message_tokens([self.messages[at] for at in places], self._entry, self._estimator)
            self._entries.update(zip(places, counts, strict=True))
        return self._entries[place]

    def _entry(self, message: Message) -> str:
        return entry_of(message, self._source)


def entry_of(message: Message, source: Source = "session") -> str:
    """A message as an entry; one that holds only calls shows them."""
    return entry(utterance(message), message.role, source)


def _bundle(message: Message) -> str:
    """What the message belongs to: the bundle that its record names, or the turn whose piece it is."""
    return recorded_bundle(message) or turn_of(message)
