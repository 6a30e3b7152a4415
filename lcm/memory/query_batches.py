"""Queries in batches: those that may see the same documents are ranked together."""

from collections.abc import Hashable, Sequence
from datetime import timedelta

import numpy as np
import polars as pl

from lcm.clock import END_OF_CLOCKS, EPOCH
from lcm.encoding import well_formed
from lcm.errors import LcmError
from lcm.faults import is_of_machine
from lcm.limits import QUERY_CHARACTERS
from lcm.memory.live_documents import LiveDocuments
from lcm.memory.scopes import Scopes, parse_agent_id
from lcm.protocols.models import Embedder, Vectors
from lcm.protocols.retrieval import Batch
from lcm.records.document import category_named
from lcm.records.query import Query
from lcm.retrieval.ranking.pipeline import RANKED_SCHEMA
from lcm.writing.dream import asks_for_dreams, in_sight

_MILLISECOND = timedelta(milliseconds=1)


def query_batches(
    live: LiveDocuments,
    queries: Sequence[Query],
    rules: Scopes,
    embedder: Embedder | None,
    vectors: Vectors | None,
) -> list[Batch]:
    """Put queries that may see the same documents into one batch, in the order of the first of each.

    Args:
        live: the documents of the workspace that is asked.
        queries: each sees what existed when it was asked, in the scopes that it may read.
        rules: which scopes a conversation reads.
        embedder: embeds the queries where `vectors` lacks them; None = the ranking needs no vectors.
        vectors: row i embeds query i.
    """
    check(queries)
    vectors, error = _embedded(queries, embedder, vectors)
    groups: dict[Hashable, list[int]] = {}
    by_session = not live.frame["is_durable"].all()
    for position, query in enumerate(queries):
        session = (query.session_id, query.conversation_id) if by_session else None
        moment, about_dreams = live.timeline.moment(query.asked_at), asks_for_dreams(query.text)
        seen = _told_scopes(query, rules), live.timeline.told_apart(readable_scopes(query, rules))
        key = (moment, *seen, query.only_category, query.shown_message_ids, session, about_dreams)
        groups.setdefault(key, []).append(position)
    return [
        _batch(live, key, [queries[i] for i in places], rules, vectors[places], error) for key, places in groups.items()
    ]


def readable_scopes(query: Query, rules: Scopes) -> tuple[str, ...] | None:
    """The scopes that a query reads: those that it names, else those of its conversation; without one all."""
    if query.scopes is not None or query.conversation_id is None:
        return query.scopes
    return rules.conversation_readable(query.conversation_id)


def _told_scopes(query: Query, rules: Scopes) -> tuple[str, ...] | None:
    """The scopes that a query reads by its host's word or as an agent's; None of anybody's."""
    is_anybody = query.scopes is None and parse_agent_id(query.conversation_id or "") is None
    return None if is_anybody else readable_scopes(query, rules)


def in_order(frames: Sequence[pl.DataFrame], queries: Sequence[Query]) -> pl.DataFrame:
    """The rows of several batches, queries in the order given."""
    if len(frames) < 2:
        return frames[0] if frames else pl.DataFrame(schema=RANKED_SCHEMA)
    order = pl.DataFrame({"query_id": [query.query_id for query in queries]}).with_row_index("position")
    placed = pl.concat(frames).join(order, on="query_id", how="left", maintain_order="left")
    return placed.sort("position", maintain_order=True).drop("position")


def check(queries: Sequence[Query]) -> None:
    """Refuse queries that cannot be answered.

    Raises:
        ValueError: if two have one id, or one has no instant between 1970 and 2099 or no list of scopes.
        LimitError: if one is longer than any that is answered.
    """
    if len({query.query_id for query in queries}) < len(queries):
        raise ValueError("query ids must differ within one call")
    for query in queries:
        QUERY_CHARACTERS.check(f"the text of query {query.query_id!r}", len(query.text))
        if query.asked_at.tzinfo is None:
            raise ValueError(f"asked_at of query {query.query_id!r} needs a time zone, got {query.asked_at!r}")
        if not EPOCH <= query.asked_at < END_OF_CLOCKS:
            raise ValueError(
                f"asked_at of query {query.query_id!r} must lie in the years 1970-2099, got "
                f"{query.asked_at.isoformat()}: is the clock set, and are milliseconds not taken for seconds?"
            )
        if isinstance(query.scopes, str):
            raise ValueError(f"scopes of query {query.query_id!r} must be a list of scopes, got {query.scopes!r}")


