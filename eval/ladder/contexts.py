"""Why a message is shown whole, in a summary's or a document's words, or not at all, in the contexts of a question."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import polars as pl

from eval.dataset.dataset import Dataset
from eval.ladder.asking import Asked
from eval.measures.measure import MemoryReading
from eval.measures.retention import Lineage, Retention, Standing
from lcm.memory.memory import Memory
from lcm.records.context import Context

_HOW = {"verbatim": "whole", "summarised": "in other words", "reachable": "by expanding", None: "not shown"}


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
    for _, context, lineage in measure.contexts(reading):
        (standing,) = lineage.standings(context, [message_id])
        why = _why(asked.memory, message_id, standing, context, lineage)
        yield Shown(context.budget_tokens, context.tokens, _HOW[standing.how], why, standing.path)


def with_budget(measure: Retention, budget: int | None) -> Retention:
    """The measure with one budget in the place of its own; None leaves them."""
    return measure if budget is None else replace(measure, budgets=(budget,))


def _why(memory: Memory, message_id: str, standing: Standing, context: Context, lineage: Lineage) -> str:
    items = {item.item_id: item for item in context.items}
    if message_id in items:
        item = items[message_id]
        return "in the fresh tail" if item.in_tail else "as it was said"
    if standing.documents:
        return f"recalled: {', '.join(standing.documents)}"
    if standing.how is not None:
        depth = memory.store.summaries_by_id([standing.path[-1]])[standing.path[-1]].depth
        below = "" if len(standing.path) == 1 else f", {len(standing.path)} expansions down"
        return f"in summary {standing.path[-1]} of depth {depth}{below}"
    return _why_not(memory, message_id, standing, context, lineage.conversation_id)


def _why_not(memory: Memory, message_id: str, standing: Standing, context: Context, conversation_id: str) -> str:
    said = [message.message_id for message in memory.store.messages(conversation_id)]
    if message_id not in said:
        return f"not part of conversation {conversation_id}, and not recalled into its context"
    number = said.index(message_id) + 1
    at = f"message {number} of {len(said)}"
    if standing.path:
        return f"{at}: folded into {standing.path[-1]}, which the budget cuts"
    shown_ids = {item.item_id for item in context.items}
    first = next((i for i, one in enumerate(said, start=1) if one in shown_ids), None)
    if first is not None and number < first and context.evicted:
        return f"{at}: cut by the budget, which reaches back to message {first}"
    return f"{at}: {'cut by the budget' if context.evicted else 'taken out of the context'}"
