"""Replay in bulk: take in everything up to the next question, compact once, then answer."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from lcm.clock import EPOCH
from lcm.memory.memory import Memory
from lcm.records.conversation import Transcript
from lcm.records.query import Query


@dataclass(frozen=True, slots=True)
class Bulk:
    """Ingests everything up to the next question, compacts once, then answers; nothing later is known by then."""

    def play(
        self, memory: Memory, transcripts: Sequence[Transcript], queries: Sequence[Query]
    ) -> Iterator[list[Query]]:
        """Ingest the transcripts; yield queries when the memory holds what was said before them, and no more.

        Queries between the same two messages come together. Every query is yielded once.
        """
        for ingested, asked in self.steps(transcripts, queries):
            for transcript in ingested:
                memory.ingest(transcript)
            memory.compact([transcript.conversation_id for transcript in ingested])
            yield asked

    def steps(
        self, transcripts: Sequence[Transcript], queries: Sequence[Query]
    ) -> Iterator[tuple[list[Transcript], list[Query]]]:
        """Yield the transcripts that grew, as far as they are ingested, and the queries asked before more is."""
        before = (0,) * len(transcripts)
        for ingested, asked in queries_by_extent(transcripts, queries).items():
            grown = [
                transcript_until(t, n) for t, n, known in zip(transcripts, ingested, before, strict=True) if n > known
            ]
            before = ingested
            yield grown, asked


def queries_by_extent(
    transcripts: Sequence[Transcript], queries: Sequence[Query]
) -> dict[tuple[int, ...], list[Query]]:
    """Queries by how many messages of each transcript were said before them, in the order of asking."""
    instants = [_instants(transcript) for transcript in transcripts]
    found: dict[tuple[int, ...], list[Query]] = {}
    for query in sorted(queries, key=lambda query: query.asked_at):
        ingested = tuple(bisect_right(times, query.asked_at) for times in instants)
        found.setdefault(ingested, []).append(query)
    return found


def _instants(transcript: Transcript) -> list[datetime]:
    """When each message is known to have been said: its own time, or the latest before it."""
    instants, latest = [], EPOCH
    for message in transcript.messages:
        latest = max(latest, message.created_at or latest)
        instants.append(latest)
    return instants


def transcript_until(transcript: Transcript, n: int) -> Transcript:
    """Its first n messages, and the events that stand before the next."""
    events = tuple(event for event in transcript.events if event.after <= n)
    return replace(transcript, messages=transcript.messages[:n], events=events)
