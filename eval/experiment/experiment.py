"""An experiment: replay a dataset through a memory system and its control arms, and measure what came back."""

import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import polars as pl

from eval.arms.oracle import Oracle
from eval.cache.fingerprint import Fingerprint, digest
from eval.cache.frame_cache import FrameCache, Made
from eval.cache.stage_cache import StageCache
from eval.dataset.dataset import Dataset
from eval.executor.timing import refuse_timing
from eval.experiment.elsewhere import Apart
from eval.experiment.workspace import REPORT_TOKENS, RUN_SCHEMA, SYSTEM_ARM, WorkspaceEvaluator, WorkspaceResult
from eval.measures.latency import Latency, percentiles
from eval.measures.retention import RETENTION_SCHEMA, Retention
from eval.measures.retrieval import MEANS_SCHEMA, VALUES_SCHEMA, Retrieval, judged_queries
from eval.measures.summary_quality import QUALITY_SCHEMA, SummaryQuality
from eval.replay.workspace_replay import Replay
from lcm.errors import DatasetError
from lcm.memory.system import System
from lcm.protocols import Embedder, Ranker

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is."""


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
    cache: StageCache | None = None
    """Where stages are kept, so that only what changes is worked out again; None = nowhere. The numbers are equal."""
    apart: Apart | None = None
    """Who asks the workspaces; None = this process, one after the other. The numbers are equal."""

    def __post_init__(self) -> None:
        if self.apart is not None:
            refuse_timing(self.apart.executor, self.latency.queries)
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
        answered = 0

        def asked(queries: int) -> None:
            nonlocal answered
            answered += queries
            progress("replaying", answered, len(self.dataset.queries))

        found = self._answers(asked) if self.apart is None else self.apart.answers(self.dataset, asked)
        replayed = time.perf_counter()
        progress("measuring", 0, 1)
        outcome = self._measured(found, [SYSTEM_ARM, *self.arms])
        progress("measuring", 1, 1)
        return replace(outcome, seconds={"replay": replayed - started, "measures": time.perf_counter() - replayed})

    def _answers(self, asked: Callable[[int], None]) -> list[WorkspaceResult]:
        evaluator = WorkspaceEvaluator(
            self.dataset,
            self.system,
            self.replay,
            rankings_of(self.system, self.arms, self.dataset),
            self.retention,
            self.latency,
            self.live_embedder,
            self.cache,
        )
        return [
            evaluator.answers(one, asked) for one in dict.fromkeys(t.workspace_id for t in self.dataset.transcripts)
        ]

    def _measured(self, found: Sequence[WorkspaceResult], arms: Sequence[str]) -> Outcome:
        documents = pl.concat([one.documents for one in found])
        values = [pl.DataFrame(schema=VALUES_SCHEMA)]
        means = [pl.DataFrame(schema=MEANS_SCHEMA)]
        for arm in arms:
            of_arm = self._values(found, arm, documents)
            values.append(of_arm[0])
            means.append(of_arm[1])
        incidents = sum((one.incidents for one in found), Counter[str]())
        quality = pl.DataFrame(schema=QUALITY_SCHEMA)
        if self._has_summaries():
            quality = self.summary_quality.values(
                self.dataset, self.system.compaction.summarizer, REPORT_TOKENS, incidents=incidents
            )
        run = pl.concat([pl.DataFrame(schema=RUN_SCHEMA), *(one.run(arm) for one in found for arm in arms)])
        judged = len(judged_queries(self.dataset))
        sizes = {
            "message": [len(one.documents) for one in found],
            "session": [one.documents["session_id"].n_unique() for one in found],
        }
        every_value = pl.concat(values)
        return Outcome(
            run=run,
            documents=documents.drop("kind", "is_durable", "session_id").join(
                run.select("document_id").unique(), on="document_id", how="semi"
            ),
            values=every_value,
            means=pl.concat(means),
            confidence=self.retrieval.confidence,
            compression=pl.concat([one.compression for one in found]),
            summary_quality=quality,
            summary_means=self.summary_quality.means(
                quality, self.retrieval.resamples, self.retrieval.confidence, self.retrieval.seed
            ),
            decisions=pl.concat([one.decisions for one in found]),
            incidents=dict(sorted(incidents.items())),
            counts={
                "workspaces": len(found),
                "messages": sum(len(t.messages) for t in self.dataset.transcripts),
                "documents": sum(sizes["message"]),
                "queries": len(self.dataset.queries),
                "judged_queries": judged,
                "unjudged_queries": len(self.dataset.queries) - judged,
            },
            flags=(
                *self._flags(sizes),
                *_unanswered(run, len(self.dataset.queries)),
                *_of_documents(documents, self.system),
                *_of_index_tiers(run, {width for one in found for width in one.widths}),
                *_over_budget(every_value),
            ),
            latency=percentiles([sample for one in found for sample in one.samples]),
            seconds={},
        )

    def _values(
        self, found: Sequence[WorkspaceResult], arm: str, documents: pl.DataFrame
    ) -> tuple[pl.DataFrame, pl.DataFrame]:
        """The values of an arm, a row a query and measure, and their means."""
        kept = FrameCache(self.cache)
        keys = [one.keys.get(arm) for one in found]
        key = None
        if None not in keys:
            identity = Fingerprint({Retrieval.__module__})
            key = digest([keys, self.dataset.digest, identity.of(self.retrieval)], identity.modules)

        def values() -> Made:
            run = pl.concat([one.run(arm) for one in found])
            return self.retrieval.values(run, documents, self.dataset, [arm]), Counter()

        is_control = arm != SYSTEM_ARM
        of_arm, _ = kept.frame("values", key, values, at_hand=is_control)

        def means() -> Made:
            return self.retrieval.means(of_arm, self.dataset), Counter()

        if is_control:
            return of_arm, kept.frame("means", key, means, at_hand=True)[0]
        retained = pl.concat([pl.DataFrame(schema=RETENTION_SCHEMA), *(one.retained for one in found)])
        of_arm = pl.concat([of_arm, retained.select(pl.lit(arm).alias("arm"), pl.all())])
        return of_arm, self.retrieval.means(of_arm, self.dataset)

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


def rankings_of(system: System, arms: Mapping[str, Ranker | Oracle], dataset: Dataset) -> dict[str, Ranker]:
    """Arm -> what it ranks with; the system's own stands first."""
    controls = {arm: one.ranking(dataset) if isinstance(one, Oracle) else one for arm, one in arms.items()}
    return {SYSTEM_ARM: system.ranking, **controls}


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
