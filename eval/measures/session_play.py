"""A conversation as its session went: taken in turn by turn, compacted on the way, and read at some stops."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from eval.measures.shown_facts import SaidMessage, said_message
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
    said: Sequence[SaidMessage]
    """So far."""
    number: int
    """How many times compaction was forced by then; where it never is, how many turns were taken."""
    prompt: str = ""
    """What the user says next; at the end, what was said last."""
    next_turn: Sequence[Message] = ()
    """What is said next; empty at the end."""

    def contexts(self, budgets: Sequence[int]) -> list[Context]:
        """What a model would be shown, under each budget, before it answers the prompt."""
        assembly, memory = self.memory.system.assembly, self.memory
        asked_at = memory.store.last_said(self.conversation_id)
        recalled: Sequence[Recalled] = ()
        if assembly.shows_documents:
            memory.catch_up()
            query = Query("next", self.prompt, asked_at, conversation_id=self.conversation_id)
            recalled = memory.recalled(memory.rank([query])).get(query.query_id, ())
        asks = [ContextRequest(budget, self.prompt, recalled, asked_at) for budget in budgets]
        return memory.assemble(self.conversation_id, asks)


def played(
    system: System, transcript: Transcript, cycles: int | None, *, stops_at_turns: bool = False
) -> Iterator[SessionStop]:
    """Take in a conversation, by itself, and stop on the way; nothing is yielded of one that the system leaves out.

    Triggers of compaction look after every turn, as in a live session.

    Args:
        cycles: how many stops, after equal numbers of turns, the last at the end; there compaction is forced, whatever
            the triggers say. None = it never is, and every turn is a stop.
        stops_at_turns: every turn is a stop, whether or not compaction is forced there.
    """
    name, taken = transcript.conversation_id, list(turns(transcript.messages))
    if not taken or not system.session.writes(name, name):
        return
    count = 0 if cycles is None else min(cycles, len(taken))
    forced = {round(len(taken) * number / count): number for number in range(1, count + 1)}
    ledger, said, cycle, last_words = Ledger(), list[SaidMessage](), 0, ""
    with Memory.open(system, _TEMPORARY) as memory:
        for place, turn in enumerate(taken, start=1):
            memory.take_turn(name, turn)
            for message in turn:
                ledger.add(message)
                said.append(said_message(message, ledger.stated[message.message_id]))
                last_words = _asked([message]) or last_words
            if place in forced:
                cycle = forced[place]
                memory.compact([name], is_forced=True)
            if place in forced or stops_at_turns or cycles is None:
                number = place if cycles is None else cycle
                upcoming = taken[place] if place < len(taken) else ()
                yield SessionStop(memory, name, ledger, said, number, _asked(upcoming) or last_words, upcoming)


def _asked(messages: Sequence[Message]) -> str:
    """The first words of the user."""
    return next((one.content for one in messages if one.role == "user" and one.content.strip()), "")
