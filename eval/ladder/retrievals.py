"""Retrievals: what each step of a question's ranking put first, with the words, for viewers of traces."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import polars as pl

from eval.experiment.workspace import WorkspaceEvaluator
from eval.ladder.asking import asked_again, texts_of
from eval.ladder.losses import covered, judged_messages
from eval.ladder.places import FIRST, FOUND
from eval.ladder.unseen import NO_MISS
from lcm.protocols.retrieval import Batch

_CHARACTERS = 600
"""Of a document's words that are told."""


class RetrievedDocument(NamedTuple):
    """A document among the first of a step."""

    document_id: str
    text: str
    rank: int
    score: float | None
    messages: tuple[str, ...]
    """The judged messages that it stands for, as a near duplicate of their document too; empty: none."""


class RetrievalStep(NamedTuple):
    """What a step put first."""

    stage: str
    documents: tuple[RetrievedDocument, ...]


class Retrieval(NamedTuple):
    """A question, and what each step of its ranking put first; the last step's is the answer."""

    workspace_id: str
    query_id: str
    text: str
    category: str
    places: dict[str, str]
    """Judged message -> its place, as `LOSSES_SCHEMA` has it."""
    steps: tuple[RetrievalStep, ...]


def most_missed(losses: pl.DataFrame, n: int) -> list[str]:
    """Ids of the questions that miss most of their judged messages, by number; none that misses nothing.

    Args:
        losses: rows of `LOSSES_SCHEMA`.
    """
    missed = losses.filter(~pl.col("place").is_in([FOUND, *NO_MISS])).group_by("query_id", maintain_order=True).len()
    ids: list[str] = missed.sort("len", descending=True, maintain_order=True).head(n)["query_id"].to_list()
    return ids


def retrievals(evaluator: WorkspaceEvaluator, losses: pl.DataFrame, query_ids: Sequence[str]) -> Iterator[Retrieval]:
    """The retrievals of some questions of a dataset, workspace by workspace.

    Args:
        losses: rows of `LOSSES_SCHEMA`, of these questions at least.
    """
    wanted = losses.filter(pl.col("query_id").is_in(list(query_ids)))
    judged = judged_messages(evaluator.dataset).join(wanted, on="query_id", how="semi", maintain_order="left")
    for workspace in wanted["workspace_id"].unique(maintain_order=True):
        for asked in asked_again(evaluator, workspace, set(query_ids)):
            queries = {query.query_id: query for query in asked.queries}
            for batch in asked.batches():
                trace = asked.ranking.trace(batch).filter(pl.col("rank") <= FIRST)
                plan, covers = asked.ranking.plan(batch), covered(batch, judged.select("query_id", "message_id"))
                for query_id in batch.queries["query_id"]:
                    own, passed, gold = (one.filter(query_id=query_id) for one in (trace, plan, covers))
                    places = dict(wanted.filter(query_id=query_id).select("message_id", "place").iter_rows())
                    query, steps = queries[query_id], _steps(own, passed, gold, batch)
                    yield Retrieval(workspace, query_id, query.text, query.category, places, steps)


def _steps(trace: pl.DataFrame, plan: pl.DataFrame, covers: pl.DataFrame, batch: Batch) -> tuple[RetrievalStep, ...]:
    messages = dict(covers.group_by("document_id", maintain_order=True).agg("message_id").iter_rows())
    texts = texts_of(batch, trace["document_id"].unique())
    documents: dict[int, list[RetrievedDocument]] = {}
    rows = trace.select("step", "document_id", "rank", "score", "stands_for").iter_rows()
    for step, document_id, rank, score, stands_for in rows:
        gold = tuple(dict.fromkeys(one for name in (document_id, *stands_for) for one in messages.get(name, ())))
        text = texts[document_id][:_CHARACTERS]
        documents.setdefault(step, []).append(RetrievedDocument(document_id, text, rank, score, gold))
    steps = plan.select("step", "stage").iter_rows()
    return tuple(RetrievalStep(stage, tuple(documents.get(step, ()))) for step, stage in steps)
