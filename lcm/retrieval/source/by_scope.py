"""Candidates from the vector index, so many of each scope class."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import polars as pl

from lcm.checks import check_range
from lcm.protocols.contract import Contract
from lcm.protocols.retrieval import Batch, Raw
from lcm.retrieval.frames import KeptBeside, beside
from lcm.retrieval.source.indexes import branch, dense_branch, merge
from lcm.writing.dream import asks_for_dreams

_POOLS = ("session", "guidance", "durable", "global", "authored", "dream")
_POOLED_BY_KIND = ("guidance", "authored", "dream")
"""Kinds of documents that are no part of the pools of scope classes."""
_KEYS = ["query", "document_id"]
_Asker = tuple[bool, str | None, str | None, bool]
"""Whether it asks for dreams, and there are some; its session and conversation; whether nobody reads by scopes."""
_MOST_ASKERS = 16
"""Whose pools are kept: live queries come from the same session, one after another."""


@dataclass(frozen=True, slots=True)
class ByScope:
    """The nearest documents by cosine of each pool, in this order: the asker's own session, guidance, what its user
    said elsewhere, what everybody shares, authored documents.

    A query about dreams is answered by dreams alone, where there are any, and no other query by a dream. A size is the
    documents of a pool for each query; null: all of it.

    Source: libravdb memory 1.4.4, whose sizes are topK (8), 2 topK, topK / 2, topK / 4, 2 topK, and topK dreams.
    """

    session_pool_size: int | None = 1000
    guidance_pool_size: int | None = 1000
    durable_pool_size: int | None = 1000
    global_pool_size: int | None = 1000
    authored_pool_size: int | None = 1000
    dream_pool_size: int | None = 1000
    gives: ClassVar[Raw] = "cosine"
    contract = Contract(asks=("vector_index",), needs_vectors=True)

    def __post_init__(self) -> None:
        sizes = [getattr(self, f"{name}_pool_size") for name in _POOLS]
        check_range(self, *(f"{name}_pool_size" for name in _POOLS), ge=0, or_null=True)
        if not any(size is None or size for size in sizes):
            raise ValueError("the pool sizes must not all be 0: raise one")

    def candidates(self, batch: Batch) -> pl.DataFrame:
        if batch.embedding_error is not None:
            raise batch.embedding_error
        found = []
        for asker, positions in _askers(batch):
            for name, document_ids in _pools_of(batch, asker).items():
                size = getattr(self, f"{name}_pool_size")
                size = len(document_ids) if size is None else min(size, len(document_ids))
                if size:
                    found.append(_nearest(batch, positions, document_ids, size))
        return merge(batch, pooled(found))


def pooled(pools: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """One after another; of a document that several pools have found, the first row stays.

    Args:
        pools: columns query (its position), document_id, cosine, dense_rank, the last of which is counted anew.
    """
    if not pools:
        return branch([], "cosine", "dense_rank")
    rows = pl.concat(pools, rechunk=True)
    rows = rows.unique(_KEYS, keep="first", maintain_order=True)
    place = pl.col("cosine").rank("ordinal", descending=True).over("query")
    return rows.with_columns(dense_rank=place.cast(pl.Int64))


def _askers(batch: Batch) -> Iterator[tuple[_Asker, pl.Series]]:
    """Who sees the same pools, and the positions of their queries in the batch."""
    has_dreams = bool((batch.documents["kind"] == "dream").any())
    groups: dict[_Asker, list[int]] = {}
    asked = batch.queries.select("text", "session_id", "conversation_id").iter_rows()
    for position, (text, session_id, conversation_id) in enumerate(asked):
        asker = has_dreams and asks_for_dreams(text), session_id, conversation_id, batch.scopes is None
        groups.setdefault(asker, []).append(position)
    for asker, positions in groups.items():
        yield asker, pl.Series(positions, dtype=pl.UInt32)


def _pools_of(batch: Batch, asker: _Asker) -> dict[str, tuple[str, ...]]:
    """Pool -> the ids in it, of those that the asker may see; found once for who sees the same documents."""
    known = _known_pools(batch.documents)
    if asker not in known:
        if len(known) >= _MOST_ASKERS:
            known.clear()
        known[asker] = {name: tuple(_ids(batch, is_in)) for name, is_in in _pools(batch, asker)}
    return known[asker]


_known_pools: KeptBeside[pl.DataFrame, dict[_Asker, dict[str, tuple[str, ...]]]] = KeptBeside(lambda _: {}, 4)


def _pools(batch: Batch, asker: _Asker) -> Iterator[tuple[str, pl.Expr]]:
    """The name of each pool that the asker may see, and which documents are in it."""
    asks_for_a_dream, session_id, conversation_id, _ = asker
    kind, is_own = pl.col("kind"), pl.lit(value=False)
    if asks_for_a_dream:
        yield "dream", kind == "dream"
        return
    if session_id is not None:
        is_own = pl.col("session_id") == session_id
    elif conversation_id is not None:
        is_own = pl.col("conversation_id") == conversation_id
    is_ordinary = ~kind.is_in(_POOLED_BY_KIND)
    yield "session", is_ordinary & is_own
    yield "guidance", kind == "guidance"
    yield "durable", is_ordinary & ~is_own & ~batch.is_shared
    yield "global", is_ordinary & ~is_own & batch.is_shared
    yield "authored", kind == "authored"


def _ids(batch: Batch, is_in: pl.Expr) -> list[str]:
    return batch.documents.filter(is_in)["document_id"].to_list()


def _nearest(batch: Batch, positions: pl.Series, document_ids: tuple[str, ...], size: int) -> pl.DataFrame:
    """The nearest of some documents to some queries of the batch, as `dense_branch` gives them."""
    everything = len(document_ids) == len(batch.documents)
    part = replace(
        batch, vectors=batch.vectors[positions.to_numpy()], allowed=batch.allowed if everything else document_ids
    )
    rows = dense_branch(part, size)
    return beside(rows, [positions[rows["query"]].alias("query")])
