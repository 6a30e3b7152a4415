"""Answers of a ranking as an assembly takes them."""

from dataclasses import replace
from pathlib import Path

import polars as pl

from lcm.context.assembly.lossless import Lossless
from lcm.memory.memory import Memory, recalled_by_query
from lcm.protocols.context import ContextRequest
from lcm.records.query import Query
from lcm.retrieval.ranking.pipeline import RANKED_SCHEMA
from lcm.store.documents import DOCUMENT_SCHEMA
from lcm.store.store import Store
from lcm.token_estimator import Utf16Units
from tests.lcm.context.assembly.recorded import NOW
from tests.support.workspaces import minute, system, transcript


def ranking_of(ids: list[str], related: dict[str, list[str]] | None = None, query_id: str = "q") -> pl.DataFrame:
    """An answer that names documents, with the ids of what is related to some."""
    rows = [
        {
            "query_id": query_id,
            "document_id": document_id,
            "score": 0.5,
            "cosine": 0.5,
            "scope_class": "durable",
            "is_recovered": False,
            "related": [{"document_id": other, "score": 0.5} for other in (related or {}).get(document_id, [])],
        }
        for document_id in ids
    ]
    return pl.DataFrame(rows, schema=RANKED_SCHEMA)


def documents_of(texts: dict[str, str]) -> pl.DataFrame:
    documents = pl.DataFrame({"document_id": list(texts), "text": list(texts.values())})
    return documents.match_to_schema(DOCUMENT_SCHEMA, missing_columns="insert").with_columns(
        kind=pl.lit("message"), source_message_ids=pl.lit([], pl.List(pl.String)), created_at=pl.lit(NOW)
    )


def test_what_is_related_is_cut_and_shown_with_the_best_answer_alone() -> None:
    long = "x" * 79 + "😀 and more"
    documents = documents_of({"first": "one", "second": "two", "long": long, "short": "three"})
    ranked = pl.concat(
        [
            ranking_of(["first", "second"], {"first": ["long"], "second": ["long", "short"]}),
            ranking_of(["second"], {"second": ["long"]}, "r"),
        ]
    )
    found = recalled_by_query(ranked, documents)
    assert [one.text_with_related for one in found["q"]] == [f"one\nRelated: {'x' * 79}", "two\nRelated: three"]
    assert [one.related for one in found["r"]] == [("x" * 79,)]


def test_a_document_comes_with_its_tokens_as_they_were_counted() -> None:
    documents = documents_of({"counted": "one", "not": "two"}).with_columns(tokens=pl.Series([7, 0]))
    found = recalled_by_query(ranking_of(["not", "counted"]), documents)["q"]
    assert [(one.document_id, one.tokens) for one in found] == [("not", 0), ("counted", 7)]


def test_beginnings_stand_side_by_side_and_an_answer_without_any_is_its_text() -> None:
    documents = documents_of({"first": "one", "second": "two", "other": "three", "another": "four"})
    found = recalled_by_query(ranking_of(["first", "second"], {"first": ["other", "another"]}), documents)["q"]
    assert [one.text_with_related for one in found] == ["one\nRelated: three | four", "two"]


def test_what_nobody_said_has_no_role_though_its_first_source_has() -> None:
    kinds = ["message", "guidance", "summary"]
    documents = pl.DataFrame(
        {
            "document_id": kinds,
            "text": kinds,
            "kind": kinds,
            "role": ["assistant", "user", "user"],
            "source_message_ids": [["m"]] * 3,
            "created_at": [NOW] * 3,
        },
        schema_overrides={"created_at": pl.Datetime("ms", "UTC")},
    ).match_to_schema(DOCUMENT_SCHEMA, missing_columns="insert", integer_cast="upcast")
    ranked = ranking_of(kinds)
    found = recalled_by_query(ranked, documents)["q"]
    assert [(one.kind, one.role) for one in found] == [("message", "assistant"), ("guidance", "user"), ("summary", "")]


def test_a_context_quotes_what_users_and_assistants_said_of_a_name_newest_first(tmp_path: Path) -> None:
    lines = ("MAX_RETRIES is 3.", "MAX_RETRIES is 5 now.", "MAX_RETRIES of a tool", "no matter " * 40, "go on")
    assembly = Lossless(Utf16Units(), fresh_tail_count=1, eviction="chronological", looked_up_names=4)
    said = transcript(lines)
    said = replace(said, messages=tuple(replace(m, role="tool") if "tool" in m.content else m for m in said.messages))
    with Memory(system(assembly=assembly), Store(tmp_path / "lcm.sqlite")) as memory:
        memory.ingest(said)
        asked = [ContextRequest(40, "MAX_RETRIES?"), ContextRequest(40, "and?")]
        quoting, other = memory.assemble("talk", asked)
        assert quoting.items[0].source_message_ids == ("talk:1",)
        assert len(quoting.items) == len(other.items) + 1
        query = Query("q", "MAX_RETRIES?", minute(9), conversation_id="talk")
        assert memory.context(query, 40).items[0] == quoting.items[0]
