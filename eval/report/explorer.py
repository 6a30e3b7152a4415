"""The questions of a page, one by one: what each ranking answered, where the evidence lies, what a context held, and
the words of all that, numbered and packed in blocks that are unpacked on demand."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import polars as pl

from eval.dataset.dataset import Dataset
from eval.ladder.losses import REASONS
from eval.report.page import Blocks, parted
from eval.report.ranking import (
    FoldedConversation,
    Insight,
    MessageLadder,
    ShownContext,
    ShownRanking,
    StoredDocument,
    shown_measures,
)
from lcm.records.context import ContextItem
from lcm.records.conversation import Message
from lcm.redaction import redacted
from lcm.transcript.passages import utterance

_PART_LETTERS = 60_000
"""Of a block: unpacked in a few milliseconds."""
_PREVIEW = 160
_LIMITS = (20_000, 8_000, 4_000, 2_000, 1_000, 500, 250)
_BYTES_A_LETTER = 0.5
"""In the page: of English a third of a letter, of other scripts more."""


@dataclass(slots=True)
class Texts:
    """Numbers messages and documents as they are named, and packs their words."""

    dataset: Dataset | None
    """Where the words stand; None = they are not at hand, and the page shows ids."""
    most_bytes: int
    """What all words may take in the page: beyond it long messages are cut, the longest first."""
    documents: dict[tuple[str, str, str | None, str | None], int] = field(default_factory=dict)
    """(workspace, document, its own words, its own date) -> its number: memories may hold one otherwise."""
    rows: list[tuple[str, int | None, list[int], str | None, str | None]] = field(default_factory=list)
    """Of each document: its id, tokens, numbers of its messages, own words, own date."""
    messages: dict[tuple[str, str], int] = field(default_factory=dict)
    """(workspace, message) -> its number, which follows the conversation."""
    _said: list[tuple[str, Message | None, int]] = field(default_factory=list)
    """Message id, message, number of its conversation."""
    conversations: list[tuple[str, str, int, int]] = field(default_factory=list)
    """Conversation id, workspace, number of its first message, how many."""

    def __post_init__(self) -> None:
        for transcript in () if self.dataset is None else self.dataset.transcripts:
            workspace, number = transcript.workspace_id, len(self.conversations)
            first = len(self._said)
            for message in transcript.messages:
                if self.messages.setdefault((workspace, message.message_id), len(self._said)) == len(self._said):
                    self._said.append((message.message_id, message, number))
            self.conversations.append((transcript.conversation_id, workspace, first, len(self._said) - first))

    def message(self, workspace: str, message_id: str) -> int:
        """The number of a message; one that the dataset does not tell gets one without words."""
        number = self.messages.setdefault((workspace, message_id), len(self._said))
        if number == len(self._said):
            self._said.append((message_id, None, -1))
        return number

    def document(
        self,
        workspace: str,
        document_id: str,
        sources: Sequence[str] | None,
        tokens: int | None,
        stored: StoredDocument | None = None,
    ) -> int:
        """The number of a document; its words and its date are those of the messages it was made of, unless it is
        `stored` with others."""
        text, at = (None, None) if stored is None else self.other(stored, self.numbers(workspace, sources))
        number = self.documents.setdefault((workspace, document_id, text, at), len(self.rows))
        if number == len(self.rows):
            self.rows.append((document_id, tokens, list(self.numbers(workspace, sources)), text, at))
        return number

    def numbers(self, workspace: str, message_ids: Sequence[str] | None) -> Sequence[int]:
        """The numbers of messages of a workspace."""
        if message_ids and len(message_ids) == 1:
            return (self.message(workspace, message_ids[0]),)
        return [self.message(workspace, one) for one in message_ids or ()]

    def other(self, stored: StoredDocument | None, made_of: Sequence[int]) -> tuple[str | None, str | None]:
        """The words and the date of a stored document, each where it is not that of the messages it was made of."""
        if stored is None:
            return None, None
        return stored.text if self._is_other(stored.text, made_of) else None, self._other_date(stored.at, made_of)

    def _other_date(self, at: datetime, made_of: Sequence[int]) -> str | None:
        """When a document is said to be from, where none of its messages is."""
        said = [message.created_at for number in made_of if (message := self._said[number][1]) is not None]
        told = {_minute(instant) for instant in said if instant is not None}
        return _minute(at) if told and _minute(at) not in told else None

    def _is_other(self, text: str, made_of: Sequence[int]) -> bool:
        """Whether a text is not simply what its one message says, with the speaker's name before it."""
        if len(made_of) != 1 or (message := self._said[made_of[0]][1]) is None:
            return True
        said = utterance(message).strip()
        return not said or not text.strip().endswith(said)

    def pack(self, blocks: Blocks, needed: Iterable[int] | None = None) -> dict[str, list[int]]:
        """Write the blocks; returns where those of messages and of documents begin.

        Args:
            needed: the messages whose words are shown; None = of all.
        """
        wanted = None if needed is None else set(needed).union(*(row[2] for row in self.rows))
        words = [
            "" if message is None or (wanted is not None and number not in wanted) else redacted(utterance(message))
            for number, (_, message, _) in enumerate(self._said)
        ]
        limit = _limit([len(text) for text in words], self.most_bytes)
        rows = [
            self._message(number, words[number], limit, is_told=wanted is None or number in wanted)
            for number in range(len(self._said))
        ]
        documents = [
            (
                document_id,
                tokens,
                made_of,
                None if text is None else _cut(redacted(text), limit),
                _first(words, made_of),
                at,
            )
            for document_id, tokens, made_of, text, at in self.rows
        ]
        return {
            "messages": blocks.add_series("m", parted(rows, [len(row[-1] or "") + 40 for row in rows], _PART_LETTERS)),
            "documents": blocks.add_series(
                "d", parted(documents, [len(row[3] or row[4] or "") + 40 for row in documents], _PART_LETTERS)
            ),
        }

    def _message(self, number: int, words: str, limit: int, *, is_told: bool) -> tuple[str, str, str, int, str | None]:
        """Id, who, when, number of the conversation, words."""
        message_id, message, conversation = self._said[number]
        if message is None:
            return message_id, "", "", conversation, None
        at = "" if message.created_at is None else _minute(message.created_at)
        return message_id, message.author or message.role, at, conversation, _cut(words, limit) if is_told else None


