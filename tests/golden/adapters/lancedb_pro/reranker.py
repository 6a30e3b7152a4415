"""memory-lancedb-pro's reranking onto ours."""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
import polars as pl
import requests

from lcm.protocols.models import Vectors
from lcm.protocols.retrieval import Batch, Columns
from lcm.retrieval.reranker import Blend, Cosine, Remote, rerank_items
from lcm.retrieval.reranker import rerank_request as request_of
from tests.golden.adapters.lancedb_pro.fusion import number
from tests.golden.components import component, documents_batch


def rerank_cosine(case: dict[str, Any]) -> list[dict[str, Any]]:
    cosine: Cosine = component("reranker=cosine", "reranker")
    rows = _reranked(replace(cosine, window=None), case)
    return [{"id": row["document_id"], "score": row["score"]} for row in rows]


def rerank_cross_encoder(case: dict[str, Any]) -> list[dict[str, Any]]:
    remote: Remote = component("reranker=remote", "reranker")
    remote = replace(remote, window=None, provider=case["provider"])
    with (
        mock.patch.dict(os.environ, {remote.api_key_env: "key"}),
        mock.patch.object(requests, "post", _post(case["reply"])),
    ):
        rows = _reranked(remote, case)
    return [{"id": row["document_id"], "score": row["score"], "reranked": row["reranker_score"]} for row in rows]


def rerank_preservation_floor(case: dict[str, Any]) -> float:
    remote: Remote = component("reranker=remote", "reranker")
    blend: Blend = remote.blend
    returned = None if case["unreturned"] else 0.0
    row = _frame([{"id": "a", **case}]).with_columns(reranker_score=pl.lit(returned, pl.Float64))
    return float(blend.floor(Columns(row)).item())


def rerank_request(case: dict[str, Any]) -> dict[str, Any]:
    keys = ("provider", "api_key", "model", "query", "documents", "top_n")
    headers, body = request_of(*(case[key] for key in keys))
    return {"headers": headers, "body": body}


def rerank_response(case: dict[str, Any]) -> list[dict[str, Any]] | None:
    items = rerank_items(case["provider"], case["data"])
    return None if items is None else [{"index": item.index, "score": item.score} for item in items]


def _reranked(stage: Cosine | Remote, case: dict[str, Any]) -> list[dict[str, Any]]:
    frame = _frame(case["results"])
    return stage(frame, _batch(case["results"], case["query_vector"])).to_dicts()


def _frame(results: list[dict[str, Any]]) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "query_id": ["q"] * len(results),
            "document_id": [row["id"] for row in results],
            "score": [number(row["score"]) for row in results],
            "lexical_score": [None if row.get("bm25_score") is None else number(row["bm25_score"]) for row in results],
        },
        schema_overrides={
            "query_id": pl.String,
            "document_id": pl.String,
            "score": pl.Float64,
            "lexical_score": pl.Float64,
        },
    )


def _batch(results: list[dict[str, Any]], query_vector: list[float]) -> Batch:
    """Our vectors come in one array: one of another width than the query's makes all of them so."""
    vectors = {row["id"]: row["vector"] for row in results}
    width = next((len(vector) for vector in vectors.values() if len(vector) != len(query_vector)), len(query_vector))

    def document_vectors(ids: Any) -> Vectors:
        return _unit([vectors[i] if len(vectors[i]) == width else [0.0] * width for i in ids], width)

    batch = documents_batch(list(vectors))
    texts = batch.documents.with_columns(text=pl.lit("a stored text"))
    return replace(
        batch, documents=texts, vectors=_unit([query_vector], len(query_vector)), document_vectors=document_vectors
    )


def _unit(rows: list[list[float]], width: int) -> Vectors:
    """To more digits than our own vectors have, because the expected values have them."""
    vectors: Any = np.array(rows, dtype=np.float64).reshape(len(rows), width)
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(norms > 0, norms, 1)  # type: ignore[no-any-return]


def _post(reply: dict[str, Any]) -> Callable[..., requests.Response]:
    """What stands for the network."""

    def post(*_: Any, **__: Any) -> requests.Response:
        if reply["status"] == 0:
            raise requests.ConnectionError
        items = [{"index": item["index"], "relevance_score": item["score"]} for item in reply["items"]]
        body = reply.get("raw", {"results": items})
        response = requests.Response()
        response.status_code = reply["status"]
        response._content = (body if isinstance(body, str) else json.dumps(body)).encode()
        return response

    return post
