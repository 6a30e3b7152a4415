"""What lies beneath the summaries of an answer."""

from dataclasses import replace

import polars as pl

from lcm.assembly.summary_expansion import SummaryExpansion
from lcm.instants import EPOCH
from lcm.protocols import Batch
from lcm.ranking.opened_summaries import OpenedSummaries
from lcm.source.candidates import branch, describe, merge
from lcm.store.documents import DOCUMENT_SCHEMA
from tests.golden.components import documents_batch

SOURCES = {"a": "1", "b": "2", "c": "3", "low": "12", "high": "123", "vague": "3"}


def workspace() -> Batch:
    is_summary = [name in ("low", "high", "vague") for name in SOURCES]
    documents = pl.DataFrame(
        {
            "document_id": list(SOURCES),
            "kind": ["summary" if one else "message" for one in is_summary],
            "source_message_ids": [list(sources) for sources in SOURCES.values()],
            "confidence": [0.1 if name == "vague" else 0.9 for name in SOURCES],
            "tokens": [10] * len(SOURCES),
            "created_at": [EPOCH] * len(SOURCES),
        },
        schema_overrides={"created_at": DOCUMENT_SCHEMA["created_at"]},
    )
    return replace(documents_batch([]), documents=documents.match_to_schema(DOCUMENT_SCHEMA, missing_columns="insert"))


def opened(scores: dict[str, float], policy: SummaryExpansion) -> dict[str, float]:
    batch = workspace()
    found = branch([(list(scores), list(scores.values()))], "cosine", "dense_rank")
    rows = merge(found, branch([], "bm25", "lexical_rank"), batch).with_columns(score="cosine")
    frame = describe(rows, batch)
    after = OpenedSummaries(policy).expand(frame, batch)
    assert after.schema == frame.schema
    return dict(after.select("document_id", "score").iter_rows())


def test_a_summary_brings_what_was_said_beneath_it_for_a_share_of_its_score() -> None:
    assert opened({"low": 0.8, "c": 0.5}, SummaryExpansion()) == {
        "low": 0.8,
        "a": 0.8 * 0.85,
        "b": 0.8 * 0.85,
        "c": 0.5,
    }


def test_a_vague_summary_stays_closed() -> None:
    assert opened({"vague": 0.8}, SummaryExpansion()) == {"vague": 0.8}


def test_one_level_down_summaries_stay_closed() -> None:
    assert set(opened({"high": 0.8}, SummaryExpansion(depth=1))) == {"high", "low", "vague"}
    assert set(opened({"high": 0.8}, SummaryExpansion(depth=2))) == {"high", "a", "b", "c"}


def test_only_what_fits_is_added() -> None:
    assert set(opened({"low": 0.8}, SummaryExpansion(token_budget=15))) == {"low", "a"}


def test_a_row_stays_as_it_is() -> None:
    assert opened({"low": 0.8, "a": 0.9}, SummaryExpansion(token_budget=100))["a"] == 0.9
