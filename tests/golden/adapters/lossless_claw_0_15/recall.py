"""Vectors of search of lossless-claw 0.15.3 onto our components."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from lcm.clock import parse_instant
from lcm.records.conversation import Message, Transcript
from lcm.records.summary import Summary
from lcm.store.store import Store
from lcm.store.summaries import insert_summary
from lcm.token_estimator import Utf16Units
from tests.golden.components import component

_NOW = parse_instant("2026-03-01T12:00:00Z")
_TOKENS = Utf16Units()


def grep_sort(case: dict[str, Any]) -> dict[str, Any]:
    recall = component("recall=lossless_claw_0_15", "recall", pipeline="recall")
    order = {"recency": "time", "relevance": "relevance", "hybrid": "hybrid"}.get(case.get("sort"), recall.order)
    with Store() as store:
        _fill(store, case["documents"], case["kind"])
        found = (
            replace(recall, order=order)
            .on(store)
            .grep(
                case["query"],
                mode=case["mode"],
                scope=case["kind"],
                limit=case.get("limit"),
                now=_NOW,
            )
        )
    hits = found.summaries or found.messages
    places = [int(hit.summary_id if case["kind"] == "summaries" else hit.message_id) for hit in hits]
    return {"hits": places, "snippets": [hit.snippet for hit in hits], "total_matches": found.total}


def _fill(store: Store, documents: list[dict[str, Any]], kind: str) -> None:
    """The documents as messages, or as leaf summaries of a conversation in which nothing else was said."""
    dated = [
        (str(place), one["content"], _NOW - timedelta(hours=one["age_hours"])) for place, one in enumerate(documents)
    ]
    said = [Message(name, "user", text, "session", at) for name, text, at in dated] if kind == "messages" else []
    store.ingest(Transcript("talk", tuple(said) or (Message("first", "user", "", "session", _NOW),)), _TOKENS)
    if kind == "summaries":
        with store.writing() as connection:
            for name, text, at in dated:
                insert_summary(connection, 1, Summary(name, "talk", "leaf", 0, text, 1, at))
