"""Why a message was found or not: its place, the ladder of its best document, what took its place, what would keep it,
and how the contexts of the question show it.

A ladder tells what every step of a ranking did with a document, from the branches that found it to the answer. What
would have kept a document are other settings of the ranking, each of them really ranked by.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import count
from typing import Any

import polars as pl

from eval.dataset.dataset import Dataset
from eval.ladder.losses import FIRST, FOUND, LATE, REASONS, Asked, Said, Traced, message_ranks, placed, why_unseen
from eval.measures.coverage import with_near_duplicates
from eval.measures.measure import MemoryReading
from eval.measures.retention import HeldContext, Retention, Standing
from lcm.errors import LcmError
from lcm.memory.memory import Memory
from lcm.protocols.retrieval import Ranker
from lcm.records.context import Context, LeftOutReason
from lcm.records.query import Query
from lcm.retrieval.ranking.pipeline import SOURCE, Ranking
from lcm.retrieval.ranking.routed import RoutedRanking

ADDED, ORDERED, ROSE, FELL, STAYED, DROPPED = "added", "ordered", "rose", "fell", "stayed", "dropped"
LADDER_SCHEMA: dict[str, pl.DataType] = {
    "query_id": pl.String(),
    "document_id": pl.String(),
    "step": pl.Int32(),
    "stage": pl.String(),
    "rank_before": pl.Int64(),
    "score_before": pl.Float64(),
    "rank": pl.Int64(),
    "score": pl.Float64(),
    "stood_for_by": pl.String(),
    "event": pl.String(),
}
"""A row for each step from the one that brought a document to the one that dropped it, where `rank` and `score` are
null. Until a step gives scores, `score` is null and ranks tell no more than the order in which rows came: that step has
ordered them. So it is with `rank_before` where `score_before` is null. `stood_for_by` is the better document that a
near duplicate is left out in favour of; `event` one of added, ordered, rose, fell, stayed, dropped."""
_DOCUMENT = ["query_id", "document_id"]
_MESSAGE = ["query_id", "message_id"]
_IDS = {"query_id": pl.String(), "document_id": pl.String()}
_TAKEN_SCHEMA = {"document_id": pl.String(), "rank": pl.Int64(), "rank_before": pl.Int64()}
_FACTORS = (2, 4, 16)
"""How many times a limit or a pool is made larger, until that is enough."""
_NOT_RANKED = -1
"""The rank of a document by a ranking that gives no order."""
_HOW = {"verbatim": "whole", "summarised": "in other words", "reachable": "by expanding", None: "not shown"}
_LEFT_OUT: dict[LeftOutReason, str] = {
    "tail": "outside the fresh tail",
    "shown": "not shown again: all that it stands for is shown",
    "clamped": "cut off: as it is sent, with ids and usage, the context would cost too much",
    "passed over": "passed over by recovery",
    "dreams": "not shown: questions about dreams are answered by dreams, and no others are",
}


@dataclass(frozen=True, slots=True)
class Trial:
    """One change of a ranking, and where a document stood by it."""

    change: str
    """In words: without near_duplicates; limit.n=80; pools 4 times as large."""
    rank: int


@dataclass(frozen=True, slots=True)
class Explanation:
    """What became of a message, or of a document, in one ranking."""

    query: Query
    expected: str
    """The id of the message or document."""
    place: str
    """As `LOSSES_SCHEMA` has it."""
    document_id: str | None
    """Its best document; None where none may be seen."""
    rank: int | None
    """Where that, or what stands for it, was answered."""
    ladder: pl.DataFrame
    """Rows of `LADDER_SCHEMA` with the columns `reason` and `like_id`, of that document."""
    found_by: pl.DataFrame
    """Rows of `FOUND_BY_SCHEMA` of that document."""
    taken_by: pl.DataFrame
    """document_id, rank, rank_before: those of the first answers that stood behind it before the stage that lost it."""
    trials: tuple[Trial, ...]
    """What would have kept it, or moved it up; best first."""
    is_tried: bool
    """Whether changes were tried: of what is found, or may not be seen, or by a ranking without an order, none are."""
    traced: Traced
    texts: Mapping[str, str]
    """Document id -> its words, of those that this tells of."""
    pool: int
    """How many documents the source found."""
    headline: str


@dataclass(frozen=True, slots=True)
class Shown:
    """How a message stands in the context of a question under one budget."""

    budget_tokens: int
    tokens: int
    """What the context costs."""
    how: str
    """whole, in other words, by expanding, not shown."""
    why: str
    path: tuple[str, ...]
    """The summaries that were made of it, one of the next."""


def best_documents(steps: pl.DataFrame, covers: pl.DataFrame, places: pl.DataFrame) -> pl.DataFrame:
    """The document of each message that tells what became of it: of its documents the one that came farthest, or to the
    stage that lost the message; of several the one that stood best there.

    Args:
        steps: query_id, document_id, step, rank: of a trace, or of ladders.
        covers: query_id, document_id, message_id: which documents were made of which messages.
        places: rows of `PLACES_SCHEMA`.
    Returns:
        query_id, message_id, document_id.
    """
    lost = places.select(*_MESSAGE, lost_at="step")
    came = steps.filter(pl.col("rank").is_not_null()).select(*_DOCUMENT, "step", "rank")
    rows = covers.join(lost, on=_MESSAGE, maintain_order="left").join(
        came, on=_DOCUMENT, how="left", maintain_order="left"
    )
    counts = (pl.col("lost_at").fill_null(0) == 0) | (pl.col("step") < pl.col("lost_at"))
    reach = (pl.when(counts).then(name) for name in ("step", "rank"))
    ordered = rows.with_columns(reach).sort(
        "step", "rank", descending=[True, False], nulls_last=True, maintain_order=True
    )
    return ordered.unique(_MESSAGE, keep="first", maintain_order=True).select(*_MESSAGE, "document_id")


def ladders(traced: Traced, wanted: pl.DataFrame) -> pl.DataFrame:
    """The ladders of some documents.

    Args:
        wanted: query_id, document_id.
    Returns:
        Rows of `LADDER_SCHEMA` with reason and like_id, of `REASONS_SCHEMA`: those of a document together, in the order
        of `wanted`; a document that no step brought has none.
    """
    trace, reasons = traced.trace, traced.asked.ranking.reasons(traced.batch)
    steps = traced.plan.join(wanted, on="query_id", how="inner")
    better = trace.filter(pl.col("stands_for").list.len() > 0).explode("stands_for")
    better = better.select("query_id", "step", document_id="stands_for", stood_for_by="document_id")
    order = wanted.with_row_index("_wanted")
    rows = (
        steps.join(trace.drop("stage", "stands_for"), on=[*_DOCUMENT, "step"], how="left")
        .join(better, on=[*_DOCUMENT, "step"], how="left")
        .join(order, on=_DOCUMENT)
        .sort("_wanted", "step")
        .with_columns(pl.col("rank", "score").shift(1).over("_wanted").name.suffix("_before"))
        .filter(pl.col("rank").is_not_null() | pl.col("rank_before").is_not_null())
    )
    is_scored, was_scored = pl.col("score").is_not_null(), pl.col("score_before").is_not_null()
    events = {
        ADDED: pl.col("rank_before").is_null(),
        DROPPED: pl.col("rank").is_null(),
        ORDERED: is_scored & ~was_scored,
        ROSE: is_scored & was_scored & (pl.col("rank") < pl.col("rank_before")),
        FELL: is_scored & was_scored & (pl.col("rank") > pl.col("rank_before")),
    }
    event = pl.coalesce(*(pl.when(is_so).then(pl.lit(name)) for name, is_so in events.items()), pl.lit(STAYED))
    told = rows.with_columns(event=event).select(list(LADDER_SCHEMA)).cast(pl.Schema(LADDER_SCHEMA))
    return told.join(reasons, on=[*_DOCUMENT, "step"], how="left", maintain_order="left")


def found_by(traced: Traced, wanted: pl.DataFrame) -> pl.DataFrame:
    """Rows of `FOUND_BY_SCHEMA`: which branches of the source found some documents, at which of their ranks."""
    found = traced.asked.ranking.found_by(traced.batch)
    return found.join(wanted, on=_DOCUMENT, how="semi", maintain_order="left")


def explained(
    asked: Asked, expected: str, said: Mapping[str, Said], first: int = FIRST, *, tries: bool = True
) -> Explanation:
    """Explain what became of a message or a document.

    Args:
        asked: one query, and the memory as it stood then.
        expected: the id of a message of the workspace, or of a document.
    """
    (query,), (traced,) = asked.queries, asked.traced()
    trace, plan, answers = traced.trace, traced.plan, traced.answers
    judged = pl.DataFrame({"query_id": [query.query_id], "message_id": [expected]})
    covers = _covers(traced, judged, expected)
    ranks = message_ranks(trace, covers, plan)
    pool = trace.filter(pl.col("step") == 0).height
    step: int | None = None
    if (untold := asked.untold().get(query.query_id)) is not None:
        place = untold
    elif ranks.is_empty() and _covers(traced, judged, expected, only_visible=True).is_empty():
        place = _unseen(asked, query, expected, said)
    else:
        ((place, step),) = placed(judged, ranks, plan, first).select("place", "step").iter_rows()
    at = judged.with_columns(step=pl.lit(step, pl.Int32))
    document_id = next(iter(best_documents(trace, covers, at)["document_id"]), None)
    wanted = pl.DataFrame({"query_id": [query.query_id], "document_id": [document_id]}, _IDS).drop_nulls()
    rows = ladders(traced, wanted)
    last = ranks.join(plan.select(pl.col("step").max()), on="step", how="semi")["rank"]
    rank = None if last.is_empty() else last[0]
    taken = _taken(trace, answers, document_id, step, first)
    trials = None
    if tries and place != FOUND and place not in REASONS:
        documents = covers["document_id"].to_list()
        trials = tried(asked.memory, query, documents, _but_first_scores(trace, plan), first)
    headline = _headline(place, step, rank, rows, trace, pool)
    messages = traced.batch.documents.filter(document_id=document_id)["source_message_ids"].explode().len()
    if place == FOUND and messages > 1:  # which have ranks of their own to other measures
        headline += f", in a document of {messages} messages"
    return Explanation(
        query=query,
        expected=expected,
        place=place,
        document_id=document_id,
        rank=rank,
        ladder=rows,
        found_by=found_by(traced, wanted),
        taken_by=taken,
        trials=tuple(trials or ()),
        is_tried=trials is not None,
        traced=traced,
        texts=traced.texts([document_id, *taken["document_id"], *rows["like_id"]]),
        pool=pool,
        headline=headline,
    )


def _covers(traced: Traced, judged: pl.DataFrame, expected: str, *, only_visible: bool = False) -> pl.DataFrame:
    """query_id, document_id, message_id: the documents of the message, or the document itself."""
    covers = traced.covered(judged, only_visible=only_visible)
    if covers.is_empty() and expected in traced.batch.documents["document_id"]:
        return judged.select("query_id", pl.col("message_id").alias("document_id"), "message_id")
    return covers


def _unseen(asked: Asked, query: Query, expected: str, said: Mapping[str, Said]) -> str:
    documents = asked.memory.documents.filter(document_id=expected)
    messages = [expected] if documents.is_empty() else documents["source_message_ids"][0].to_list()
    return next(iter(why_unseen(asked.memory, query, messages, said).values()))


def _but_first_scores(trace: pl.DataFrame, plan: pl.DataFrame) -> list[str]:
    """The stages of a plan but the one that first gives scores, or would have given them had it left a row."""
    without = set(trace.filter(pl.col("score").is_null())["step"])
    first = next(step for step in count() if step not in without)
    return plan.filter(pl.col("step") != first)["stage"].to_list()


def _taken(
    trace: pl.DataFrame, answers: pl.DataFrame, document_id: str | None, step: int | None, first: int
) -> pl.DataFrame:
    """Those of the first answers that stood behind a document before a step, or were not there; none where nothing had
    ordered the rows."""
    none = pl.DataFrame(schema=_TAKEN_SCHEMA)
    if not step:
        return none
    is_ordered = pl.col("score").is_not_null()
    before = trace.filter(pl.col("step") == step - 1, is_ordered).select("document_id", rank_before="rank")
    own = before.filter(document_id=document_id)["rank_before"]
    if own.is_empty() or own[0] > first:
        return none
    behind = answers.filter(pl.col("rank") <= first).join(before, on="document_id", how="left", maintain_order="left")
    return behind.filter(pl.col("rank_before").is_null() | (pl.col("rank_before") > own[0])).select(list(none.schema))


def _headline(
    place: str, step: int | None, rank: int | None, rows: pl.DataFrame, trace: pl.DataFrame, pool: int
) -> str:
    """What became of it, in a line: the cause first."""
    if place in REASONS:
        return f"{place}: it {REASONS[place]}"
    if place == SOURCE:
        return f"not in the pool: the source found {pool:,} documents, and none that stands for it"
    by = rows["stood_for_by"].drop_nulls().to_list()
    if place == FOUND:
        return f"found at rank {rank}" + (f", where {by[-1]} stands for it as a near duplicate" if by else "")
    if place == LATE:
        best = rows.filter(pl.col("score").is_not_null()).sort("rank").head(1)
        before = [f"; at best rank {at}, behind {stage}" for at, stage in best.select("rank", "stage").iter_rows()]
        return f"late: rank {rank} in the answer{before[0] if before and best['rank'][0] != rank else ''}"
    row = next(rows.filter(pl.col("step") == step).iter_rows(named=True), None)
    if row is None:
        return f"dropped at {place}, with the document that stood for it as a near duplicate"
    done, moved = "put back", [f"rank {row['rank_before']} → {row['rank']}"]
    if row["rank"] is None:
        done, moved = "dropped", [f"rank {row['rank_before']} before"] if row["score_before"] is not None else []
    causes = [cause for cause in (row["reason"], _like(row, trace)) if cause]
    return "; ".join((f"{done} at {place}", *moved, *causes))


def _like(row: Mapping[str, Any], trace: pl.DataFrame) -> str:
    """The better document that a row of a ladder is like, and its rank behind that step."""
    if row["like_id"] is None:
        return ""
    ranks = trace.filter(pl.col("step") == row["step"], pl.col("document_id") == row["like_id"])["rank"]
    return f"like {row['like_id']}" + ("" if ranks.is_empty() else f" at rank {ranks[0]}")


def tried(
    memory: Memory, query: Query, documents: list[str], plan: list[str], first: int = FIRST
) -> list[Trial] | None:
    """Rank a query anew with each stage left out, each limit and all pools made larger.

    Args:
        memory: as it stood when the query was asked.
        plan: the stages that the rows of the query pass, but the one that first gives scores: without it nothing is in
            order.
        first: how many documents are read: where a change lets a document be among them, it is not made greater.
    Returns:
        What moves the document up or lets it be ranked, best first; of changes that cannot be ranked by, none. None
        where the ranking itself gives no order: then nothing is tried.
    """
    ranking = memory.system.ranking
    now = _rank(memory, query, ranking, documents)
    if not isinstance(ranking, Ranking | RoutedRanking) or now is _NOT_RANKED:
        return None
    found = []
    for steps in _changes(ranking, plan):
        before = now
        for change, other in steps:
            rank = _rank(memory, query, other, documents)
            if rank is None or rank is _NOT_RANKED or rank == before:
                continue  # it may be ranked where the change is greater
            if now is None or rank < now:
                found.append(Trial(change, rank))
            before = rank
            if rank <= first:
                break
    return sorted(found, key=lambda trial: trial.rank)


def _changes(ranking: Ranking | RoutedRanking, plan: list[str]) -> Iterator[Iterator[tuple[str, Ranker]]]:
    """Series of changes, each greater than the one before it."""
    for name in plan:
        stage = ranking.stages.get(name)
        if stage is None:
            continue
        yield iter([(f"without {name}", _with(ranking, name, None))])
        if isinstance(n := getattr(stage, "n", None), int):
            yield (
                (f"{name}.n={n * by}", _with(ranking, name, replace(stage, n=n * by)))  # type: ignore[type-var]
                for by in _FACTORS
            )
    yield ((f"pools {by} times as large", _with_pools(ranking, by)) for by in _FACTORS)


def _with(ranking: Ranking | RoutedRanking, name: str, stage: Any) -> Ranker:
    stages: dict[str, Any] = {**ranking.stages, name: stage}
    return replace(ranking, stages=stages)


def _with_pools(ranking: Ranking | RoutedRanking, by: int) -> Ranker:
    if isinstance(ranking, Ranking):
        return replace(ranking, source=_larger(ranking.source, by))
    paths = {name: getattr(ranking, name) for name in ("hybrid", "vector", "tag")}
    return replace(ranking, **{name: replace(path, source=_larger(path.source, by)) for name, path in paths.items()})


def _larger(part: Any, by: int) -> Any:
    """A source with every pool in it, however deep, so many times as large."""
    if isinstance(part, Mapping):
        return {name: _larger(one, by) for name, one in part.items()}
    if not is_dataclass(part) or isinstance(part, type):
        return part
    changes: dict[str, Any] = {}
    for one in fields(part):
        value = getattr(part, one.name)
        if one.name.endswith("pool_size") and isinstance(value, int):
            changes[one.name] = value * by
        elif one.init and (isinstance(value, Mapping) or is_dataclass(value)):
            changes[one.name] = _larger(value, by)
    return replace(part, **changes) if changes else part


def _rank(memory: Memory, query: Query, ranking: Ranker, documents: list[str]) -> int | None:
    """The best rank of some documents; None where none is ranked, `_NOT_RANKED` where nothing is in order."""
    try:
        ranked = memory.rank([query], ranking)
    except (LcmError, ValueError):  # what a later stage reads is not there
        return _NOT_RANKED
    scores = ranked["score"]
    if scores.null_count() or (len(scores) > 1 and scores.n_unique() == 1):
        return _NOT_RANKED  # rows that score alike, or not at all, stand as the source gave them
    rank = with_near_duplicates(ranked).filter(pl.col("document_id").is_in(documents))["rank"].min()
    assert rank is None or isinstance(rank, int)
    return rank


def shown(
    asked: Asked, message_id: str, answers: pl.DataFrame, dataset: Dataset, measure: Retention
) -> Iterator[Shown]:
    """How a message stands in the contexts of one query, under each budget of a measure.

    Args:
        answers: rows of `RANKED_SCHEMA` of the query.
    """
    memory, evidence = asked.memory, {query.query_id: [message_id] for query in asked.queries}
    found = memory.recalled(answers).values() if memory.system.assembly.shows_documents else ()
    stand_for = [one.document_id for each in found for one in each if message_id in one.source_message_ids]
    for _, _, held in measure.contexts(MemoryReading(memory, asked.queries, answers, evidence, dataset)):
        standing, context = held.standing(message_id), held.context
        why = _why(memory, message_id, standing, held, stand_for)
        yield Shown(context.budget_tokens, context.tokens, _HOW[standing.how], why, standing.path)


def with_budget(measure: Retention, budget: int | None) -> Retention:
    """The measure with one budget in the place of its own; None leaves them."""
    return measure if budget is None else replace(measure, budgets=(budget,))


def _why(memory: Memory, message_id: str, standing: Standing, held: HeldContext, stand_for: Sequence[str]) -> str:
    """Why a message stands so in a context, or why it does not.

    Args:
        stand_for: the recalled documents that were made of it.
    """
    items = {item.item_id: item for item in held.context.items}
    if message_id in items:
        where = "in the fresh tail" if items[message_id].in_tail else "as it was said"
        return where if items[message_id].text else f"{where}, where nothing is left of it: a call without its result"
    if standing.documents:
        return f"recalled: {', '.join(standing.documents)}"
    if standing.how is not None:
        depth = memory.store.summaries_by_id([standing.path[-1]])[standing.path[-1]].depth
        below = "" if len(standing.path) == 1 else f", {len(standing.path)} expansions down"
        return f"in summary {standing.path[-1]} of depth {depth}{below}"
    context, said = held.context, [message.message_id for message in memory.store.messages(held.conversation_id)]
    found = "not recalled"
    if stand_for:
        found = f"recalled as {stand_for[0]}, which is {_told(stand_for[0], context, 'ranked behind')}"
    if message_id not in said:
        found = found if memory.system.assembly.shows_documents else "its context shows nothing else"
        return f"not part of conversation {held.conversation_id}, and {found}"
    at = f"message {said.index(message_id) + 1} of {len(said)}"
    item_id = standing.path[-1] if standing.path else message_id
    told = context.left_out.get(item_id)
    if told is None:
        return f"{at}: taken out of the context"
    if told.reason == "tail":
        where = f"folded into {item_id}" if standing.path else "outside the fresh tail"
        return f"{at}: {where}, {'which was' if standing.path and not stand_for else 'and'} {found}"
    folded = f"folded into {item_id}, which is " if standing.path else ""
    return f"{at}: {folded}{_told(item_id, context, 'older than')}"


def _told(item_id: str, context: Context, behind: str) -> str:
    """Why a context leaves an item or a document out; `behind` says how it stands behind another."""
    told = context.left_out[item_id]
    if told.reason == "behind":
        return f"{behind} {told.behind}, which is {_told(told.behind, context, behind)}"
    if told.reason == "budget":
        limit = context.notes.get("memory_tokens", context.budget_tokens)
        left = max(0, told.room_tokens)
        return f"cut by the budget: it takes {told.tokens:,g} tokens, and {left:,g} of {limit:,g} are left"
    if told.reason == "share":
        return f"cut: it takes {told.tokens:,g} tokens, and {told.room_tokens:,g} are left for its kind"
    if told.reason == "degraded":
        return f"not shown: {'; '.join(context.notes['degraded'])}"
    return _LEFT_OUT[told.reason]
