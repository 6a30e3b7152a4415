"""Candidates from the vector index, so many of each scope class."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import polars as pl

from lcm.checks import check_range
from lcm.protocols.retrieval import Batch, Raw
from lcm.retrieval.frames import beside
from lcm.retrieval.lookup import KeptBeside
from lcm.retrieval.source.candidates import branch, merge
from lcm.retrieval.source.dense import dense_branch
from lcm.writing.dream import asks_for_dreams

_POOLS = ("session", "guidance", "durable", "global", "authored", "dream")
_POOLED_BY_KIND = ("guidance", "authored", "dream")
"""Kinds of documents that are no part of the pools of scope classes."""
_KEYS = ["query", "document_id"]
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
    needs_vectors = True
    gives: ClassVar[Raw] = "cosine"
    asks = ("vector_index",)

    def __post_init__(self) -> None:
        sizes = [getattr(self, f"{name}_pool_size") for name in _POOLS]
        check_range(self, *(f"{name}_pool_size" for name in _POOLS), ge=0, or_null=True)
        if not any(size is None or size for size in sizes):
            raise ValueError("the pool sizes must not all be 0: raise one")

    def candidates(self, batch: Batch) -> pl.DataFrame:
        if batch.embedding_error is not None:
            raise batch.embedding_error
        pools = [
            _nearest(batch, asker.positions, document_ids, getattr(self, f"{name}_pool_size"))
            for asker in _askers(batch)
            for name, document_ids in _pools_of(batch, asker).items()
        ]
        return merge(pooled([pool for pool in pools if pool is not None]), branch([], "bm25", "lexical_rank"), batch)


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


@dataclass(frozen=True, slots=True)
class _QueryGroup:
    """Queries that see the same pools."""

    positions: pl.Series
    """Of the queries in their batch."""
    dreams: bool
    """They ask for dreams, and there are some."""
    session_id: str | None
    conversation_id: str | None


def _askers(batch: Batch) -> Iterator[_QueryGroup]:
    has_dreams = bool((batch.documents["kind"] == "dream").any())
    groups: dict[tuple[bool, str | None, str | None], list[int]] = {}
    asked = batch.queries.select("text", "session_id", "conversation_id").iter_rows()
    for position, (text, session_id, conversation_id) in enumerate(asked):
        dreams = has_dreams and asks_for_dreams(text)
        groups.setdefault((dreams, session_id, conversation_id), []).append(position)
    for (dreams, session_id, conversation_id), positions in groups.items():
        yield _QueryGroup(pl.Series(positions, dtype=pl.UInt32), dreams, session_id, conversation_id)


def _pools_of(batch: Batch, asker: _QueryGroup) -> dict[str, tuple[str, ...]]:
    """Pool -> the ids in it, of those that the asker may see; found once for who sees the same documents."""
    known = _known_pools(batch.documents)
    key = asker.dreams, asker.session_id, asker.conversation_id, batch.scopes is None
    if key not in known:
        if len(known) >= _MOST_ASKERS:
            known.clear()
        known[key] = {name: tuple(ids) for name, ids in _pools(batch, asker)}
    return known[key]


_Asker = tuple[bool, str | None, str | None, bool]
_known_pools: KeptBeside[pl.DataFrame, dict[_Asker, dict[str, tuple[str, ...]]]] = KeptBeside(lambda _: {}, 4)


def _pools(batch: Batch, asker: _QueryGroup) -> Iterator[tuple[str, list[str]]]:
    """The name of each pool that the asker may see, and the ids in it."""
    kind = pl.col("kind")
    if asker.dreams:
        yield "dream", _ids(batch, kind == "dream")
        return
    if asker.session_id is not None:
        is_own = pl.col("session_id") == asker.session_id
    elif asker.conversation_id is not None:
        is_own = pl.col("conversation_id") == asker.conversation_id
    else:
        is_own = pl.lit(False)
    is_shared = batch.is_shared
    is_ordinary = ~kind.is_in(_POOLED_BY_KIND)
    yield "session", _ids(batch, is_ordinary & is_own)
    yield "guidance", _ids(batch, kind == "guidance")
    yield "durable", _ids(batch, is_ordinary & ~is_own & ~is_shared)
    yield "global", _ids(batch, is_ordinary & ~is_own & is_shared)
    yield "authored", _ids(batch, kind == "authored")


def _ids(batch: Batch, is_in: pl.Expr) -> list[str]:
    return batch.documents.filter(is_in)["document_id"].to_list()


def _nearest(
    batch: Batch, positions: pl.Series, document_ids: tuple[str, ...], size: int | None
) -> pl.DataFrame | None:
    """The nearest of some documents to some queries of the batch, as `dense_branch` gives them; None of nothing."""
    size = len(document_ids) if size is None else min(size, len(document_ids))
    if not size:
        return None
    everything = len(document_ids) == len(batch.documents)
    part = replace(
        batch, vectors=batch.vectors[positions.to_numpy()], allowed=batch.allowed if everything else document_ids
    )
    rows = dense_branch(part, size)
    return beside(rows, [positions[rows["query"]].alias("query")])
