"""The whole query inside a text: what is left to look for where no word was found."""

from collections.abc import Sequence

import polars as pl

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
    found = [rows.with_columns(contained=pl.lit(None, pl.Float64))]
    wanted = [(position, text.strip().lower()) for position, text in queries]
    if any(text for _, text in wanted):
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