def _minute(instant: datetime) -> str:
    return f"{instant:%Y-%m-%d %H:%M}"


def _first(words: Sequence[str], made_of: Sequence[int]) -> str | None:
    """How a document begins, by its first message: what a list of documents shows without unpacking messages."""
    return words[made_of[0]][:_PREVIEW] or None if made_of else None


def _limit(lengths: Sequence[int], most_bytes: int) -> int:
    """The letters that a message may have so that all of them fit."""
    for limit in _LIMITS:
        if sum(min(length, limit) for length in lengths) * _BYTES_A_LETTER <= most_bytes:
            return limit
    return _LIMITS[-1]


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]} … ({len(text) - limit:,} characters more)"


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
                    _brief(summary.content),
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
        return "document", None, item.tokens, _brief(item.text), sources

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
        "held": text and _brief(text),
        "held_at": at,
        "message": texts.message(workspace, ladder.message_id),
        "lost": ladder.lost_at,
        "steps": [(one.stage, one.rank, one.score, one.told, one.reason) for one in ladder.rungs],
    }


def _brief(text: str) -> str:
    return _cut(redacted(text), _LONGEST)


_AT_ONCE = 50
"""Questions in a block."""
_DEPTH = 20
"""Ranks that are shown; deeper ones only of evidence."""


