"""An experiment: replay a dataset through a memory system and its control arms, and measure what came back."""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from eval.arms import Oracle
from eval.datasets.dataset import Dataset
from eval.measures.latency import Latency, percentiles
from eval.measures.retrieval import Retrieval, judged_queries
from eval.replay.bulk import Bulk
from lcm.errors import DatasetError
from lcm.memory import System
from lcm.protocols import Embedder, Ranker
from lcm.store.decisions import DECISION_SCHEMA
from lcm.tokens import Utf16Units

SYSTEM_ARM = "system"
REPORT_TOKENS = Utf16Units()
"""The one estimator behind every reported token count, whatever the system under test uses."""

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is."""

RUN_SCHEMA: dict[str, pl.DataType] = {
    "arm": pl.String(),
    "workspace_id": pl.String(),
    "query_id": pl.String(),
    "document_id": pl.String(),
    "rank": pl.Int64(),
    "score": pl.Float64(),
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an experiment found."""

    run: pl.DataFrame
    """arm, workspace_id, query_id, document_id, rank (1-based), score."""
    documents: pl.DataFrame
    """workspace_id, document_id, source_message_ids, tokens: every document that a run names."""
    values: pl.DataFrame
    """arm, query_id, measure, value: one a judged query."""
    means: pl.DataFrame
    """arm, group, measure, value, n, low, high."""
    confidence: float
    """Of the intervals: percentile bootstrap over queries."""
    decisions: pl.DataFrame
    """workspace_id beside the store's decisions: what became of every candidate that was judged."""
    counts: Mapping[str, int]
    """workspaces, messages, documents, queries, judged and unjudged queries."""
    incidents: Mapping[str, int]
    """What failed and was survived, by name and times."""
    flags: tuple[str, ...]
    """What a reader of the numbers must know."""
    latency: Mapping[str, Mapping[str, float]]
    """Part -> percentiles in milliseconds; empty where not measured."""
    seconds: Mapping[str, float]
    """Wall time by phase."""


