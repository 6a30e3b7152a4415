"""What a run asked, asked again: each checkpoint of a workspace with its queries, and every step of their rankings."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace

import polars as pl

from eval.cache.frame_cache import FrameCache
from eval.cache.pools import with_cached_pools
from eval.experiment.external_outcome import unanswered, unjudged
from eval.experiment.workspace import WorkspaceEvaluator
from eval.external.reading import RecordedAnswers
from eval.ladder.unseen import UNANSWERED, UNJUDGED
from lcm.memory.memory import Memory
from lcm.protocols.retrieval import Batch, BringsDocuments, Ranker
from lcm.records.query import Query

_QUERIES_AT_ONCE = 32
"""Whose rankings are traced together: of each the rows of all steps are held."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Queries, the memory as it stood when they were asked, and what answered them."""

    workspace_id: str
    memory: Memory
    queries: list[Query]
    ranking: Ranker

    @property
    def untold(self) -> dict[str, str]:
        """Query -> the place of all its messages, of queries that an external memory left without a value."""
        if not isinstance(self.ranking, RecordedAnswers):
            return {}
        asked = self.ranking.asked
        return dict.fromkeys(unanswered(asked), UNANSWERED) | dict.fromkeys(unjudged(asked), UNJUDGED)

    def batches(self) -> Iterator[Batch]:
        """The queries in batches that are small enough for every step to be held; what a ranking brings itself stands
        among the documents."""
        brought = [self.ranking.brought] if isinstance(self.ranking, BringsDocuments) else []
        for batch in self.memory.batches(self.queries, self.ranking):
            batch = replace(batch, documents=pl.concat([batch.documents, *brought]))
            for first in range(0, len(batch.queries), _QUERIES_AT_ONCE):
                rows = slice(first, first + _QUERIES_AT_ONCE)
                yield replace(batch, queries=batch.queries[rows], vectors=batch.vectors[rows])


def asked_again(
    evaluator: WorkspaceEvaluator, workspace: str, query_ids: Collection[str] | None = None
) -> Iterator[Asked]:
    """Replay a workspace, from the stage cache where it holds it, and yield what is asked of it.

    The memory is as it was until the next is taken. Where answers change it, every query of the workspace comes, alone.

    Args:
        query_ids: those wanted; None = all.
    """
    evaluator = evaluator.bound(workspace)
    recalls = bool(evaluator.system.reinforcement.recalled)
    for checkpoint, key in evaluator.checkpoints(workspace):
        wanted = [query for query in checkpoint.queries if query_ids is None or query.query_id in query_ids]
        if not wanted and not (recalls and checkpoint.queries):
            continue
        memory, ranking = checkpoint.open(), evaluator.system.ranking
        if recalls:
            for query in checkpoint.queries:
                if query in wanted:
                    yield Asked(workspace, memory, [query], ranking)
                memory.recall([query])
        else:
            if key is not None:
                ranking = with_cached_pools(ranking, FrameCache(evaluator.cache), key)
            yield Asked(workspace, memory, wanted, ranking)


def answers_in(trace: pl.DataFrame, plan: pl.DataFrame) -> pl.DataFrame:
    """The rows of a trace behind the last step of each query: what was answered."""
    last = plan.group_by("query_id", maintain_order=True).agg(pl.col("step").max())
    return trace.join(last, on=["query_id", "step"], how="semi", maintain_order="left")


def texts_of(batch: Batch, document_ids: Iterable[str | None]) -> dict[str, str]:
    """Document id -> its words, of those that queries of a batch may be answered with; null names none."""
    known = batch.documents.select("document_id", "text")
    if batch.turns is not None:
        known = pl.concat([known, batch.turns.select("document_id", "text")])
    named = [name for name in document_ids if name is not None]
    return dict(known.filter(pl.col("document_id").is_in(named)).iter_rows())
