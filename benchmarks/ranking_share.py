"""How much of an uncached run goes into ranking: everything behind the source."""

import statistics
import time
from dataclasses import dataclass, replace
from typing import Any

from benchmarks import corpus
from benchmarks.timing import Comparison, DisagreementError, RoundTimes, Target, compared_times
from eval.stopwatch import Stopwatch
from lcm.checks import check_range
from lcm.memory.memory import Memory
from lcm.memory.system import System
from lcm.retrieval.ranking.pipeline import Ranking

TARGET = Target("at most", 0.05)


@dataclass(frozen=True, slots=True)
class RankingShare:
    """The stages' time for all queries at once, as a share of a whole run that embeds, indexes, searches and ranks.

    Nothing comes from a cache; the first run is not counted. Beside it stands the share of a run that need not embed.
    """

    system: System
    messages: int
    queries: int

    def __post_init__(self) -> None:
        check_range(self, "messages", "queries", ge=1)

    def run(self, repeats: int, seed: int) -> list[Comparison]:
        timed = self.system.ranking
        if not isinstance(timed, Ranking):
            raise TypeError(f"memory.ranking must be one ranking, with a source to time, got {timed!r}")
        transcript, queries = corpus.transcript(self.messages, seed), corpus.queries(self.queries, seed)
        ranking: list[float] = []
        whole: list[float] = []
        without_embedding: list[float] = []
        for number in range(repeats + 1):
            source: Any = Stopwatch(timed.source, "candidates")
            embedder: Any = Stopwatch(self.system.embedder, "windows", "embed")
            started = time.perf_counter()
            with Memory.open(replace(self.system, embedder=embedder)) as memory:
                memory.ingest(transcript)
                vectors = embedder.embed([query.text for query in queries], "query")
                embedded = time.perf_counter()
                ranked = memory.rank(queries, replace(timed, source=source), vectors)
                ended = time.perf_counter()
                if not ranked.equals(memory.rank(queries, vectors=vectors)):
                    raise DisagreementError("the timed ranking and the system's own gave different answers")
            if number:
                ranking.append(ended - embedded - source.seconds)
                whole.append(ended - started)
                without_embedding.append(ended - started - embedder.seconds)
        rounds = RoundTimes(tuple(ranking), tuple(whole))
        shares = (ranked_s / run_s for ranked_s, run_s in zip(ranking, without_embedding, strict=True))
        facts = {
            "messages": self.messages,
            "queries": self.queries,
            "share_without_embedding": statistics.median(shares),
        }
        return [compared_times("ranking, of an uncached run", "s", 1, rounds, TARGET, facts)]
