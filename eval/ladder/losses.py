"""Where a system loses judged messages: every message of every judged query in one place, over a whole dataset."""

from collections.abc import Callable, Iterator, Mapping

import polars as pl

from eval.dataset.dataset import Dataset
from eval.experiment.workspace import WorkspaceEvaluator
from eval.ladder.asking import Asked, answers_in, asked_again
from eval.ladder.places import FIRST, FOUND, LATE, PLACES_SCHEMA, message_ranks, placed
from eval.ladder.unseen import NO_MISS, REASONS, Said, why_unseen
from eval.measures.means import ALL
from eval.replay.extent import instants
from lcm.protocols.retrieval import Batch

LOSSES_SCHEMA: dict[str, pl.DataType] = {
    "workspace_id": pl.String(),
    "query_id": pl.String(),
    "category": pl.String(),
    "message_id": pl.String(),
    "place": pl.String(),
    "step": pl.Int32(),
}
"""As `PLACES_SCHEMA`, of every judged message."""
Look = Callable[[Asked, pl.DataFrame], None]
"""Told of what was asked, and of the answers: rows of `TRACE_SCHEMA`."""
_MESSAGE = ["query_id", "message_id"]


def judged_messages(dataset: Dataset) -> pl.DataFrame:
    """workspace_id, query_id, category, message_id: every message that is judged relevant, each once a query."""
    asked = {query.query_id: query for query in dataset.queries}
    rows = [
        (asked[query_id].workspace_id, query_id, asked[query_id].category or "", message_id)
        for query_id, messages in dataset.evidence().items()
        for message_id in dict.fromkeys(messages)
    ]
    schema = {name: kind for name, kind in LOSSES_SCHEMA.items() if name not in ("place", "step")}
    return pl.DataFrame(rows, schema=schema, orient="row")


def losses(
    evaluator: WorkspaceEvaluator, progress: Callable[[int], None], look: Look | None = None, first: int = FIRST
) -> pl.DataFrame:
    """The place of every judged message of a dataset in the system's rankings: rows of `LOSSES_SCHEMA`.

    Args:
        evaluator: of the system over the dataset; what it has found before comes from its cache.
        progress: told how many queries were placed.
        look: told of every answer on the way; None = nobody looks.
        first: how many documents are read.
    """
    dataset = evaluator.dataset
    judged = judged_messages(dataset)
    parts = [pl.DataFrame(schema=PLACES_SCHEMA)]
    for workspace in judged["workspace_id"].unique(maintain_order=True):
        here = judged.filter(workspace_id=workspace)
        said = said_messages(dataset, workspace)
        for asked in asked_again(evaluator, workspace, set(here["query_id"])):
            for part, answers in placed_with_answers(asked, here, said, first):
                parts.append(part)
                progress(part["query_id"].n_unique())
                if look is not None:
                    look(asked, answers)
    rows = judged.join(pl.concat(parts), on=_MESSAGE, how="left", maintain_order="left")
    assert len(rows) == len(judged) and not rows["place"].null_count(), "every judged message has one place"
    return rows.select(list(LOSSES_SCHEMA))


def said_messages(dataset: Dataset, workspace: str) -> dict[str, Said]:
    """Message id -> what the dataset tells of it."""
    here = (transcript for transcript in dataset.transcripts if transcript.workspace_id == workspace)
    return {
        message.message_id: Said(one.conversation_id, at)
        for one in here
        for message, at in zip(one.messages, instants(one), strict=True)
    }


def placed_with_answers(
    asked: Asked, judged: pl.DataFrame, said: Mapping[str, Said], first: int = FIRST
) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """Batch after batch: rows of `PLACES_SCHEMA`, and the answers as rows of `TRACE_SCHEMA`.

    Args:
        judged: query_id, message_id and more: of these queries, maybe of others.
        said: message id -> what the dataset tells of it.
    """
    queries = {query.query_id: query for query in asked.queries}
    for batch in asked.batches():
        here = judged.join(batch.queries, on="query_id", how="semi", maintain_order="left").select(_MESSAGE)
        trace, plan = asked.ranking.trace(batch), asked.ranking.plan(batch)
        ranks = message_ranks(trace, covered(batch, here), plan)
        is_seen = pl.concat([ranks.select(_MESSAGE), covered(batch, here, only_visible=True).select(_MESSAGE)])
        untold = asked.untold
        places = placed(here.join(is_seen, on=_MESSAGE, how="semi", maintain_order="left"), ranks, plan, first)
        unseen = here.join(is_seen, on=_MESSAGE, how="anti", maintain_order="left")
        rows = [
            (query_id, message_id, place, None)
            for query_id, messages in unseen.group_by("query_id", maintain_order=True).agg("message_id").iter_rows()
            for message_id, place in why_unseen(asked.memory, queries[query_id], messages, said).items()
        ]
        found = pl.concat([places, pl.DataFrame(rows, PLACES_SCHEMA, orient="row")])
        reasons = pl.col("query_id").replace_strict(untold, default=None, return_dtype=pl.String)
        told = found.with_columns(
            place=pl.coalesce(reasons, "place"), step=pl.when(reasons.is_null()).then("step").cast(pl.Int32)
        )
        yield told, answers_in(trace, plan)


def covered(batch: Batch, judged: pl.DataFrame, *, only_visible: bool = False) -> pl.DataFrame:
    """query_id, document_id, message_id: which documents were made of the judged messages of each query.

    Args:
        only_visible: those that the source may find; else also the turns that a later step may fetch.
    """
    known = batch.documents.select("document_id", "source_message_ids")
    if batch.turns is not None and not only_visible:
        known = pl.concat([known, batch.turns.select("document_id", "source_message_ids")])
    documents = known.explode("source_message_ids").rename({"source_message_ids": "message_id"})
    return judged.join(documents, on="message_id", how="inner").select("query_id", "document_id", "message_id")


def places_in_order(rows: pl.DataFrame) -> list[str]:
    """The places that rows of `LOSSES_SCHEMA` have: found, late, lost at a stage (the last stage first), not found by
    the source, and not to be seen."""
    steps = dict(rows.filter(pl.col("step").is_not_null()).group_by("place").agg(pl.col("step").min()).iter_rows())
    stages = sorted(steps, key=lambda place: (-steps[place], place))
    return [place for place in (FOUND, LATE, *stages, *REASONS) if place in set(rows["place"])]


def missed(places: Mapping[str, int]) -> dict[str, int]:
    """Those of some places whose messages are missed: neither found, nor of a question without a value."""
    return {place: n for place, n in places.items() if place not in (FOUND, *NO_MISS)}


def counted(rows: pl.DataFrame) -> dict[str, dict[str, int]]:
    """Category -> place -> how many judged messages; under `ALL` those of all categories."""
    groups = {ALL: rows, **{str(name): part for (name,), part in rows.group_by("category", maintain_order=True)}}
    counts = {name: dict(part["place"].value_counts(sort=True).iter_rows()) for name, part in groups.items()}
    assert all(sum(counts[name].values()) == len(part) for name, part in groups.items()), "nothing is lost twice"
    return counts
