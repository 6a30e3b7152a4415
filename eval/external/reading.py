"""What a log of an external memory says: its answers as ranked documents, its contexts, and what went wrong."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any, get_args

import polars as pl

from eval.answering import Excerpt, within
from eval.dataset.dataset import Dataset, opaque_id
from eval.external.alignment import Aligned, Aligner, How, foreign_texts
from eval.external.contract import Told, incident, message_told
from eval.measures.measure import REPORT_TOKENS
from eval.questions.searched_text import folded
from lcm.clock import EPOCH
from lcm.javascript import utf16_length
from lcm.records.context import Context, ContextItem
from lcm.records.document import GLOBAL_SCOPE
from lcm.store.documents import DOCUMENT_SCHEMA

ANSWERS_SCHEMA: dict[str, pl.DataType] = {
    "query_id": pl.String(),
    "document_id": pl.String(),
    "rank": pl.Int64(),
    "score": pl.Float64(),
}
ASKED_SCHEMA: dict[str, pl.DataType] = {
    "query_id": pl.String(),
    "fault": pl.String(),
    "detail": pl.String(),
    "round_trip_ms": pl.Float64(),
    "took_ms": pl.Float64(),
    "given": pl.Int64(),
    "could_give": pl.Int64(),
    "named": pl.Int64(),
    "exact": pl.Int64(),
    "near": pl.Int64(),
    "none": pl.Int64(),
    "foreign": pl.Int64(),
    "early": pl.Int64(),
    "unjudged_budgets": pl.List(pl.Int64()),
}
"""A row a query: the fault that came instead of an answer, null where it was answered; how long that took, seen from
here and, where the memory says so, by its own clock; how many texts it gave, and how many it could have, as far as they
were asked for and messages added; its texts by how they came to stand for messages, as `How` has it; the budgets of its
contexts that hold text of which none could be aligned."""
HOW: tuple[How, ...] = get_args(How)
KIND = "external"
"""Of the documents that an external memory returned."""


@dataclass(frozen=True, slots=True)
class Answered:
    """What an external memory answered in one workspace."""

    answers: pl.DataFrame
    """Rows of `ANSWERS_SCHEMA`, best first."""
    documents: pl.DataFrame
    """Rows of `DOCUMENT_SCHEMA`: the texts that it returned, each with the messages that it stands for."""
    asked: pl.DataFrame
    """Rows of `ASKED_SCHEMA`, a query each."""
    contexts: Mapping[tuple[str, datetime | None, int], Context]
    """By the query's words, when it was asked, and the budget."""
    incidents: Counter[str]
    told: Told


def read_log(
    log: pl.DataFrame, workspace: str, dataset: Dataset, k: int, similarity: float, noise: Mapping[str, int]
) -> Answered:
    """
    Args:
        log: rows of `LOG_SCHEMA`.
        dataset: of which the workspace is one.
        k: texts of an answer that count; those all of whose messages the asker sees are none of them.
        similarity: from which a stretch of a text nearly repeats a message.
        noise: what was counted while it was asked.
    """
    return _Reading(log, workspace, dataset, k, similarity, noise).answered()


