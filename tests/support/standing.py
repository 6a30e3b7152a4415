"""Which documents stand, asked of the tables themselves: what live documents are compared with."""

import json
from collections.abc import Sequence
from datetime import datetime

import polars as pl

from lcm.clock import format_instant
from lcm.store.store import Store

_STANDING = """
SELECT document_id FROM documents
WHERE (:scopes IS NULL OR scope IN (SELECT value FROM json_each(:scopes)))
  AND (:at IS NULL OR coalesce(valid_from, created_at) <= :at AND (invalidated_at IS NULL OR invalidated_at > :at))
"""


def standing_documents(store: Store, scopes: Sequence[str] | None = None, at: datetime | None = None) -> pl.DataFrame:
    """The documents of these scopes, None = all, that stood then; of no instant, those that have ended too."""
    values = {"scopes": None if scopes is None else json.dumps(list(scopes)), "at": at and format_instant(at)}
    with store.reading() as connection:
        ids = [document_id for (document_id,) in connection.execute(_STANDING, values)]
    return store.documents(ids)
