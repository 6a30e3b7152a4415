"""Candidates from the text index alone."""

import logging
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import polars as pl

from lcm.checks import check_range
from lcm.errors import LcmError
from lcm.faults import is_of_machine
from lcm.protocols.retrieval import Batch, Raw, TextIndexChoice
from lcm.retrieval.frames import beside
from lcm.retrieval.source.candidates import branch, merge
from lcm.retrieval.source.own_indexes import with_words_in
from lcm.retrieval.source.query_expansion import QueryExpansion

_log = logging.getLogger(__name__)

FAILURES = (LcmError, sqlite3.Error, OSError, RuntimeError)
"""What a broken index or model raises; anything else is a mistake in the program."""


@dataclass(frozen=True, slots=True)
class Lexical:
    """The `pool_size` best documents by BM25."""

    pool_size: int = 1000
    expansion: QueryExpansion | None = None
    """Adds words to the query; None = the query as it is."""
    containment: bool = False
    """Where no word is found, look for the whole query inside the texts."""
    text_index: TextIndexChoice | None = None
    """What is asked; None = the index of the memory."""
    needs_vectors = False
    gives: ClassVar[Raw] = "bm25"

    def __post_init__(self) -> None:
        check_range(self, "pool_size", ge=1)

    @property
    def asks(self) -> tuple[str, ...]:
        return () if self.text_index is not None else ("text_index",)

    def candidates(self, batch: Batch) -> pl.DataFrame:
        if self.text_index is not None:
            batch = with_words_in(self.text_index, batch)
        lexical = lexical_branch(batch, self.pool_size, self.expansion, self.containment)
        return merge(branch([], "cosine", "dense_rank"), lexical, batch)


def lexical_branch(
    batch: Batch, pool_size: int, expansion: QueryExpansion | None = None, containment: bool = False
) -> pl.DataFrame:
    """Rows query (its position), document_id, bm25, lexical_rank; with `containment` also contained.

    With `containment` substrings also answer for an index that fails: logged and counted.

    Raises:
        LcmError: if the index fails, and nothing answers for it.
    """
    texts: Sequence[str] = batch.queries["text"].to_list()
    if expansion is not None:
        texts = [expansion.expand(text, caller) for text, caller in zip(texts, batch.queries["caller"], strict=True)]
    try:
        answers = batch.text_index.search(texts, pool_size, batch.allowed)
    except FAILURES as error:
        if is_of_machine(error):
            raise
        if not containment:
            raise LcmError(f"the text index failed: {error}") from error
        _log.warning("the text index failed, substrings answer for it: %s", error)
        batch.incidents["text index failed"] += len(texts)
        answers = [([], [])] * len(texts)
    rows = branch(answers, "bm25", "lexical_rank")
    if not containment:
        return rows
    silent = [position for position, (ids, _) in enumerate(answers) if not ids]
    return with_containment(rows, [(position, texts[position]) for position in silent], batch.documents, pool_size)


_FIELDS = {"text": 1.0, "overview": 0.92, "content": 0.96}
"""What a hit in each field is worth. The abstract of a document is its text, which is worth more."""
_FLOOR, _A_CHARACTER, _CEILING = 0.72, 0.02, 0.95


def with_containment(
    rows: pl.DataFrame, queries: Sequence[tuple[int, str]], documents: pl.DataFrame, pool_size: int
) -> pl.DataFrame:
    """Add the rows of queries that no word answered, the best first, newer ones before older ones.

    min(0.95, 0.72 + 0.02 * characters of the query) times what the field is worth, the best of its fields. Texts are
    compared trimmed and in lower case; characters are UTF-16 code units.

    Args:
        rows: query, document_id, bm25, lexical_rank.
        queries: positions and texts.
        documents: the visible ones.
        pool_size: rows a query at most.
    Source: memory-lancedb-pro, lexical fallback.
    """
    found = [beside(rows, [pl.Series("contained", [None], pl.Float64).new_from_index(0, len(rows))])]
    wanted = [(position, text.strip().lower()) for position, text in queries]
    if not any(text for _, text in wanted):
        return found[0]
    lowered = documents.select(
        "document_id", "created_at", *(pl.col(name).str.strip_chars().str.to_lowercase() for name in _FIELDS)
    )
    found += [
        _contained(lowered, text, pool_size).with_columns(query=pl.lit(position, pl.UInt32))
        for position, text in wanted
        if text
    ]
    return pl.concat(found, how="diagonal").sort("query", maintain_order=True)


def _contained(lowered: pl.DataFrame, query: str, pool_size: int) -> pl.DataFrame:
    value = min(_CEILING, _FLOOR + _A_CHARACTER * (len(query.encode("utf-16-le", "surrogatepass")) // 2))
    worth = [
        pl.when(pl.col(name).str.contains(query, literal=True)).then(value * weight).otherwise(0.0)
        for name, weight in _FIELDS.items()
    ]
    return (
        lowered.select("document_id", "created_at", contained=pl.max_horizontal(worth))
        .filter(pl.col("contained") > 0)
        .sort("contained", "created_at", descending=True, maintain_order=True)
        .head(pool_size)
        .select("document_id", "contained", lexical_rank=pl.int_range(1, pl.len() + 1))
    )
