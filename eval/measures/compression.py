"""What compaction did to conversations: how much smaller their contexts are, and whether anything was lost.

Tokens are those of the messages' and summaries' words and of the messages' images, by the estimator that all reports
share.

- `raw_tokens`: of all messages of the conversation. `context_tokens`: of what stands in its context.
- `ratio` = raw_tokens / context_tokens: 1 where nothing was compacted. `tokens_saved` is their difference.
- `summaries_by_depth`: how many there are of each depth, leaves first; one number each in the totals, `depth_0` and on.
- `depth`: of the deepest summary, leaves 0; null without one. `fanout`: mean number of sources of a summary.
- `recoverability`: the share of messages that expanding the context reaches; messages that a rule took out of the
  context (a new session, a heartbeat) are counted apart, as `retired`: search finds those.
- `normal`, `aggressive`, `fallback`, `capped`: how many summaries came to be at each level of escalation.
- `confidence`: mean over summaries, each its maker's own; makers' confidences cannot be compared with one another.
"""

from collections import Counter
from dataclasses import dataclass

import polars as pl

from eval.measures.means import Means
from eval.measures.measure import REPORT_TOKENS, Measure, MemoryReading
from lcm.memory.system import System
from lcm.protocols.models import TokenEstimator
from lcm.records.summary import LEVELS, Summary
from lcm.store.store import Store
from lcm.store.summaries import SUMMARY_SCHEMA, messages_beneath

CONVERSATION_SCHEMA: dict[str, pl.DataType] = {
    "conversation_id": pl.String(),
    "messages": pl.Int64(),
    "context_items": pl.Int64(),
    "raw_tokens": pl.Int64(),
    "context_tokens": pl.Int64(),
    "ratio": pl.Float64(),
    "tokens_saved": pl.Int64(),
    "summaries": pl.Int64(),
    "summaries_by_depth": pl.List(pl.Int64()),
    "depth": pl.Int64(),
    "fanout": pl.Float64(),
    **{level: pl.Int64() for level in LEVELS},
    "confidence": pl.Float64(),
    "retired": pl.Int64(),
    "recoverability": pl.Float64(),
}


@dataclass(frozen=True, slots=True)
class Compression(Measure):
    """Measures how compaction changed each conversation's context: a row a conversation, one number each for all."""

    subject = "memory"

    def depends_on(self, system: System) -> list[object]:
        return []

    def rows(self, reading: MemoryReading) -> pl.DataFrame:
        return compressed(reading.memory.store, REPORT_TOKENS)

    def section(self, rows: pl.DataFrame, means: Means) -> dict[str, float]:
        return totals(rows)


def compressed(store: Store, tokens: TokenEstimator) -> pl.DataFrame:
    """Measure every conversation of a store: rows of `CONVERSATION_SCHEMA`."""
    summaries = store.summary_frame().partition_by("conversation_id", as_dict=True)
    none = pl.DataFrame(schema=SUMMARY_SCHEMA)
    rows = [
        _conversation(store, key, summaries.get((key,), none), tokens)
        for key in store.conversations()["conversation_id"]
    ]
    return pl.DataFrame(rows, schema=CONVERSATION_SCHEMA, orient="row")


def totals(conversations: pl.DataFrame) -> dict[str, float]:
    """One number each for all conversations: sums, the ratio of sums, and means over summaries or messages."""
    if conversations.is_empty():
        return {}
    total = conversations.drop("summaries_by_depth").sum().row(0, named=True)
    made = total["summaries"]
    found: dict[str, float] = {
        "ratio": total["raw_tokens"] / max(1, total["context_tokens"]),
        "tokens_saved": total["tokens_saved"],
        "summaries": made,
        "recoverability": 1 - sum(_lost(conversations)) / max(1, total["messages"] - total["retired"]),
    }
    if made:
        weighted = conversations.filter(pl.col("summaries") > 0)
        found["depth"] = weighted["depth"].max()  # type: ignore[assignment]
        for name in ("fanout", "confidence"):
            found[name] = (weighted[name] * weighted["summaries"]).sum() / made
        found |= {level: total[level] for level in LEVELS}
        for depth in range(int(found["depth"]) + 1):
            found[f"depth_{depth}"] = int(conversations["summaries_by_depth"].list.get(depth, null_on_oob=True).sum())
    return found


def _conversation(
    store: Store, conversation_id: str, summaries: pl.DataFrame, tokens: TokenEstimator
) -> dict[str, object]:
    messages = store.message_frame(conversation_id)
    context = store.context_records(conversation_id)
    items = [item.summary_id if isinstance(item, Summary) else item.message_id for item in context]
    images, price = store.image_counts(conversation_id), tokens.image_tokens or 0
    shown = sum(tokens.count([item.content for item in context])) + price * sum(images.get(item, 0) for item in items)
    raw = sum(tokens.count(store.contents(conversation_id))) + price * sum(images.values())
    said = set(messages["message_id"])
    gone = store.retired(conversation_id)
    with store.reading() as connection:
        found = {*items, *messages_beneath(connection, items)}
        retired = ({*gone, *messages_beneath(connection, gone)} & said) - found
    lost = said - found - retired
    levels = dict(summaries.group_by("level").len().iter_rows())
    by_depth = Counter(summaries["depth"].to_list())
    return {
        "conversation_id": conversation_id,
        "messages": len(messages),
        "context_items": len(items),
        "raw_tokens": raw,
        "context_tokens": shown,
        "ratio": raw / max(1, shown),
        "tokens_saved": raw - shown,
        "summaries": len(summaries),
        "summaries_by_depth": [by_depth[depth] for depth in range(max(by_depth, default=-1) + 1)],
        "depth": summaries["depth"].max(),
        "fanout": summaries["sources"].mean(),
        **{level: levels.get(level, 0) for level in LEVELS},
        "confidence": summaries["confidence"].mean(),
        "retired": len(retired),
        "recoverability": 1 - len(lost) / max(1, len(messages) - len(retired)),
    }


def _lost(conversations: pl.DataFrame) -> pl.Series:
    return (1 - conversations["recoverability"]) * (conversations["messages"] - conversations["retired"])
