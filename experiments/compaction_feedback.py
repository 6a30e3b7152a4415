"""Whether a summary's confidence moves its rank: Spearman's correlation with and without the quality multiplier.

    LCM_DATASETS_DIR=... python experiments/compaction_feedback.py [KEY=VALUE ...]

LoCoMo's development conversations are compacted with `compaction=clustering`, their summaries made searchable. For each
question all summaries of its conversation are ranked, by `fusion=hybrid_score` and `fusion=two_pass`, without cuts,
with `summary_delta` 0 and 0.5, and without decay: most talk is months old, and its age would leave nothing else to
order by. Positive: what is more confident ranks higher. Intervals: 95 %, by a bootstrap over
conversations and, within each, over questions. Settings go to every run.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import polars as pl
from rich.console import Console
from rich.table import Table
from scipy.stats import spearmanr

from eval.dataset.dataset import Dataset
from lcm.compaction.clustering import Clustering
from lcm.compaction.summarizer.extractive import Centroid
from lcm.files import cache_dir
from lcm.memory.memory import Memory
from lcm.memory.system import System
from lcm.records.query import Query
from lcm.retrieval.embedder.cache import CachedEmbedder
from pipelines.config import building, composition

SEED = 7
RESAMPLES = 2000
EVERYTHING = 100_000
COMMON = (
    "system=hybrid",
    "dataset=locomo", "compaction=clustering", "summarizer=centroid", "summary_documents=searchable", "source=dense",
    "ranking=libravdb", "decay=none", "compaction.min_turns=0",
    f"source.pool_size={EVERYTHING}", f"ranking.stages.limit.n={EVERYTHING}",
)  # fmt: skip
FUSIONS = {
    "hybrid_score": ("fusion=hybrid_score",),
    "two_pass": (
        "fusion=two_pass", f"fusion.k1={EVERYTHING}", f"fusion.k2={EVERYTHING}", "fusion.theta1=0",
    ),
}  # fmt: skip
RULES = {"backend": "corrected", "embedding": "1.4.4"}
"""By whose confidence a summary is judged."""
DELTAS = (0.0, 0.5)


def cached(system: System) -> System:
    """The system with the embedding cache of the command line, in all three places that embed."""
    embedder = CachedEmbedder(system.embedder, cache_dir() / "embeddings")
    compaction = system.compaction
    if isinstance(compaction, Clustering) and isinstance(compaction.summarizer, Centroid):
        summarizer = replace(compaction.summarizer, embedder=embedder)
        compaction = replace(compaction, summarizer=summarizer, embedder=embedder)
    return replace(system, embedder=embedder, compaction=compaction)


def correlations(memory: Memory, queries: Sequence[Query], system: System) -> list[float]:
    """For each question the correlation of confidence and rank over the summaries that it finds, at least three."""
    known = memory.documents.filter(pl.col("kind") == "summary").select("document_id", "confidence")
    ranked = memory.rank(queries, system.ranking).join(known, on="document_id", how="inner", maintain_order="left")
    found = []
    for _, rows in ranked.group_by("query_id", maintain_order=True):
        if len(rows) > 2 and rows["confidence"].n_unique() > 1:
            found.append(float(spearmanr(rows["confidence"], -rows["rank"]).statistic))
    return found


def interval(groups: Sequence[Sequence[float]]) -> tuple[float, float, float]:
    """The mean over questions, and its interval."""
    rng = np.random.default_rng(SEED)
    rows = [np.array(group) for group in groups if len(group)]
    means = []
    for _ in range(RESAMPLES):
        drawn = [rows[i] for i in rng.integers(len(rows), size=len(rows))]
        means.append(float(np.mean(np.concatenate([rng.choice(group, len(group)) for group in drawn]))))
    low, high = np.quantile(means, [0.025, 0.975])
    return float(np.mean(np.concatenate(rows))), float(low), float(high)


def compacted(system: System, dataset: Dataset) -> Iterator[tuple[Memory, list[Query]]]:
    """Each workspace, compacted, with its questions."""
    for workspace in dict.fromkeys(transcript.workspace_id for transcript in dataset.transcripts):
        with Memory.open(system) as memory:
            for transcript in dataset.transcripts:
                if transcript.workspace_id == workspace and transcript.messages:
                    memory.ingest(transcript)
            memory.compact()
            yield memory, [query for query in dataset.queries if query.workspace_id == workspace]


def described(memory: Memory) -> list[dict[str, float]]:
    """Of each summary: what it stands for, what it costs, and both confidences."""
    details = {
        said["summary_id"]: said
        for event, detail in memory.store.compactions().select("event", "detail").rows()
        if event == "quality" and (said := json.loads(detail))
    }
    return [
        {
            "turns": len(one.source_ids),
            "source_tokens": one.source_message_token_count,
            "tokens": one.token_count,
            "backend": details[one.summary_id]["backend_confidence"],
            "embedding": details[one.summary_id]["embedding_confidence"],
        }
        for one in memory.store.summaries()
    ]


def main(overrides: Sequence[str]) -> None:
    console = Console(width=120)
    table = Table("confidence", "fusion", "delta", "mean correlation", "95 % interval", "questions")
    for confidence, rules in RULES.items():
        common = [*COMMON, f"compaction.rules={rules}", *overrides]
        arms = {
            (fusion, delta): cached(
                building.build(composition.composed([*common, *chosen, f"fusion.summary_delta={delta}"]), "memory")
            )
            for fusion, chosen in FUSIONS.items()
            for delta in DELTAS
        }
        first = next(iter(arms.values()))
        dataset: Dataset = building.build(composition.composed(common), "dataset").load()
        found: dict[tuple[str, float], list[list[float]]] = {arm: [] for arm in arms}
        summaries: list[dict[str, float]] = []
        for memory, queries in compacted(first, dataset):
            summaries += described(memory)
            for arm, system in arms.items():
                found[arm].append(correlations(memory, queries, system))
        for (fusion, delta), groups in found.items():
            mean, low, high = interval(groups)
            table.add_row(
                confidence, fusion, f"{delta}", f"{mean:+.3f}", f"{low:+.3f} .. {high:+.3f}", f"{sum(map(len, groups))}"
            )
        for fusion in FUSIONS:
            pairs = zip(*(found[fusion, delta] for delta in DELTAS), strict=True)
            changes = [[after - before for before, after in zip(*pair, strict=True)] for pair in pairs]
            mean, low, high = interval(changes)
            table.add_row(confidence, fusion, "change", f"{mean:+.3f}", f"{low:+.3f} .. {high:+.3f}", "")
        told = {name: np.array([one[name] for one in summaries]) for name in summaries[0]}
        console.print(
            f"confidence={confidence}: {len(summaries)} summaries of {told['turns'].sum()} turns, "
            f"{told['source_tokens'].sum()} -> {told['tokens'].sum()} tokens, mean confidence "
            f"{told['backend'].mean():.3f} backend, {told['embedding'].mean():.3f} embedding"
        )
    console.print(table)


if __name__ == "__main__":
    main(sys.argv[1:])
