"""How often what a message states is stated again later, by counts that grow with what is new alone."""

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from lcm.compaction.facts.finding import statements_of
from lcm.compaction.facts.reading import read_message
from lcm.compaction.facts.statement import Kind
from lcm.records.conversation import Message, Part
from lcm.records.summary import MessageHeat

Fact = tuple[Kind, str]
"""What statements are about, whatever value they give it."""


class Heat:
    """Of each message that stands in a context: how many later messages state one of its facts again.

    Each message of the conversation is read once, in order. What has left the context heats what stands there, and is
    remembered no longer.
    """

    def __init__(self) -> None:
        self.read = 0
        """Messages of the conversation that were read."""
        self._standing: dict[str, _Standing] = {}
        self._stating: dict[Fact, set[str]] = {}
        """The standing messages that state a fact."""
        self._open_calls: dict[str, str] = {}
        """A call of a tool without a result -> the message that makes it."""
        self._heat: dict[str, int] = {}

    def of_all(self) -> dict[str, MessageHeat]:
        """By the ids of the messages that stand."""
        return {one: MessageHeat(self._heat[one], known.caller) for one, known in self._standing.items()}

    def covers(self, standing: Collection[str]) -> bool:
        """Whether all of them were read as standing."""
        return self._standing.keys() >= set(standing)

    def follow(self, messages: Sequence[Message], standing: Collection[str]) -> None:
        """Take in what was said since.

        Args:
            messages: all of the conversation behind those that were read.
            standing: the ids of all messages in the context.
        """
        left = set(standing)
        for message_id in [one for one in self._standing if one not in left]:
            self._drop(message_id)
        for message in messages:
            facts = facts_of(message)
            for restated in set[str]().union(*(self._stating.get(fact, ()) for fact in facts)):
                self._heat[restated] += 1
            caller = self._caller_of(message)
            if message.message_id in left:
                self._keep(message.message_id, _Standing(facts, caller))
        self.read += len(messages)

    def _keep(self, message_id: str, standing: "_Standing") -> None:
        self._standing[message_id], self._heat[message_id] = standing, 0
        for fact in standing.facts:
            self._stating.setdefault(fact, set()).add(message_id)

    def _drop(self, message_id: str) -> None:
        del self._heat[message_id]
        for fact in self._standing.pop(message_id).facts:
            self._stating[fact].discard(message_id)
            if not self._stating[fact]:
                del self._stating[fact]

    def _caller_of(self, message: Message) -> str:
        """A result belongs to the nearest message before it that calls its id and has no answer yet."""
        for part in _of_tools(message):
            if part.tool_input is not None:
                self._open_calls[str(part.tool_call_id)] = message.message_id
        results = (part for part in _of_tools(message) if part.tool_input is None)
        callers = [self._open_calls.pop(str(part.tool_call_id), message.message_id) for part in results]
        return callers[0] if callers else message.message_id


class _Standing(NamedTuple):
    facts: frozenset[Fact]
    caller: str


def facts_of(message: Message) -> frozenset[Fact]:
    """What a message states something about."""
    return frozenset((one.kind, one.key) for one in statements_of(read_message(message)))


def _of_tools(message: Message) -> Iterator[Part]:
    return (part for part in message.parts if part.part_type == "tool" and part.tool_call_id is not None)
