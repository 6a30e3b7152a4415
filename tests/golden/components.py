"""What adapters need: components as the configuration instantiates them, and a batch that only knows ids."""

from datetime import datetime, timedelta
from functools import cache
from typing import Any

import numpy as np
import polars as pl

from lcm.clock import EPOCH
from lcm.protocols.retrieval import Batch
from lcm.store.documents import DOCUMENT_SCHEMA
from pipelines.config import building, composition
from pipelines.config.conf_folder import EVALUATE


@cache
def component(override: str, key: str, *settings: str, pipeline: str = EVALUATE) -> Any:
    return building.build(composition.composed([override, *settings], pipeline), key)


def fields_of(one: Any, names: str) -> dict[str, Any]:
    """What an object says under the names of the vectors: `theirs=ours`, or one name for both."""
    pairs = [name.partition("=") for name in names.split()]
    return {theirs: getattr(one, ours or theirs) for theirs, _, ours in pairs}


def instant(ms: float) -> datetime:
    return EPOCH + timedelta(milliseconds=ms)


def milliseconds(at: datetime) -> int:
    return (at - EPOCH) // timedelta(milliseconds=1)


def asking(text: str, now_ms: float, session_id: str | None = None, caller: str = "auto") -> pl.DataFrame:
    """The queries of a batch: one."""
    return pl.DataFrame(
        {
            "query_id": ["q"],
            "text": [text],
            "asked_at": pl.Series([int(now_ms)], dtype=pl.Int64).cast(pl.Datetime("ms", "UTC")),
            "session_id": pl.Series([session_id], dtype=pl.String),
            "conversation_id": pl.Series([session_id], dtype=pl.String),
            "caller": [caller],
        }
    )


def documents_batch(document_ids: list[str]) -> Batch:
    return Batch(
        queries=asking("", 0),
        vectors=np.empty((1, 0), dtype=np.float32),
        documents=pl.DataFrame({"document_id": document_ids}).match_to_schema(
            DOCUMENT_SCHEMA, missing_columns="insert"
        ),
        allowed=None,
        vector_index=None,  # type: ignore[arg-type]
        text_index=None,  # type: ignore[arg-type]
        document_vectors=lambda ids: np.empty((len(ids), 0), dtype=np.float32),
    )
