"""An experiment: replay a dataset through a memory system and its control arms, and measure what came back."""

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import polars as pl

from eval.arms import Oracle
from eval.datasets.dataset import Dataset
from eval.measures.compression import CONVERSATION_SCHEMA, compressed
from eval.measures.latency import Latency, percentiles
from eval.measures.retention import RETENTION_SCHEMA, Retention
from eval.measures.retrieval import Retrieval, judged_queries
from eval.measures.summary_quality import QUALITY_SCHEMA, SummaryQuality
from lcm.errors import DatasetError
from lcm.memory import Memory, System
from lcm.protocols import Embedder, Ranker, Reporting
from lcm.records import Query, Transcript
from lcm.store.decisions import DECISION_SCHEMA
from lcm.tokens import Utf16Units

SYSTEM_ARM = "system"
REPORT_TOKENS = Utf16Units()
"""The one estimator behind every reported token count, whatever the system under test uses."""

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is."""


class Replay(Protocol):
    """A `replay` choice: how transcripts reach a memory.

    Laws: every query is yielded once; when it is, the memory has heard what was said before it, and no more.
    """

    def play(
        self, memory: Memory, transcripts: Sequence[Transcript], queries: Sequence[Query]
    ) -> Iterator[list[Query]]: ...


RUN_SCHEMA: dict[str, pl.DataType] = {
    "arm": pl.String(),
    "workspace_id": pl.String(),
    "query_id": pl.String(),
    "document_id": pl.String(),
    "rank": pl.Int64(),
    "score": pl.Float64(),
    "index_tier": pl.Int64(),
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an experiment found."""

    run: pl.DataFrame
    """arm, workspace_id, query_id, document_id, rank (1-based), score, index_tier (the width that answered, of an index
    with several)."""
    documents: pl.DataFrame
    """workspace_id, document_id, source_message_ids, tokens: every document that a run names."""
    values: pl.DataFrame
    """arm, query_id, measure, value: one a judged query."""
    means: pl.DataFrame
    """arm, group, measure, value, n, low, high."""
    confidence: float
    """Of the intervals: percentile bootstrap over queries."""
    compression: pl.DataFrame
    """workspace_id beside `eval.measures.compression`: what became of each conversation's context."""
    summary_quality: pl.DataFrame
    """arm, conversation_id, measure, value: summaries beside references, where the dataset has any."""
    summary_means: pl.DataFrame
    """arm, measure, value, n, low, high."""
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
    replay: Replay
    retrieval: Retrieval
    retention: Retention
    summary_quality: SummaryQuality
    latency: Latency
    live_embedder: Embedder
    """The system's embedder without a cache, for timing live queries."""
    arms: Mapping[str, Ranker | Oracle] = field(default_factory=dict)
    """Control arms: other rankings over the very same memory."""

    def __post_init__(self) -> None:
        dataset = self.dataset
        if judged_queries(dataset).is_empty() and not self._has_summaries():
            raise DatasetError(
                f"dataset {dataset.name!r} ({dataset.protocol}) has no judgements to measure retrieval by, only "
                f"{len(dataset.transcripts)} transcripts, {len(dataset.queries)} queries, {len(dataset.references)} "
                f"references and {dataset.options['query_id'].n_unique()} queries with options: choose one whose "
                "queries have evidence, as dataset=sample has; references of whole conversations are held against "
                "summaries with compaction=lossless"
            )

    def _has_summaries(self) -> bool:
        return self.summary_quality.is_measured(self.dataset) and not self.system.compaction.is_off

    def run(self, progress: Progress) -> Outcome:
        started = time.perf_counter()
        runs: list[pl.DataFrame] = []
        documents: list[pl.DataFrame] = []
        samples: list[dict[str, float]] = []
        sizes: dict[str, list[int]] = {"message": [], "session": []}
        timed = {query.query_id for query in self.latency.chosen(self.dataset.queries)}
        workspaces = list(dict.fromkeys(t.workspace_id for t in self.dataset.transcripts))
        evidence = dict(
            self.dataset.qrels.filter(pl.col("relevance") > 0)
            .group_by("query_id", maintain_order=True)
            .agg("message_id")
            .iter_rows()
        )
        retained: list[pl.DataFrame] = [pl.DataFrame(schema=RETENTION_SCHEMA)]
        compression = [_told(pl.DataFrame(schema=CONVERSATION_SCHEMA), "")]
        decisions: list[pl.DataFrame] = [_told(pl.DataFrame(schema=DECISION_SCHEMA), "")]
        incidents: Counter[str] = Counter()
        rankings: dict[str, Ranker] = {SYSTEM_ARM: self.system.ranking}
        for arm, control in self.arms.items():
            rankings[arm] = control.ranking(self.dataset) if isinstance(control, Oracle) else control
        answered = 0
        widths: set[int] = set()
        for workspace in workspaces:
            transcripts = [t for t in self.dataset.transcripts if t.workspace_id == workspace]
            queries = [query for query in self.dataset.queries if query.workspace_id == workspace]
            with self.system.open() as memory:
                for asked in self.replay.play(memory, transcripts, queries):
                    recalled = memory.recall(asked)
                    for arm, ranking in rankings.items():
                        ranked = recalled if arm == SYSTEM_ARM else memory.rank(asked, ranking)
                        runs.append(
                            ranked.with_columns(arm=pl.lit(arm), workspace_id=pl.lit(workspace)).select(
                                list(RUN_SCHEMA)
                            )
                        )
                    retained.append(self.retention.values(memory, asked, evidence, recalled))
                    answered += len(asked)
                    progress("replaying", answered, len(self.dataset.queries))
                documents.append(_reported(memory.documents, workspace))
                widths |= set(getattr(memory.vector_index, "widths", ()))
                sizes["message"].append(len(memory.documents))
                sizes["session"].append(memory.documents["session_id"].n_unique())
                live = [query for query in queries if query.query_id in timed]
                others = [query for query in queries if query.query_id not in timed]
                decisions.append(_told(memory.store.decisions(), workspace))
                compression.append(_told(compressed(memory.store, REPORT_TOKENS), workspace))
                incidents += memory.incidents
                if isinstance(memory.vector_index, Reporting):
                    incidents += Counter(memory.vector_index.incidents)
                samples += self.latency.measure(memory, self.live_embedder, live, others) if live else []
        replayed = time.perf_counter()
        progress("measuring", 0, 1)
        run = pl.concat([pl.DataFrame(schema=RUN_SCHEMA), *runs])
        every_document = pl.concat(documents)
        values = pl.concat(
            [
                self.retrieval.values(run, every_document, self.dataset, list(rankings)),
                pl.concat(retained).select(pl.lit(SYSTEM_ARM).alias("arm"), pl.all()),
            ]
        )
        quality = pl.DataFrame(schema=QUALITY_SCHEMA)
        if self._has_summaries():
            quality, failures = self.summary_quality.values(
                self.dataset, self.system.compaction.summarizer, REPORT_TOKENS
            )
            incidents += failures
        means = self.retrieval.means(values, self.dataset)
        progress("measuring", 1, 1)
        judged = len(judged_queries(self.dataset))
        return Outcome(
            run=run,
            documents=every_document.drop("kind", "is_durable").join(
                run.select("document_id").unique(), on="document_id", how="semi"
            ),
            values=values,
            means=means,
            confidence=self.retrieval.confidence,
            compression=pl.concat(compression),
            summary_quality=quality,
            summary_means=self.summary_quality.means(
                quality, self.retrieval.resamples, self.retrieval.confidence, self.retrieval.seed
            ),
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
            flags=(
                *self._flags(sizes),
                *_unanswered(run, len(self.dataset.queries)),
                *_of_documents(every_document, self.system),
                *_of_index_tiers(run, widths),
                *_over_budget(values),
            ),
            latency=percentiles(samples),
            seconds={"replay": replayed - started, "measures": time.perf_counter() - replayed},
        )

    def _flags(self, sizes: Mapping[str, Sequence[int]]) -> tuple[str, ...]:
        """A cutoff that takes in a whole haystack measures nothing; where nothing is judged, nothing is cut off."""
        if judged_queries(self.dataset).is_empty():
            return ()
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


