"""How far transcripts have come: when each message is known to have been said, and what a query has before it."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from lcm.clock import EPOCH
from lcm.records.conversation import Transcript
from lcm.records.query import Query


def queries_by_extent(
    transcripts: Sequence[Transcript], queries: Sequence[Query]
) -> dict[tuple[int, ...], list[Query]]:
    """Queries by how many messages of each transcript were said before them, in the order of asking."""
    said = [instants(transcript) for transcript in transcripts]
    by_instant: dict[datetime, list[Query]] = {}
    for query in sorted(queries, key=lambda query: query.asked_at):
        by_instant.setdefault(query.asked_at, []).append(query)
    found: dict[tuple[int, ...], list[Query]] = {}
    for asked_at, asked in by_instant.items():
        found.setdefault(tuple(bisect_right(times, asked_at) for times in said), []).extend(asked)
    return found


def instants(transcript: Transcript) -> list[datetime]:
    """When each message is known to have been said: its own time, or the latest before it."""
    found, latest = [], EPOCH
    for message in transcript.messages:
        latest = max(latest, message.created_at or latest)
        found.append(latest)
    return found


def transcript_until(transcript: Transcript, n: int) -> Transcript:
    """Its first n messages, and the events that stand before the next."""
    if n >= len(transcript.messages):
        return transcript
    events = tuple(event for event in transcript.events if event.after <= n)
    return replace(transcript, messages=transcript.messages[:n], events=events)
