"""A pool: what several rankings found first, to be judged without knowing which of them found it."""

import hashlib
from collections.abc import Iterable, Sequence

import polars as pl

POOL_SCHEMA: dict[str, pl.DataType] = {"query_id": pl.String(), "document_id": pl.String()}


def pooled(rankings: Iterable[pl.DataFrame], depth: int, queries: Sequence[str]) -> pl.DataFrame:
    """Rows of `POOL_SCHEMA`: the first documents of every ranking, each once a query.

    Queries stand in their order, and the documents of each in one that depends on their ids alone: neither which
    ranking found a document nor at which rank shows in it, and a pool that grows keeps the order of what it held.

    Args:
        rankings: columns query_id, document_id, rank.
        depth: how many documents of each ranking.
    """
    place = {query: number for number, query in enumerate(queries)}
    pairs = {
        pair
        for ranking in rankings
        for pair in ranking.filter(pl.col("rank") <= depth).select("query_id", "document_id").iter_rows()
        if pair[0] in place
    }
    rows = sorted(pairs, key=lambda pair: (place[pair[0]], _shuffled(*pair)))
    return pl.DataFrame(rows, schema=POOL_SCHEMA, orient="row")


def _shuffled(query_id: str, document_id: str) -> bytes:
    return hashlib.sha256(f"{query_id}\x00{document_id}".encode("utf-8", "surrogatepass")).digest()
