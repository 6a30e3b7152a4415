"""How much of an uncached run goes into ranking: everything behind the source."""

import time
from dataclasses import dataclass, field, replace

import polars as pl

from eval.benchmark import corpus
from eval.benchmark.timing import Comparison, DisagreementError, Rounds, Target, compared_times
from lcm.memory import System
from lcm.protocols import Batch, Source

TARGET = Target("at most", 0.05)


@dataclass(frozen=True, slots=True)
class RankingShare:
    """The stages' time for all queries at once, as a share of a whole run that embeds, indexes, searches and ranks.

    Nothing comes from a cache; the first run is not counted.
    """

    system: System
    messages: int
    queries: int

    def __post_init__(self) -> None:
        for name in ("messages", "queries"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be >= 1, got {getattr(self, name)}")

    def run(self, repeats: int, seed: int) -> list[Comparison]:
        transcript, queries = corpus.transcript(self.messages, seed), corpus.queries(self.queries, seed)
        ranking: list[float] = []
        whole: list[float] = []
        for number in range(repeats + 1):
            source = _TimedSource(self.system.ranking.source)
            started = time.perf_counter()
            with self.system.open() as memory:
                memory.ingest(transcript)
                vectors = self.system.embedder.embed([query.text for query in queries], "query")
                embedded = time.perf_counter()
                ranked = memory.rank(queries, replace(self.system.ranking, source=source), vectors)
                ended = time.perf_counter()
                if not ranked.equals(memory.rank(queries, vectors=vectors)):
                    raise DisagreementError("the timed ranking and the system's own gave different answers")
            if number:
                ranking.append(ended - embedded - source.seconds)
                whole.append(ended - started)
        rounds = Rounds(tuple(ranking), tuple(whole))
        facts = {"messages": self.messages, "queries": self.queries}
        return [compared_times("ranking, of an uncached run", "s", 1, rounds, TARGET, facts)]


@dataclass
class _TimedSource:
    """A source that notes how long it takes."""

    source: Source
    seconds: float = field(default=0.0)

    @property
    def needs_vectors(self) -> bool:
        return self.source.needs_vectors

    def candidates(self, batch: Batch) -> pl.DataFrame:
        started = time.perf_counter()
        frame = self.source.candidates(batch)
        self.seconds += time.perf_counter() - started
        return frame
