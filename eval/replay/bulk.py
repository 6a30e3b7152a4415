"""Replay in bulk: take in everything up to the next question, compact once, then answer."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from eval.replay.extent import queries_by_extent, transcript_until
from eval.replay.haystack import Haystack
from lcm.memory.memory import Memory
from lcm.records.conversation import Transcript
from lcm.records.query import Query


@dataclass(frozen=True, slots=True)
class Bulk(Haystack):
    """Ingests everything up to the next question, compacts once, then answers; nothing later is known by then."""

    def play(
        self, memory: Memory, transcripts: Sequence[Transcript], queries: Sequence[Query]
    ) -> Iterator[list[Query]]:
        """Ingest the transcripts; yield queries when the memory holds what was said before them, and no more.

        Queries between the same two messages come together. Every query is yielded once.
        """
        for ingested, asked in self.steps(transcripts, queries):
            memory.ingest_all(ingested)
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
