"""Answers of a ranking as an assembly takes them."""

from dataclasses import replace
from pathlib import Path

import polars as pl

from lcm.context.assembly.lossless import Lossless
from lcm.memory.memory import Memory
from lcm.memory.recalled import recalled_by_query
from lcm.protocols.context import ContextRequest
from lcm.records.query import Query
from lcm.store.documents import DOCUMENT_SCHEMA
from lcm.store.store import Store
from lcm.token_estimator.utf16_units import Utf16Units
from tests.lcm.context.assembly.recorded import NOW
from tests.support.workspaces import minute, system, transcript


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
