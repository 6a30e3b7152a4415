"""Candidates from the text index alone."""

import logging
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from lcm.errors import LcmError
from lcm.protocols import Batch
from lcm.retrieval.source.candidates import branch, merge
from lcm.retrieval.source.containment import with_containment
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
    needs_vectors = False

    def __post_init__(self) -> None:
        if self.pool_size < 1:
            raise ValueError(f"pool_size must be >= 1, got {self.pool_size}")

    def candidates(self, batch: Batch) -> pl.DataFrame:
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
