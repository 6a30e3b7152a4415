"""A conversation as its session went: taken in turn by turn, compacted on the way, and read at some stops."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from eval.replay.per_turn import turns
from lcm.compaction.facts.ledger import Ledger
from lcm.memory.memory import Memory
from lcm.memory.system import System
from lcm.protocols.context import ContextRequest
from lcm.records.context import Context
from lcm.records.conversation import Message, Transcript
from lcm.records.query import Query, Recalled

_TEMPORARY = ""
"""A workspace that lies in memory until it is large."""


@dataclass(frozen=True, slots=True)
class SessionStop:
    """A session up to one of its turns: the memory of it alone, and all that was stated by then."""

    memory: Memory
    conversation_id: str
    ledger: Ledger
    said: Sequence[Message]
    """So far."""
    number: int
    """Of the stop, from 1."""
    next_turn: Sequence[Message] = ()
    """What is said next; empty at the end."""

    def contexts(self, budgets: Sequence[int]) -> list[Context]:
        """What a model would be shown, under each budget, before it answers what is said next; at the end, what was
        said last."""
        assembly, memory = self.memory.system.assembly, self.memory
        prompt = next((m.content for m in self.next_turn if m.role == "user"), "") or _last_words(self.said)
        asked_at = memory.store.last_said(self.conversation_id)
        recalled: Sequence[Recalled] = ()
        if assembly.shows_documents:
            memory.catch_up()
            query = Query("next", prompt, asked_at, conversation_id=self.conversation_id)
            recalled = memory.recalled(memory.rank([query])).get(query.query_id, ())
        asks = [ContextRequest(budget, prompt, recalled, asked_at) for budget in budgets]
        return memory.assemble(self.conversation_id, asks)


def played(system: System, transcript: Transcript, stops: int | None, *, is_forced: bool) -> Iterator[SessionStop]:
    """Take in a conversation, by itself, and stop on the way; nothing is yielded of one that the system leaves out.

    Triggers of compaction look after every turn, as in a live session.

    Args:
        stops: how many, after equal numbers of turns, the last at the end; None = after every turn.
        is_forced: compact at each stop, whatever the triggers say.
    """
    name, taken = transcript.conversation_id, list(turns(transcript.messages))
    if not taken or not system.session.writes(name, name):
        return
    count = len(taken) if stops is None else min(stops, len(taken))
    ends = [round(len(taken) * number / count) for number in range(1, count + 1)]
    ledger, said = Ledger(), list[Message]()
    with Memory.open(system, _TEMPORARY) as memory:
        for number, (start, end) in enumerate(zip([0, *ends], ends, strict=False), start=1):
            for turn in taken[start:end]:
                memory.take_turn(name, turn)
                for message in turn:
                    ledger.add(message)
                said += turn
            if is_forced:
                memory.compact([name], is_forced=True)
            yield SessionStop(memory, name, ledger, said, number, taken[end] if end < len(taken) else ())


def _last_words(said: Sequence[Message]) -> str:
    return next((one.content for one in reversed(said) if one.role == "user" and one.content.strip()), "")
