"""Candidates that carry the tags that a query names."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import ClassVar

import polars as pl

from lcm.checks import check_range
from lcm.protocols.retrieval import Batch, Raw
from lcm.retrieval.lookup import texts_of
from lcm.retrieval.source.candidates import branch, merge
from lcm.retrieval.source.lexical import lexical_branch


@dataclass(frozen=True, slots=True)
class TagPrefixes:
    """What counts as a tag: one of the prefixes, a colon, and letters, digits, _ or -; in any case, anywhere.

    Source: memory-lancedb-pro, retriever.
    """

    prefixes: Sequence[str] = field(default_factory=lambda: ["proj", "env", "team", "scope"])
    """Regular expressions; none at all means that there are no tags."""

    def __post_init__(self) -> None:
        for prefix in self.prefixes:
            try:
                re.compile(prefix)
            except re.error as err:
                raise ValueError(f"prefixes must be regular expressions, got {prefix!r}: {err}") from err

    def tags(self, text: str) -> list[str]:
        """The tags of a text, in order."""
        return [match.group() for match in _pattern(tuple(self.prefixes)).finditer(text)] if self.prefixes else []


@cache
def _pattern(prefixes: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(f"(?:{'|'.join(prefixes)}):[A-Za-z0-9_-]+", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True, slots=True)
class Tagged:
    """Of the `pool_size` best documents by BM25 those whose text holds every tag of the query, in any case.

    A query without a tag is answered as by `Lexical`.
    """

    tags: TagPrefixes = field(default_factory=TagPrefixes)
    pool_size: int = 1000
    containment: bool = False
    """Where no word is found, look for the whole query inside the texts."""
    needs_vectors = False
    gives: ClassVar[Raw] = "bm25"
    asks = ("text_index",)

    def __post_init__(self) -> None:
        check_range(self, "pool_size", ge=1)

    def candidates(self, batch: Batch) -> pl.DataFrame:
        rows = lexical_branch(batch, self.pool_size, None, self.containment)
        tags = [[tag.lower() for tag in self.tags.tags(text)] for text in batch.queries["text"]]
        carries = [
            all(tag in (text or "").lower() for tag in tags[query])
            for query, text in zip(rows["query"], texts_of(batch, rows["document_id"]).to_list(), strict=True)
        ]
        kept = rows.filter(pl.Series(carries, dtype=pl.Boolean))
        return merge(branch([], "cosine", "dense_rank"), kept, batch)