@dataclass(frozen=True, slots=True)
class Explorer:
    """Rankings side by side, over the questions that they share."""

    queries: pl.DataFrame
    """query_id, workspace_id, conversation_id, category, text, asked_at, evidence."""
    columns: Sequence[ShownRanking]
    """The first is what is looked at, the second what it is held against at first."""
    about: Mapping[str, str]
    """Name -> what a bug report says of the page: dataset, configuration, commit."""
    notes: Sequence[str] = field(default_factory=tuple)
    """What is missing, and what would bring it."""

    def pack(self, blocks: Blocks, texts: Texts) -> None:
        """Write the blocks of the explorer."""
        measures = shown_measures(self.columns)
        values = [_values(column, measures) for column in self.columns]
        judged = self.queries.explode("evidence").drop_nulls("evidence")
        at = [texts.message(*one) for one in judged.select("workspace_id", "evidence").iter_rows()]
        evidence = judged.select("query_id", message_id="evidence", number=pl.Series(at, dtype=pl.Int64))
        ranked = [_rankings(column, evidence, texts) for column in self.columns]
        folding = Folding(texts)
        for number, column in enumerate(self.columns):
            if column.insight is not None:
                folding.add(number, column.insight)
        rows, listed, needed = [], [], set[int]()
        for query in self.queries.iter_rows(named=True):
            told = self._question(query, ranked, texts, folding)
            needed.update(told["evidence"])
            rows.append(told)
            query_id = query["query_id"]
            listed.append(
                (
                    query_id,
                    query["category"] or "",
                    _preview(query["text"]),
                    len(told["evidence"]),
                    [of_column.get(query_id, []) for of_column in values],
                    [None if one.insight is None else one.insight.lost(query_id) for one in self.columns],
                )
            )
        blocks.add_series("q", parted(rows, [1] * len(rows), _AT_ONCE))
        is_deep = any(column.insight is not None for column in self.columns)
        starts = folding.pack(blocks) | texts.pack(blocks, None if is_deep else needed)
        directions = {name: way for column in self.columns for name, way in column.directions.items()}
        blocks.add(
            "index",
            {
                "columns": [redacted(column.name) for column in self.columns],
                "measures": measures,
                "lower": [directions.get(measure) == "lower" for measure in measures],
                "at_once": _AT_ONCE,
                "questions": listed,
                "starts": starts,
                "conversations": texts.conversations,
                "folded": [(one["id"], one["workspace"], one["column"]) for one in folding.conversations],
                "about": dict(self.about),
                "notes": list(self.notes),
                "unseen": list(REASONS),
            },
        )
        for number, one in enumerate(folding.conversations):
            blocks.add(f"c{number}", one)

    def _question(
        self,
        query: Mapping[str, Any],
        ranked: Sequence[Mapping[str, list[tuple[Any, ...]]]],
        texts: Texts,
        folding: Folding,
    ) -> dict[str, Any]:
        workspace, query_id = query["workspace_id"], query["query_id"]
        evidence = [texts.message(workspace, message_id) for message_id in query["evidence"] or ()]
        insights = [column.insight for column in self.columns]
        return {
            "text": redacted(query["text"]),
            "asked_at": None if query["asked_at"] is None else f"{query['asked_at']:%Y-%m-%d %H:%M}",
            "workspace": workspace,
            "evidence": evidence,
            "rankings": [found.get(query_id, []) for found in ranked],
            "ladders": [
                []
                if one is None
                else [
                    ladder_told(ladder, workspace, texts, one.documents.get((workspace, ladder.document_id or "")))
                    for ladder in one.ladders.get(query_id, ())
                ]
                for one in insights
            ],
            "contexts": [
                []
                if one is None
                else [folding.context(number, workspace, shown) for shown in one.contexts.get(query_id, ())]
                for number, one in enumerate(insights)
            ],
        }


def _rankings(column: ShownRanking, evidence: pl.DataFrame, texts: Texts) -> dict[str, list[tuple[Any, ...]]]:
    """Query id -> document, rank, score, messages of evidence in it: of the first ranks, and of those that hold some.

    Args:
        evidence: query_id, message_id, number of the message.
    """
    of_row, of_document = ["query_id", "document_id"], ["workspace_id", "document_id"]
    covers = pl.concat(
        column.ranking.select(*of_row, message_id=name).explode("message_id").drop_nulls()
        for name in ("source_message_ids", "twin_message_ids")
    )
    held = covers.join(evidence, on=["query_id", "message_id"], maintain_order="left").group_by(of_row)
    rows = column.ranking.join(held.agg(gold=pl.col("number").unique(maintain_order=True)), on=of_row, how="left")
    rows = rows.filter((pl.col("rank") <= _DEPTH) | pl.col("gold").is_not_null()).sort("query_id", "rank")
    each = rows.select(*of_document, "source_message_ids", "tokens").unique(of_document, maintain_order=True)
    stored = {} if column.insight is None else column.insight.documents
    numbers = [texts.document(*one, stored.get(one[:2])) for one in each.iter_rows()]
    rows = rows.join(each.select(*of_document, number=pl.Series(numbers, dtype=pl.Int64)), on=of_document)
    told = pl.col("number", "rank", "score", "gold").sort_by("rank")
    asked = rows.with_columns(pl.col("gold").fill_null([])).group_by("query_id").agg(told)
    return {query_id: list(zip(*lists, strict=True)) for query_id, *lists in asked.iter_rows()}


def _values(column: ShownRanking, measures: Sequence[str]) -> dict[str, tuple[float | None, ...]]:
    """Query id -> a value for each measure."""
    told = column.values.with_columns(pl.col("value").round(4))
    told = told.pivot("measure", on_columns=measures, index="query_id", values="value")
    return {query_id: values for query_id, *values in told.iter_rows()}


def _preview(text: str) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= _PREVIEW else f"{plain[: _PREVIEW - 1]}…"
