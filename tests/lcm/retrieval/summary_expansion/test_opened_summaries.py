"""What lies beneath the summaries of an answer."""

from dataclasses import replace

import polars as pl

from lcm.clock import EPOCH
from lcm.protocols.retrieval import Batch
from lcm.retrieval.source.indexes import branch, describe, merge
from lcm.retrieval.summary_expansion import OpenedSummaries, SummaryExpansion
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
            "is_durable": [True] * len(SOURCES),
            "created_at": [EPOCH] * len(SOURCES),
        },
        schema_overrides={"created_at": DOCUMENT_SCHEMA["created_at"]},
    )
    return replace(documents_batch([]), documents=documents.match_to_schema(DOCUMENT_SCHEMA, missing_columns="insert"))


def opened(scores: dict[str, float], policy: SummaryExpansion, batch: Batch | None = None) -> dict[str, float]:
    batch = batch or workspace()
    found = branch([(list(scores), list(scores.values()))], "cosine", "dense_rank")
    rows = merge(batch, found).with_columns(score="cosine")
    frame = describe(rows, batch)
    after = OpenedSummaries(policy).expand(frame, batch)
    assert after.schema == frame.schema
    assert not after.select("query_id", "document_id").is_duplicated().any()
    return dict(after.select("document_id", "score").iter_rows())


def test_a_summary_brings_what_was_said_beneath_it_for_a_share_of_its_score() -> None:
    share = 0.8 * 0.85
    batch = workspace()
    kinds = pl.col("kind").replace("message", "exchange")
    for around in (batch, replace(batch, documents=batch.documents.with_columns(kinds))):
        found = opened({"low": 0.8, "vague": 0.6, "c": 0.5}, SummaryExpansion(), around)
        assert found == {"low": 0.8, "a": share, "b": share, "vague": 0.6, "c": 0.5}
    assert opened({"low": 0.8, "a": 0.9}, SummaryExpansion(token_budget=100))["a"] == 0.9  # a row stays as it is
    assert set(opened({"low": 0.8}, SummaryExpansion(token_budget=15))) == {"low", "a"}  # what fits


def test_one_level_down_summaries_stay_closed() -> None:
    assert set(opened({"high": 0.8}, SummaryExpansion(depth=1))) == {"high", "low", "vague"}
    assert set(opened({"high": 0.8}, SummaryExpansion(depth=2))) == {"high", "a", "b", "c"}


def test_what_lies_beneath_two_summaries_comes_with_the_better_one_alone() -> None:
    found = opened({"high": 0.8, "low": 0.6}, SummaryExpansion(depth=9))
    assert found == {"high": 0.8, "a": 0.8 * 0.85, "b": 0.8 * 0.85, "c": 0.8 * 0.85, "low": 0.6}


def test_what_is_hidden_behind_a_summary_lies_beneath_it_too() -> None:
    batch = workspace()
    is_said = pl.col("kind") == "message"
    hidden = replace(batch, documents=batch.documents.filter(~is_said), turns=batch.documents.filter(is_said))
    assert opened({"low": 0.8}, SummaryExpansion(), hidden) == opened({"low": 0.8}, SummaryExpansion())
    assert set(opened({"low": 0.8}, SummaryExpansion(), hidden)) == {"low", "a", "b"}


def test_what_another_session_said_and_only_it_may_find_stays_hidden() -> None:
    batch = workspace()
    is_said = pl.col("kind") == "message"
    turns = batch.documents.filter(is_said).with_columns(
        is_durable=pl.col("document_id") == "a", session_id=pl.lit("there"), conversation_id=pl.lit("talk")
    )
    for asker, expected in (({"session_id": "there"}, {"low", "a", "b"}), ({"session_id": "here"}, {"low", "a"})):
        queries = batch.queries.with_columns(session_id=pl.lit(asker["session_id"]))
        hidden = replace(batch, queries=queries, documents=batch.documents.filter(~is_said), turns=turns)
        assert set(opened({"low": 0.8}, SummaryExpansion(), hidden)) == expected


def test_each_query_opens_its_own_summaries_and_a_vague_one_stays_closed() -> None:
    batch = workspace()
    batch = replace(batch, queries=pl.concat([batch.queries, batch.queries.with_columns(query_id=pl.lit("again"))]))
    for name, beneath in (("low", ["low", "a", "b"]), ("vague", ["vague"])):
        found = branch([([name], [0.8])] * 2, "cosine", "dense_rank")
        rows = merge(batch, found).with_columns(score="cosine")
        after = OpenedSummaries(SummaryExpansion()).expand(describe(rows, batch), batch)
        assert after.select("query_id", "document_id").rows() == [(q, one) for q in ("q", "again") for one in beneath]
