"""Answers of a ranking, and what was said of names, as an assembly takes them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from lcm.javascript import first_units
from lcm.protocols.context import Assembly, ContextRequest, LooksUp, Mention
from lcm.records.query import Recalled
from lcm.store.conversations import active_conversation
from lcm.store.lineage import messages_by_number
from lcm.store.search import WORDS, SearchBounds, find
from lcm.store.store import Store

_COLUMNS = (
    "query_id", "document_id", "text", "kind", "source_message_ids", "created_at", "score", "cosine", "role",
    "scope_class", "confidence", "index_tier", "is_recovered", "tokens",
)  # fmt: skip
_RELATED_UNITS = 80
"""UTF-16 units that are shown of a related document, as memory-lancedb-pro shows them."""
_SPOKEN = ("message", "guidance")
"""Kinds of documents that somebody said."""
_MENTIONS = 32
"""Messages that are looked at for each name."""


def recalled_by_query(ranked: pl.DataFrame, documents: pl.DataFrame) -> dict[str, tuple[Recalled, ...]]:
    """What `Memory.rank` answered, by query id, best first; `documents` are those of the workspace."""
    rows = ranked.join(documents, on="document_id", how="left", maintain_order="left").select(_COLUMNS)
    related = _related(ranked, documents)
    found: dict[str, list[Recalled]] = {}
    for query_id, document_id, text, kind, sources, created_at, score, cosine, role, *rest in rows.iter_rows():
        said_by = role or "" if kind in _SPOKEN else ""
        one = Recalled(document_id, text, kind, tuple(sources), created_at, score or 0.0, cosine or 0.0, said_by, *rest)
        if beside := related.get((query_id, document_id)):
            one = replace(one, related=beside)
        found.setdefault(query_id, []).append(one)
    return {query_id: tuple(documents) for query_id, documents in found.items()}


def _related(ranked: pl.DataFrame, documents: pl.DataFrame) -> dict[tuple[str, str], tuple[str, ...]]:
    """The beginnings of what is related to each answer of a query; of a document once a query, with the best answer."""
    rows = ranked.filter(pl.col("related").list.len() > 0).select("query_id", "document_id", "related")
    if rows.is_empty():
        return {}
    pairs = (
        rows.explode("related")
        .with_columns(related=pl.col("related").struct.field("document_id"))
        .unique(["query_id", "related"], keep="first", maintain_order=True)
        .join(documents.select("document_id", "text"), left_on="related", right_on="document_id", maintain_order="left")
    )
    beside: dict[tuple[str, str], tuple[str, ...]] = {}
    for query_id, document_id, text in pairs.select("query_id", "document_id", "text").iter_rows():
        beginning = first_units(text, _RELATED_UNITS, "dropped")
        beside[query_id, document_id] = (*beside.get((query_id, document_id), ()), beginning)
    return beside


def with_mentions(
    asks: Sequence[ContextRequest], assembly: Assembly, store: Store, conversation_id: str, incidents: Counter[str]
) -> list[ContextRequest]:
    """The asks with what users and assistants said in the conversation of the names that each prompt has, where the
    assembly looks names up."""
    named = [assembly.names(ask.prompt) if isinstance(assembly, LooksUp) else [] for ask in asks]
    if not any(named):
        return list(asks)
    found: dict[str, list[Mention]] = {}
    with store.reading() as connection:
        conversation = active_conversation(connection, conversation_id)
        within = SearchBounds(() if conversation is None else (conversation,), limit=_MENTIONS)
        for name in {name for names in named for name in names}:
            hits = find(connection, WORDS, f'"{name}"', within, "time", keeps_phrases=True, incidents=incidents)
            said = messages_by_number(connection, [number for number, _ in hits])
            found[name] = [Mention(one.message_id, one.text) for one in said if one.role in ("user", "assistant")]
    return [
        ask._replace(mentions={name: found[name] for name in names}) for ask, names in zip(asks, named, strict=True)
    ]