def _of_documents(documents: pl.DataFrame, system: System) -> tuple[str, ...]:
    """What a reader must know of which documents stand for what, and who finds them."""
    found = []
    if summaries := documents.filter(kind="summary").height:
        found.append(
            f"{summaries:,} of {len(documents):,} documents are summaries: finding one counts for every message that "
            "it stands for, so recall grows with their size; nDCG and tokens@k tell what that costs"
        )
    if hidden := documents.filter(~pl.col("is_durable")).height:
        found.append(
            f"{hidden:,} of {len(documents):,} documents are found from their own session alone, by every arm: "
            "admission did not promote them (admission.threshold, admission.promotion, admission.roles)"
        )
    if system.assembly.shows_documents and not system.compaction.is_off and system.summary_documents.is_off:
        found.append("this assembly shows summaries where ranking finds them: summary_documents=searchable makes it so")
    if system.compaction.is_off and not system.summary_documents.is_off:
        found.append("summary_documents has nothing to find: compaction=none makes no summary")
    return tuple(found)


def _of_index_tiers(run: pl.DataFrame, widths: Collection[int]) -> tuple[str, ...]:
    """Small haystacks are answered by the full width at once."""
    answered = run.filter(arm=SYSTEM_ARM)["index_tier"].drop_nulls()
    if len(widths) < 2 or answered.is_empty() or answered.min() != max(widths):
        return ()
    return (f"no query was answered by an index tier narrower than {max(widths)} (vector_index.tiers_from)",)


def _over_budget(values: pl.DataFrame) -> tuple[str, ...]:
    """The fresh tail is always shown, whatever it costs."""
    costs = values.filter(pl.col("measure").str.starts_with("context_tokens@")).with_columns(
        budget=pl.col("measure").str.split("@").list.last().cast(pl.Int64)
    )
    over = costs.filter(pl.col("value") > pl.col("budget")).group_by("budget", maintain_order=True).len()
    return tuple(
        f"{n} of {costs.filter(budget=budget).height} contexts cost more than the budget of {budget} tokens: so does "
        "what they always show, as their fresh tail (assembly.fresh_tail_* or assembly.tail.*)"
        for budget, n in over.iter_rows()
    )


def _told(decisions: pl.DataFrame, workspace: str) -> pl.DataFrame:
    return decisions.select(pl.lit(workspace).alias("workspace_id"), pl.all())


def _reported(documents: pl.DataFrame, workspace: str) -> pl.DataFrame:
    tokens = pl.Series("tokens", REPORT_TOKENS.count(documents["text"].to_list()), dtype=pl.Int64)
    told = ("document_id", "source_message_ids", "kind", "is_durable")
    return documents.select(*told, workspace_id=pl.lit(workspace)).with_columns(tokens)