class _Reading:
    def __init__(
        self, log: pl.DataFrame, workspace: str, dataset: Dataset, k: int, similarity: float, noise: Mapping[str, int]
    ) -> None:
        self._rows = log.rows(named=True)
        self._workspace = workspace
        self._k = k
        self._queries = {query.query_id: query for query in dataset.queries if query.workspace_id == workspace}
        self._incidents = Counter(noise)
        told = {
            message.message_id: (message.message_id, one["content"], message.author)
            for transcript in dataset.transcripts
            if transcript.workspace_id == workspace
            for message in transcript.messages
            if (one := message_told(message, transcript.conversation_id)) is not None
        }
        added = [name for row in self._rows if row["call"] == "add" for name in row["texts"] or ()]
        later = [name for name in told if name not in set(added)]
        texts = [text for row in self._rows if row["call"] in ("search", "context") for text in row["texts"] or ()]
        elsewhere = (
            message.content.strip()
            for transcript in dataset.transcripts
            if transcript.workspace_id != workspace
            for message in transcript.messages
        )
        foreign = foreign_texts(texts, elsewhere)
        self._aligner = Aligner([told[name] for name in (*added, *later)], foreign, similarity)
        self._sessions = {
            message.message_id: (transcript.conversation_id, message.session_id, message.created_at)
            for transcript in dataset.transcripts
            if transcript.workspace_id == workspace
            for message in transcript.messages
        }
        self._documents: dict[str, dict[str, Any]] = {}
        self._unjudged: dict[str, list[int]] = {}
        """Query -> budgets of contexts of whose texts none could be aligned."""

    def answered(self) -> Answered:
        answers, asked = list[tuple[Any, ...]](), list[dict[str, Any]]()
        contexts: dict[tuple[str, datetime | None, int], Context] = {}
        for row in self._rows:
            if row["fault"] is not None:
                self._incidents[incident(row["call"], row["fault"])] += 1
            if row["call"] == "search":
                told = [*islice(self._unseen(row), self._k)] if row["fault"] is None else []
                counts = Counter(aligned.how for *_, aligned in told)
                given = {"given": len(row["texts"] or ()), "could_give": min(self._asked_for(row), row["added"])}
                about = {name: row[name] for name in list(ASKED_SCHEMA)[:5]}
                asked.append(about | given | {how: counts[how] for how in HOW})
                ids = [self._document(text, aligned, row) for text, _, aligned in told]
                answers += [
                    (row["query_id"], document_id, rank, score)
                    for rank, (document_id, (_, score, _)) in enumerate(zip(ids, told, strict=True), start=1)
                ]
            elif row["call"] == "context" and row["fault"] is None:
                query = self._queries[row["query_id"]]
                contexts[query.text, query.asked_at, row["budget_tokens"]] = self._context(row)
        asked = [one | {"unjudged_budgets": self._unjudged.get(one["query_id"], [])} for one in asked]
        documents = pl.DataFrame(list(self._documents.values()), schema=DOCUMENT_SCHEMA, orient="row")
        return Answered(
            pl.DataFrame(answers, schema=ANSWERS_SCHEMA, orient="row"),
            documents,
            pl.DataFrame(asked, schema=ASKED_SCHEMA, orient="row"),
            contexts,
            self._incidents,
            self._told(),
        )

    def _told(self) -> Told:
        reset = (row["texts"] for row in self._rows if row["call"] == "reset" and row["texts"])
        name, version, *notes = next(reset, ("", ""))
        return Told(name, version, notes=tuple(notes))

    def _asked_for(self, row: Mapping[str, Any]) -> int:
        return self._k + len(self._queries[row["query_id"]].shown_message_ids)

    def _unseen(self, row: Mapping[str, Any]) -> Iterator[tuple[str, float | None, Aligned]]:
        """The texts of an answer without what the asker sees already."""
        shown = set(self._queries[row["query_id"]].shown_message_ids)
        for told in self._texts(row):
            ids = set(told[2].message_ids)
            if not ids or not ids <= shown:
                yield told

    def _texts(self, row: Mapping[str, Any]) -> Iterator[tuple[str, float | None, Aligned]]:
        """The texts of an answer, each once, with what became of them."""
        if row["surplus"]:
            self._incidents["external: answers of more than k texts"] += 1
        seen = set[str]()
        for text, score, ids in zip(row["texts"], row["scores"], row["source_ids"], strict=True):
            if (words := folded(text)) in seen or not words:
                self._incidents["external: texts repeated" if words else "external: texts without words"] += 1
                continue
            seen.add(words)
            aligned = self._aligner.align(text, ids, row["added"])
            for name, times in _wrong(aligned, ids).items():
                self._incidents[f"external: {name}"] += times
            yield text, score, aligned

    def _document(self, text: str, aligned: Aligned, row: Mapping[str, Any]) -> str:
        name = opaque_id(self._workspace, text, *aligned.message_ids)
        if name not in self._documents:
            places = [self._sessions[one] for one in aligned.message_ids]
            conversation, session, _ = places[0] if places else ("", "", None)
            at = max((said for *_, said in places if said is not None), default=EPOCH)
            self._documents[name] = {
                "document_id": name, "text": text, "overview": "", "content": "", "kind": KIND, "category": "other",
                "scope": GLOBAL_SCOPE, "conversation_id": conversation, "session_id": session,
                "source_message_ids": list(aligned.message_ids), "created_at": at, "valid_from": at,
                "access_count": 0, "importance": 0.7, "confidence": 0.7, "decay_tier": "working",
                "temporal_type": "static", "tokens": REPORT_TOKENS.count([text])[0], "length_utf16": utf16_length(text),
                "is_durable": True, "authority": 0.0, "decay_rate": 0.0, "hop_targets": [],
            }  # fmt: skip
        return name

    def _context(self, row: Mapping[str, Any]) -> Context:
        """What came back, as far as the budget goes."""
        budget: int = row["budget_tokens"]
        shown = within((Excerpt(text) for text in row["texts"]), budget, REPORT_TOKENS)
        if [one.text for one in shown] != [text for text in row["texts"] if text.strip()]:
            self._incidents["external: contexts above their budget"] += 1
        whole = [text for text in row["texts"] if text.strip()]
        ids = [one for text, one in zip(row["texts"], row["source_ids"], strict=True) if text.strip()]
        items, ways = [], set[How]()
        for excerpt, text, named in zip(shown, whole, ids, strict=False):
            is_cut = len(excerpt.text) < len(text)
            aligned = self._aligner.align(excerpt.text, None if is_cut else named, row["added"])
            ways.add(aligned.how)
            name = opaque_id(self._workspace, excerpt.text, *aligned.message_ids)
            tokens = REPORT_TOKENS.count([excerpt.text])[0]
            items.append(ContextItem("document", name, excerpt.text, tokens, source_message_ids=aligned.message_ids))
        if "none" in ways and ways <= {"none", "foreign", "early"}:
            self._unjudged.setdefault(row["query_id"], []).append(budget)
        return Context(tuple(items), sum(one.tokens for one in items), budget)


def _wrong(aligned: Aligned, named: Sequence[str] | None) -> dict[str, int]:
    """What is wrong with a text, by name and times."""
    return {
        name: times
        for name, times in {
            "source ids that name nothing added": aligned.unknown_ids,
            "texts that lost their source ids": int(bool(named is not None and not named)),
            "texts edited": int(aligned.is_edited or aligned.how == "near"),
            "texts in other words than the messages they name": int(aligned.is_retold),
            "texts that name more messages than they have words": int(aligned.is_overstated),
            "texts that are another message than they name": int(aligned.is_misnamed),
            "texts of another workspace": int(aligned.how == "foreign"),
            "texts of what was not added yet": int(aligned.how == "early"),
        }.items()
        if times
    }
