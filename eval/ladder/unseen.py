"""Why nothing that an asker may see stands for a message."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

import polars as pl

from lcm.memory.live_documents import readable_scopes
from lcm.memory.memory import Memory
from lcm.records.query import Query

NOT_SAID, NOT_STORED, LEFT_OUT = "not said yet", "never stored", "left out"
REFUSED, KNOWN = "refused", "taken for known"
SCOPE, SESSION, SHOWN, HIDDEN = "another scope", "another session", "shown already", "not asked for"
FOLDED, REPLACED, NO_DOCUMENT = "folded", "replaced", "no document"
UNANSWERED, UNJUDGED = "unanswered", "unjudged"
REASONS = {
    NOT_SAID: "was said after the question was asked",
    SHOWN: "is shown to the asker already",
    FOLDED: "stands behind a summary",
    REPLACED: "ended when another document came to stand in its place",
    SESSION: "is not durable, and was said in another session",
    HIDDEN: "is of a category or kind that was not asked for",
    SCOPE: "lies in a scope that the asker may not read",
    REFUSED: "was refused by admission",
    KNOWN: "was taken by deduplication for what was known",
    LEFT_OUT: "is of a session that is left out",
    NOT_STORED: "was said before the question was asked, and the memory does not hold it",
    NO_DOCUMENT: "has no document: nothing was extracted from it",
    UNANSWERED: "is no miss: the external memory gave no answer to the question",
    UNJUDGED: "is no miss that is known: nothing of the answer could be aligned to messages",
}
"""Place -> what is so of a message there; where several are so of its documents, the first."""
NO_MISS = (UNANSWERED, UNJUDGED)
"""The places of what is neither found nor missed: the question has no value."""


class Said(NamedTuple):
    """What the dataset tells of a message, whatever became of it."""

    conversation_id: str
    at: datetime
    """Its own time, or the latest before it."""


class _Standing(NamedTuple):
    """A document that stands for a message, as far as it matters here."""

    document_id: str
    source_message_ids: list[str]
    scope: str
    is_durable: bool
    valid_from: datetime
    invalidated_at: datetime | None


def why_unseen(memory: Memory, query: Query, message_ids: Sequence[str], said: Mapping[str, Said]) -> dict[str, str]:
    """Message id -> one of `REASONS`, of messages that no document stands for which the query may see.

    Args:
        memory: as it stood when the query was asked.
        said: message id -> what the dataset tells of it.
    """
    documents, superseded = memory.documents, set(memory.documents["supersedes"].drop_nulls())
    wanted = pl.lit(pl.Series([list(message_ids)])).first()
    rows = documents.filter(pl.col("source_message_ids").list.set_intersection(wanted).list.len() > 0)
    reasons: dict[str, set[str]] = {}
    for one in map(_Standing._make, rows.select(_Standing._fields).iter_rows()):
        for message_id in one.source_message_ids:
            reasons.setdefault(message_id, set()).add(_of_document(memory, query, one, superseded))
    without = [message_id for message_id in message_ids if message_id not in reasons]
    told = _of_undocumented(memory, query, without, said)
    return {
        message_id: told.get(message_id) or next(one for one in REASONS if one in reasons[message_id])
        for message_id in message_ids
    }


def _of_document(memory: Memory, query: Query, one: _Standing, superseded: set[str]) -> str:
    readable = readable_scopes(query, memory.system.scopes)
    if readable is not None and one.scope not in readable:
        return SCOPE
    if one.valid_from > query.asked_at:
        return NOT_SAID
    if one.invalidated_at is not None and one.invalidated_at <= query.asked_at:
        return REPLACED if one.document_id in superseded else FOLDED
    if set(one.source_message_ids) <= set(query.shown_message_ids):
        return SHOWN
    return HIDDEN if one.is_durable else SESSION


def _of_undocumented(
    memory: Memory, query: Query, message_ids: Sequence[str], said: Mapping[str, Said]
) -> dict[str, str]:
    """Of messages that no document at all was made of."""
    if not message_ids:
        return {}
    stored = memory.store.messages_by_id(list(message_ids))
    judged: dict[str, str] = {}
    for action, candidate in memory.store.decisions().select("action", "candidate").iter_rows():
        for message_id in json.loads(candidate)["source_message_ids"]:
            judged[message_id] = REFUSED if action == "reject" else KNOWN
    told = {}
    for message_id in message_ids:
        told[message_id] = (
            judged.get(message_id, NO_DOCUMENT) if message_id in stored else _absent(memory, query, said[message_id])
        )
    return told


def _absent(memory: Memory, query: Query, said: Said) -> str:
    """Why a memory does not hold a message."""
    if not memory.system.session.writes(said.conversation_id, said.conversation_id):
        return LEFT_OUT
    return NOT_SAID if said.at > query.asked_at else NOT_STORED
