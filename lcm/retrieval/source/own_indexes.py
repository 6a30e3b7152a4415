"""Indexes that a source has for itself: derived from the documents that its queries may see, and kept while these stay.

They hold nothing but those documents, so that no score tells of later ones, nor of other scopes.
"""

import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import polars as pl

from lcm.encoding import well_formed
from lcm.protocols.models import Embedder
from lcm.protocols.retrieval import Batch, TextIndex, TextIndexChoice, VectorIndex
from lcm.retrieval.indexes import embedded, embedded_texts
from lcm.retrieval.vector_index.exact import Exact

_Index = TypeVar("_Index", VectorIndex, TextIndex)
_KEPT = 8  # indexes: live queries ask the same ones again and again
_lock = threading.Lock()
_indexes: OrderedDict[Hashable, Any] = OrderedDict()


def with_vectors_of(embedder: Embedder, batch: Batch) -> Batch:
    """The batch as if its memory had this embedder, and compared each vector with each.

    Raises:
        LcmError: if its queries or documents cannot be embedded.
    """

    def made() -> VectorIndex:
        index = Exact().build(embedder.dim, incidents=Counter())
        windows = embedded(embedder, embedded_texts(batch.documents))
        if windows:
            owners = [i for i, rows in zip(batch.documents["document_id"], windows, strict=True) for _ in rows]
            index.add(owners, np.concatenate(windows))
        return index

    index = _kept((embedder.name, _content(batch, "content")), made)
    vectors = embedder.embed([well_formed(text) for text in batch.queries["text"]], "query")
    return replace(batch, vectors=vectors, vector_index=index, allowed=None, embedding_error=None)


def with_words_in(text_index: TextIndexChoice, batch: Batch) -> Batch:
    """The batch as if its memory had this text index."""

    def made() -> TextIndex:
        index = text_index.build()
        index.add(batch.documents["document_id"].to_list(), batch.documents["text"].to_list())
        return index

    return replace(batch, text_index=_kept((repr(text_index), _content(batch)), made), allowed=None)


def _content(batch: Batch, *besides: str) -> bytes:
    """What an index is made of."""
    rows: pl.Series = batch.documents.select("document_id", "text", *besides).hash_rows()
    return rows.to_numpy().tobytes()


def _kept(key: Hashable, made: Callable[[], _Index]) -> _Index:
    with _lock:
        if key in _indexes:
            _indexes.move_to_end(key)
            return _indexes[key]  # type: ignore[no-any-return]
    index = made()
    with _lock:
        _indexes[key] = index
        while len(_indexes) > _KEPT:
            _indexes.popitem(last=False)
    return index
