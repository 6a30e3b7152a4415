"""Facts of a workspace: what is told of a memory that holds all transcripts, whatever is measured."""

from collections.abc import Callable, Mapping, Sequence

import polars as pl

from eval.measures.measure import REPORT_TOKENS
from lcm.memory.live_documents import readable_scopes
from lcm.memory.memory import Memory
from lcm.records.query import Query
from lcm.store.doctor import census

Fact = Callable[[Memory, Sequence[Query]], pl.DataFrame]
"""Tells one thing of a memory that holds all transcripts of its workspace, as far as these queries may read."""
_TEXTS_AT_ONCE = 1 << 14
"""Of the documents whose tokens are counted: no second copy of all words."""


def _readable(memory: Memory, queries: Sequence[Query], present: pl.Series) -> list[str] | None:
    """The scopes that some query reads; None where nothing lies in others: what nobody reads is not written."""
    each = [readable_scopes(query, memory.system.scopes) for query in queries]
    if None in each or not each:
        return None
    union = {scope for scopes in each for scope in scopes or ()}
    return None if union.issuperset(present) else sorted(union)


def readable_documents(memory: Memory, queries: Sequence[Query]) -> pl.DataFrame:
    readable = _readable(memory, queries, memory.documents["scope"])
    return memory.documents if readable is None else memory.documents.filter(pl.col("scope").is_in(readable))


def _documents(memory: Memory, queries: Sequence[Query]) -> pl.DataFrame:
    documents = readable_documents(memory, queries)
    parts = documents["text"].to_frame().iter_slices(_TEXTS_AT_ONCE)
    counts = [pl.Series("tokens", REPORT_TOKENS.count(part["text"].to_list()), dtype=pl.Int64) for part in parts]
    tokens = pl.concat([pl.Series("tokens", [], dtype=pl.Int64), *counts])
    columns = ("document_id", "source_message_ids", "kind", "is_durable", "session_id")
    return documents.select(*columns).with_columns(tokens)


def _decisions(memory: Memory, queries: Sequence[Query]) -> pl.DataFrame:
    decisions = memory.store.decisions()
    readable = _readable(memory, queries, decisions["scope"])
    return decisions if readable is None else memory.store.decisions(readable)


def _widths(memory: Memory, _: Sequence[Query]) -> pl.DataFrame:
    return pl.DataFrame({"width": pl.Series(getattr(memory.live.indexes.vector_index, "widths", ()), dtype=pl.Int64)})


def large_files(memory: Memory, _: Sequence[Query]) -> pl.DataFrame:
    """How many texts were taken out of their contexts: the one row of the one column."""
    with memory.store.reading() as connection:
        return pl.DataFrame({"large_files": [census(connection)["large files"]]})


FACTS: Mapping[str, Fact] = {
    "documents": _documents,
    "decisions": _decisions,
    "widths": _widths,
    "large_files": large_files,
}
"""By name; what is asked of the dataset too is the evaluator's own."""
