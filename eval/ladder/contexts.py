"""Why a message is shown whole, in a summary's or a document's words, or not at all, in the contexts of a question."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import polars as pl

from eval.dataset.dataset import Dataset
from eval.ladder.asking import Asked
from eval.measures.measure import MemoryReading
from eval.measures.retention import HeldContext, Retention, Standing
from lcm.memory.memory import Memory
from lcm.records.context import Context, LeftOutReason
from lcm.records.query import Recalled

_HOW = {"verbatim": "whole", "summarised": "in other words", "reachable": "by expanding", None: "not shown"}
_LEFT_OUT: dict[LeftOutReason, str] = {
    "tail": "outside the fresh tail",
    "shown": "not shown again: all that it stands for is shown",
    "clamped": "cut off: as it is sent, with ids and usage, the context would cost too much",
    "passed over": "passed over by recovery",
    "dreams": "not shown: questions about dreams are answered by dreams, and no others are",
}


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


def shown(
    asked: Asked, message_id: str, answers: pl.DataFrame, dataset: Dataset, measure: Retention
) -> Iterator[Shown]:
    """How a message stands in the contexts of one query, under each budget of a measure.

    Args:
        asked: the query, and the memory as it stood then.
        answers: rows of `RANKED_SCHEMA` of the query.
    """
    evidence = {query.query_id: [message_id] for query in asked.queries}
    reading = MemoryReading(asked.memory, asked.queries, answers, evidence, dataset)
    recalled: list[Recalled] = []
    if asked.memory.system.assembly.shows_documents:
        recalled = [one for found in asked.memory.recalled(answers).values() for one in found]
    for _, _, held in measure.contexts(reading):
        standing, context = held.standing(message_id), held.context
        why = _why(asked.memory, message_id, standing, held, recalled)
        yield Shown(context.budget_tokens, context.tokens, _HOW[standing.how], why, standing.path)


def with_budget(measure: Retention, budget: int | None) -> Retention:
    """The measure with one budget in the place of its own; None leaves them."""
    return measure if budget is None else replace(measure, budgets=(budget,))


def _why(memory: Memory, message_id: str, standing: Standing, held: HeldContext, recalled: Sequence[Recalled]) -> str:
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
    return _why_not(memory, message_id, standing, held.context, held.conversation_id, recalled)


def _why_not(
    memory: Memory,
    message_id: str,
    standing: Standing,
    context: Context,
    conversation_id: str,
    recalled: Sequence[Recalled],
) -> str:
    said = [message.message_id for message in memory.store.messages(conversation_id)]
    stand_for = [one.document_id for one in recalled if message_id in one.source_message_ids]
    found = next(
        (f"recalled as {name}, which is {_told(name, context, 'ranked behind')}" for name in stand_for), "not recalled"
    )
    if message_id not in said:
        found = found if memory.system.assembly.shows_documents else "its context shows nothing else"
        return f"not part of conversation {conversation_id}, and {found}"
    at = f"message {said.index(message_id) + 1} of {len(said)}"
    item_id = standing.path[-1] if standing.path else message_id
    told = context.left_out.get(item_id)
    if told is None:
        return f"{at}: taken out of the context"
    if told.reason == "tail":
        where = f"folded into {item_id}" if standing.path else "outside the fresh tail"
        return f"{at}: {where}, {'which was' if standing.path and not stand_for else 'and'} {found}"
    return (
        f"{at}: {f'folded into {item_id}, which is ' if standing.path else ''}{_told(item_id, context, 'older than')}"
    )


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
