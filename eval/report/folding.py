"""Contexts and folded conversations of a page, numbered and packed."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from eval.report.insight import FoldedConversation, Insight, MessageLadder, ShownContext, StoredDocument
from eval.report.packing import Blocks, parted
from eval.report.texts import Texts
from lcm.records.context import ContextItem
from lcm.redaction import redacted

_PART_LETTERS = 60_000
_LONGEST = 4_000


@dataclass(slots=True)
class Folding:
    """What the memories of a page's rankings hold beyond their documents."""

    texts: Texts
    summaries: dict[tuple[int, str], int] = field(default_factory=dict)
    """(column, summary) -> its number."""
    _rows: list[tuple[Any, ...]] = field(default_factory=list)
    _contexts: dict[tuple[Any, ...], int] = field(default_factory=dict)
    _packed: list[dict[str, Any]] = field(default_factory=list)
    conversations: list[dict[str, Any]] = field(default_factory=list)
    """Of each folded conversation of each column: where it is told."""

    def add(self, column: int, insight: Insight) -> None:
        """Number the summaries of a column's conversations."""
        for one in insight.folded.values():
            self._fold(column, one)

    def _fold(self, column: int, one: FoldedConversation) -> None:
        first = len(self._rows)
        for place, summary in enumerate(one.summaries):
            self.summaries[column, summary.summary_id] = first + place
        for summary in one.summaries:
            self._rows.append(
                (
                    summary.summary_id,
                    summary.depth,
                    summary.token_count,
                    summary.level,
                    _cut(summary.content),
                    self._sources(column, one.workspace_id, summary.source_ids),
                    summary.depth == 0,
                )
            )
        number = next(
            (
                place
                for place, (conversation_id, workspace, *_) in enumerate(self.texts.conversations)
                if (conversation_id, workspace) == (one.conversation_id, one.workspace_id)
            ),
            None,
        )
        self.conversations.append(
            {
                "column": column,
                "id": one.conversation_id,
                "workspace": one.workspace_id,
                "conversation": number,
                "summaries": [first, len(one.summaries)],
                "entries": [
                    (kind[0], self._number(column, one.workspace_id, item_id), tokens)
                    for kind, item_id, tokens in one.entries
                ],
            }
        )

    def _sources(self, column: int, workspace: str, source_ids: Sequence[str]) -> list[int]:
        return [self._number(column, workspace, source_id) for source_id in source_ids]

    def _number(self, column: int, workspace: str, item_id: str) -> int:
        """Of a summary where one has the id, else of a message."""
        known = self.summaries.get((column, item_id))
        return self.texts.message(workspace, item_id) if known is None else known

    def context(self, column: int, workspace: str, shown: ShownContext) -> tuple[int, int, tuple[str, ...]]:
        """Budget, number of the context, how it holds each message of evidence."""
        context = shown.context
        items = tuple(self._item(column, workspace, item) for item in context.items)
        key = (shown.conversation_id, context.budget_tokens, context.tokens, items)
        if key not in self._contexts:
            self._contexts[key] = len(self._packed)
            told = {"tokens": context.tokens, "evicted": context.evicted, "conversation": shown.conversation_id}
            self._packed.append(told | {"items": items})
        return context.budget_tokens, self._contexts[key], shown.states

    def _item(self, column: int, workspace: str, item: ContextItem) -> tuple[Any, ...]:
        """Kind, number, tokens; of documents also their words and the messages that they stand for."""
        if item.kind == "summary" and (column, item.item_id) in self.summaries:
            return "summary", self.summaries[column, item.item_id], item.tokens
        if item.kind == "message" and (workspace, item.item_id) in self.texts.messages:
            return "message", self.texts.messages[workspace, item.item_id], item.tokens
        sources = tuple(self.texts.message(workspace, source) for source in item.source_message_ids)
        return "document", None, item.tokens, _cut(item.text), sources

    def pack(self, blocks: Blocks) -> dict[str, list[int]]:
        """Write the blocks; returns where those of summaries and of contexts begin."""
        sizes = [len(row[4]) + 60 for row in self._rows]
        entries = [
            len(one["items"]) * 20 + sum(len(item[3]) for item in one["items"] if len(item) > 3) for one in self._packed
        ]
        return {
            "summaries": blocks.add_series("s", parted(self._rows, sizes, _PART_LETTERS)),
            "contexts": blocks.add_series("x", parted(self._packed, entries, _PART_LETTERS)),
        }


def ladder_told(ladder: MessageLadder, workspace: str, texts: Texts, stored: StoredDocument | None) -> dict[str, Any]:
    """As the page reads it; `stored` is the document whose steps are told, as the memory holds it."""
    text, at = texts.other(stored, [texts.message(workspace, ladder.message_id)])
    return {
        "held": text and _cut(text),
        "held_at": at,
        "message": texts.message(workspace, ladder.message_id),
        "lost": ladder.lost_at,
        "steps": [(one.stage, one.rank, one.score, one.told, one.reason) for one in ladder.rungs],
    }


def _cut(text: str) -> str:
    told = redacted(text)
    return told if len(told) <= _LONGEST else f"{told[:_LONGEST]} … ({len(told) - _LONGEST:,} characters more)"