@dataclass(frozen=True, slots=True)
class Experiment:
    """A dataset, a system, and what is measured."""

    dataset: Dataset
    system: System
    replay: Bulk
    retrieval: Retrieval
    latency: Latency
    live_embedder: Embedder
    """The system's embedder without a cache, for timing live queries."""
    arms: Mapping[str, Ranker | Oracle] = field(default_factory=dict)
    """Control arms: other rankings over the very same memory."""

    def __post_init__(self) -> None:
        dataset = self.dataset
        if judged_queries(dataset).is_empty():
            raise DatasetError(
                f"dataset {dataset.name!r} ({dataset.protocol}) has no judgements to measure retrieval by, only "
                f"{len(dataset.transcripts)} transcripts, {len(dataset.queries)} queries, {len(dataset.references)} "
                f"references and {dataset.options['query_id'].n_unique()} queries with options: choose one whose "
                "queries have evidence, as dataset=sample has"
            )

    def run(self, progress: Progress) -> Outcome:
        started = time.perf_counter()
        runs: list[pl.DataFrame] = []
        documents: list[pl.DataFrame] = []
        samples: list[dict[str, float]] = []
        sizes: dict[str, list[int]] = {"message": [], "session": []}
        timed = {query.query_id for query in self.latency.chosen(self.dataset.queries)}
        workspaces = list(dict.fromkeys(t.workspace_id for t in self.dataset.transcripts))
        decisions: list[pl.DataFrame] = [_told(pl.DataFrame(schema=DECISION_SCHEMA), "")]
        incidents: Counter[str] = Counter()
        rankings: dict[str, Ranker] = {SYSTEM_ARM: self.system.ranking}
        for arm, control in self.arms.items():
            rankings[arm] = control.ranking(self.dataset) if isinstance(control, Oracle) else control
        answered = 0
        for workspace in workspaces:
            transcripts = [t for t in self.dataset.transcripts if t.workspace_id == workspace]
            queries = [query for query in self.dataset.queries if query.workspace_id == workspace]
            with self.system.open() as memory:
                for heard, asked in self.replay.steps(transcripts, queries):
                    for transcript in heard:
                        memory.ingest(transcript)
                    for arm, ranking in rankings.items():
                        ranked = memory.recall(asked) if arm == SYSTEM_ARM else memory.rank(asked, ranking)
                        runs.append(
                            ranked.with_columns(arm=pl.lit(arm), workspace_id=pl.lit(workspace)).select(
                                list(RUN_SCHEMA)
                            )
                        )
                    answered += len(asked)
                    progress("replaying", answered, len(self.dataset.queries))
                documents.append(_reported(memory.documents, workspace))
                sizes["message"].append(len(memory.documents))
                sizes["session"].append(memory.documents["session_id"].n_unique())
                live = [query for query in queries if query.query_id in timed]
                others = [query for query in queries if query.query_id not in timed]
                decisions.append(_told(memory.store.decisions(), workspace))
                incidents += memory.incidents
                samples += self.latency.measure(memory, self.live_embedder, live, others) if live else []
        replayed = time.perf_counter()
        progress("measuring", 0, 1)
        run = pl.concat([pl.DataFrame(schema=RUN_SCHEMA), *runs])
        every_document = pl.concat(documents)
        values = self.retrieval.values(run, every_document, self.dataset, list(rankings))
        means = self.retrieval.means(values, self.dataset)
        progress("measuring", 1, 1)
        judged = len(judged_queries(self.dataset))
        return Outcome(
            run=run,
            documents=every_document.join(run.select("document_id").unique(), on="document_id", how="semi"),
            values=values,
            means=means,
            confidence=self.retrieval.confidence,
            decisions=pl.concat(decisions),
            incidents=dict(sorted(incidents.items())),
            counts={
                "workspaces": len(workspaces),
                "messages": sum(len(t.messages) for t in self.dataset.transcripts),
                "documents": sum(sizes["message"]),
                "queries": len(self.dataset.queries),
                "judged_queries": judged,
                "unjudged_queries": len(self.dataset.queries) - judged,
            },
            flags=(*self._flags(sizes), *_unanswered(run, len(self.dataset.queries))),
            latency=percentiles(samples),
            seconds={"replay": replayed - started, "measures": time.perf_counter() - replayed},
        )

    def _flags(self, sizes: Mapping[str, Sequence[int]]) -> tuple[str, ...]:
        """A cutoff that takes in a whole haystack measures nothing."""
        cutoffs = sorted({int(name.partition("@")[2]) for name in self.retrieval.names if "@" in name})
        units = {"message": ("documents", "a measure"), "session": ("sessions", "a session measure")}
        return tuple(
            f"{small} of {len(sizes[level])} workspaces hold no more than {k} {unit}: {measure} @{k} can take in all"
            for level, (unit, measure) in units.items()
            if level in self.retrieval.levels
            for k in cutoffs
            if (small := sum(size <= k for size in sizes[level]))
        )


def _unanswered(run: pl.DataFrame, queries: int) -> tuple[str, ...]:
    """Minima and filters may leave nothing: recall tells of that only with what else went wrong."""
    empty = queries - run.filter(arm=SYSTEM_ARM)["query_id"].n_unique()
    return (f"{empty} of {queries} queries were answered with no document",) if empty else ()


def _told(decisions: pl.DataFrame, workspace: str) -> pl.DataFrame:
    return decisions.select(pl.lit(workspace).alias("workspace_id"), pl.all())


def _reported(documents: pl.DataFrame, workspace: str) -> pl.DataFrame:
    tokens = pl.Series("tokens", REPORT_TOKENS.count(documents["text"].to_list()), dtype=pl.Int64)
    return documents.select("document_id", "source_message_ids", workspace_id=pl.lit(workspace)).with_columns(tokens)
