"""Answers of a ranking as an assembly takes them."""

import polars as pl

from lcm.memory.recalled import recalled_by_query
from lcm.retrieval.ranking.pipeline import RANKED_SCHEMA
from lcm.store.documents import DOCUMENT_SCHEMA
from tests.lcm.context.assembly.recorded import NOW


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
