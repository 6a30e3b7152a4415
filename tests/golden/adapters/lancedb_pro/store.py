"""memory-lancedb-pro's store searches: which rows may be seen is our timeline's say, scores are our stages'."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from lcm.clock import EPOCH
from lcm.javascript import clamp_int
from lcm.memory.live_documents import DocumentTimeline
from lcm.protocols.retrieval import Batch
from lcm.records.conversation import Message, Transcript
from lcm.records.document import GLOBAL_SCOPE, Document
from lcm.retrieval.ranking.stages.scores import InverseDistance, RawScore
from lcm.retrieval.ranking.stages.selection import MinScore
from lcm.retrieval.source.indexes import Dense, Lexical, describe
from lcm.store.store import Store
from lcm.token_estimator import Utf16Units
from tests.golden.adapters.lancedb_pro.pipeline import Stub
from tests.golden.adapters.lancedb_pro.ranking import parsed
from tests.golden.components import asking, component, documents_batch, instant

TALK = Transcript("talk", (Message("talk:0", "user", "said", "session", EPOCH),))


def store_vector_search(case: dict[str, Any]) -> list[dict[str, Any]]:
    rows = [{**row, "score": 1 - row["distance"]} for row in case["rows"]]
    batch = asked(case, rows, "")
    frame = describe(Dense(clamp_int(float(case["limit"]), 1, 20)).candidates(batch), batch)
    for stage in (InverseDistance(), RawScore("dense_score"), MinScore(case["min_score"])):
        frame = stage(frame, batch)
    return frame.select(id="document_id", score="score", scope="scope").to_dicts()


def store_bm25_search(case: dict[str, Any]) -> list[dict[str, Any]]:
    rows = [{**row, "score": row["raw_score"] or 0.0} for row in case["rows"]]
    batch = asked(case, rows, case["query"])
    source = Lexical(clamp_int(float(case["limit"]), 1, 20), containment=True)
    scored = component("ranking=lancedb_pro", "ranking").stages["lexical_score"](source.candidates(batch), batch)
    return scored.select(id="document_id", score="lexical_score").to_dicts()


def asked(case: dict[str, Any], rows: Sequence[dict[str, Any]], text: str) -> Batch:
    now = instant(case["now_ms"])
    with Store(opened_at=EPOCH) as store:
        store.ingest(TALK, Utf16Units())
        store.add_documents([document(row, case["now_ms"]) for row in rows])
        timeline = DocumentTimeline(store.documents())
    scopes = case["scope_filter"]
    seen = timeline.visible(now, scopes) if case["exclude_inactive"] else timeline.of(scopes)
    return replace(
        documents_batch([]),
        queries=asking(text, case["now_ms"], caller="manual"),
        documents=seen,
        allowed=seen["document_id"].to_list(),
        vector_index=Stub(rows),
        text_index=Stub(rows),
    )


def document(row: dict[str, Any], now_ms: float) -> Document:
    life = parsed(row, now_ms)
    return Document(
        document_id=row["id"],
        text=row["text"],
        source_message_ids=("talk:0",),
        conversation_id="talk",
        session_id="session",
        created_at=instant(row["timestamp_ms"]),
        scope=row["scope"] or GLOBAL_SCOPE,
        valid_from=instant(life["valid_from"]),
        invalidated_at=instant(life["invalidated_at"]) if life.get("invalidated_at") else None,
    )