def _embedded(
    queries: Sequence[Query], embedder: Embedder | None, vectors: Vectors | None
) -> tuple[Vectors, LcmError | None]:
    """A vector a query, and why there are none; whether it can do without is for the source to say."""
    if embedder is not None and vectors is not None:
        return vectors, None
    error = None
    if embedder is not None:
        try:
            return embedder.embed([well_formed(query.text) for query in queries], "query"), None
        except LcmError as cause:
            if is_of_machine(cause):
                raise
            error = cause
    return np.empty((len(queries), 0), dtype=np.float32), error


def _batch(
    live: LiveDocuments,
    key: Hashable,
    queries: Sequence[Query],
    rules: Scopes,
    vectors: Vectors,
    error: LcmError | None,
) -> Batch:
    """Queries of one moment, with the same scopes and category, that are shown the same, and all about dreams or
    none; of one session too, where some documents are not durable. `key` is all of this."""
    first = queries[0]
    readable = live.timeline.told_apart(readable_scopes(first, rules))
    documents, turns, allowed = live.kept(key, lambda: _seen(live, first, readable))
    return Batch(
        queries=asked_frame(queries),
        vectors=vectors,
        documents=documents,
        allowed=allowed,
        vector_index=live.indexes.vector_index,
        text_index=live.text_index(None if live.timeline.is_all(documents) else readable),
        document_vectors=live.indexes.vector_index.vectors_of,
        embedding_error=error,
        incidents=live.incidents,
        derived=live.derived,
        scopes=_told_scopes(first, rules),
        is_in_session=bool(first.shown_message_ids) and (first.session_id or first.conversation_id) is not None,
        turns=turns,
    )


def _seen(
    live: LiveDocuments, first: Query, readable: Sequence[str] | None
) -> tuple[pl.DataFrame, pl.DataFrame | None, tuple[str, ...] | None]:
    """The documents and turns that queries like the first are answered from, and the ids that the indexes may give."""
    found = pl.concat([live.timeline.visible(first.asked_at, readable), live.timeline.folded(first.asked_at, readable)])
    documents = in_sight(found, first.text)
    if first.only_category is not None:
        documents = documents.filter(category=category_named(first.only_category) or first.only_category)
    if first.shown_message_ids:
        shown = pl.lit(pl.Series([list(first.shown_message_ids)])).first()
        hidden = pl.col("source_message_ids").list.set_difference(shown).list.len() == 0
        documents = documents.filter(~hidden | (pl.col("source_message_ids").list.len() == 0))
    # Behind a summary, or another session's: no answer, but turns that recovery may fetch.
    turns = documents.clear()
    if documents["invalidated_at"].null_count() < len(documents):  # else no row need be copied
        has_ended = pl.col("invalidated_at").fill_null(END_OF_CLOCKS) <= first.asked_at
        turns, documents = documents.filter(has_ended), documents.filter(~has_ended)
    if not documents["is_durable"].all():
        own = (
            pl.col("session_id") == first.session_id
            if first.session_id is not None
            else pl.col("conversation_id") == (first.conversation_id or "")
        )
        turns = pl.concat([turns, documents.filter(~pl.col("is_durable") & ~own)])
        documents = documents.filter(pl.col("is_durable") | own)
    allowed = None if live.timeline.is_all(documents) else tuple(documents["document_id"].to_list())
    return documents, None if turns.is_empty() else turns, allowed


def asked_frame(queries: Sequence[Query]) -> pl.DataFrame:
    """Queries as `Batch.queries` holds them."""
    asked_ms = [
        (query.asked_at - EPOCH) // _MILLISECOND for query in queries
    ]  # Polars reads datetimes ten times as long
    return pl.DataFrame(
        [
            pl.Series("query_id", [query.query_id for query in queries], pl.String),
            pl.Series("text", [well_formed(query.text) for query in queries], pl.String),
            pl.Series("asked_at", asked_ms, pl.Int64).cast(pl.Datetime("ms", "UTC")),
            pl.Series("conversation_id", [query.conversation_id for query in queries], pl.String),
            pl.Series("session_id", [query.session_id for query in queries], pl.String),
            pl.Series("caller", [query.caller for query in queries], pl.String),
        ]
    )
