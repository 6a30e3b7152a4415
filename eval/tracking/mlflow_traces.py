"""Retrievals as MLflow traces: a question is a trace, every step of its ranking a RETRIEVER span with its documents."""

from collections.abc import Iterable
from typing import Any

from eval.ladder.losses import FOUND, Retrieval, RetrievedDocument
from lcm.redaction import redacted

_QUERY = "lcm.query_id"
"""The tag by which a trace of a run is known again."""


def log_retrievals(uri: str, run_id: str, retrievals: Iterable[Retrieval]) -> int:
    """Log retrievals as traces of a run, those that it has already left out; returns how many it has then.

    Where traces go is a setting of the whole process: this is for a process of its own.
    """
    import mlflow
    from mlflow.tracking import MlflowClient

    mlflow.set_tracking_uri(uri)
    client = MlflowClient(tracking_uri=uri)
    experiment_id = client.get_run(run_id).info.experiment_id
    there = {trace.info.tags.get(_QUERY) for trace in _of_run(client, experiment_id, run_id)}
    for one in retrievals:
        if one.query_id not in there:
            _log(client, experiment_id, run_id, one)
            there.add(one.query_id)
    mlflow.flush_trace_async_logging()
    return len(there)


def _of_run(client: Any, experiment_id: str, run_id: str) -> Iterable[Any]:
    token = None
    while True:
        found = client.search_traces(
            locations=[experiment_id], run_id=run_id, include_spans=False, max_results=500, page_token=token
        )
        yield from found
        token = found.token
        if not token:
            return


def _log(client: Any, experiment_id: str, run_id: str, one: Retrieval) -> None:
    from mlflow.entities import SpanType

    missed = sorted({place for place in one.places.values() if place != FOUND})
    asked = {"query": redacted(one.text)}
    root = client.start_trace(
        name=one.query_id,
        span_type=SpanType.RETRIEVER,
        inputs=asked,
        attributes={"places": one.places, "workspace_id": one.workspace_id},
        tags={_QUERY: one.query_id, "category": one.category, "missed": ", ".join(missed) or "nothing"},
        experiment_id=experiment_id,
        run_id=run_id,
    )
    outputs: list[dict[str, Any]] = []
    for number, (stage, documents) in enumerate(one.steps):
        outputs = [_document(document) for document in documents]
        span = client.start_span(
            name=stage,
            trace_id=root.trace_id,
            parent_id=root.span_id,
            span_type=SpanType.RETRIEVER,
            inputs=asked,
            attributes={"step": number},
        )
        client.end_span(root.trace_id, span.span_id, outputs=outputs)
    client.end_trace(root.trace_id, outputs=outputs)


def _document(one: RetrievedDocument) -> dict[str, Any]:
    from mlflow.entities import Document

    told = {**one._asdict(), "is_gold": bool(one.messages), "messages": list(one.messages)}
    text = redacted(told.pop("text"))
    found: dict[str, Any] = Document(page_content=text, metadata=told, id=one.document_id).to_dict()
    return found
