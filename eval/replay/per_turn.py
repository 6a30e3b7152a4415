"""Replay turn by turn: compaction acts as it would have in the live session."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from eval.replay.extent import queries_by_extent, transcript_until
from eval.replay.haystack import Haystack
from lcm.memory.memory import Memory
from lcm.records.conversation import Message, Transcript
from lcm.records.query import Query


@dataclass(frozen=True, slots=True)
class PerTurn(Haystack):
    """A turn is all up to the next message of the user. After each, compaction looks at its triggers; a question finds
    the context that existed then. Transcripts of one workspace are ingested one after another between two questions."""

    is_per_turn = True

    def play(
        self, memory: Memory, transcripts: Sequence[Transcript], queries: Sequence[Query]
    ) -> Iterator[list[Query]]:
        """Ingest the transcripts; yield queries when the memory holds what was said before them, and no more.

        Queries between the same two messages come together. Every query is yielded once.
        """
        before = (0,) * len(transcripts)
        for ingested, asked in queries_by_extent(transcripts, queries).items():
            for transcript, n, known in zip(transcripts, ingested, before, strict=True):
                if n > known:
                    _ingest_turns(memory, transcript_until(transcript, n), known)
            before = ingested
            memory.catch_up()
            yield asked


def _ingest_turns(memory: Memory, transcript: Transcript, known: int) -> None:
    """Take the turns behind the first `known` messages; then note what is recorded beside the messages so far."""
    name = transcript.conversation_id
    for turn in turns(transcript.messages[known:]):
        memory.take_turn(name, turn)
    if memory.system.session.writes(name, name):
        memory.store.put_events(name, 0, transcript.events, transcript.title)


def turns(messages: Sequence[Message]) -> Iterator[list[Message]]:
    """Cut before each message of the user."""
    number = 0

    def turn_of(message: Message) -> int:
        nonlocal number
        number += message.role == "user"
        return number

    for _, turn in groupby(messages, turn_of):
        yield list(turn)
