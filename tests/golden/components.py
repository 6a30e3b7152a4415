"""What adapters need: components as the configuration instantiates them, and a batch that only knows ids."""

from functools import cache
from typing import Any

import numpy as np
import polars as pl

from lcm.clock import EPOCH
from lcm.protocols.retrieval import Batch
from lcm.store.documents import DOCUMENT_SCHEMA
from pipelines.config import building, composition


@cache
def component(override: str, key: str, *settings: str) -> Any:
    return building.build(composition.composed([override, *settings]), key)


def documents_batch(document_ids: list[str]) -> Batch:
    return Batch(
        queries=pl.DataFrame(
            {"query_id": ["q"], "asked_at": [EPOCH], "text": [""], "session_id": [None], "conversation_id": [None]}
        ),
        vectors=np.empty((1, 0), dtype=np.float32),
        documents=pl.DataFrame({"document_id": document_ids}).match_to_schema(
            DOCUMENT_SCHEMA, missing_columns="insert"
        ),
        allowed=None,
        vector_index=None,  # type: ignore[arg-type]
        text_index=None,  # type: ignore[arg-type]
        document_vectors=lambda ids: np.empty((len(ids), 0), dtype=np.float32),
    )
