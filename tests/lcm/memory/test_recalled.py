"""Answers of a ranking as an assembly takes them."""

import polars as pl

from lcm.memory.recalled import recalled_by_query
from lcm.store.documents import DOCUMENT_SCHEMA
from tests.lcm.context.assembly.recorded import NOW


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
    marks = {"cosine": 0.5, "scope_class": "durable", "index_tier": None, "is_recovered": False}
    ranked = pl.DataFrame({"query_id": "q", "document_id": kinds, "score": 0.5}).with_columns(
        pl.lit(value).alias(name) for name, value in marks.items()
    )
    found = recalled_by_query(ranked, documents)["q"]
    assert [(one.kind, one.role) for one in found] == [("message", "assistant"), ("guidance", "user"), ("summary", "")]
