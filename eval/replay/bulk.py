"""Replay in bulk: take in everything up to the next question, then answer."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from lcm.instants import EPOCH
from lcm.records import Query, Transcript


@dataclass(frozen=True, slots=True)
class Bulk:
    """Time runs forward: a question is answered by a memory to which nothing later has been said yet."""

    def steps(
        self, transcripts: Sequence[Transcript], queries: Sequence[Query]
    ) -> Iterator[tuple[list[Transcript], list[Query]]]:
        """Yield the transcripts that grew, as far as they have been heard, and the queries asked before they grow more.

        Queries between the same two messages come together. Every query is yielded once.
        """
        instants = [_instants(transcript) for transcript in transcripts]
        moments: dict[tuple[int, ...], list[Query]] = {}
        for query in sorted(queries, key=lambda query: query.asked_at):
            heard = tuple(bisect_right(times, query.asked_at) for times in instants)
            moments.setdefault(heard, []).append(query)
        before = (0,) * len(transcripts)
        for heard, asked in moments.items():
            grown = [_first(t, n) for t, n, known in zip(transcripts, heard, before, strict=True) if n > known]
            before = heard
            yield grown, asked


def _instants(transcript: Transcript) -> list[datetime]:
    """When each message is known to have been said: its own time, or the latest before it."""
    instants, latest = [], EPOCH
    for message in transcript.messages:
        latest = max(latest, message.created_at or latest)
        instants.append(latest)
    return instants


def _first(transcript: Transcript, n: int) -> Transcript:
    events = tuple(event for event in transcript.events if event.after <= n)
    return replace(transcript, messages=transcript.messages[:n], events=events)
