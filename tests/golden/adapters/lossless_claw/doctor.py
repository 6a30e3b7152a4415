"""lossless-claw's integrity scan and marks of cut summaries onto our doctor."""

import re
from typing import Any

from lcm.records.summary import Summary
from lcm.store.conversations import conversation_row
from lcm.store.doctor import Numbering, mark_of, scan
from lcm.store.store import Store
from lcm.store.summaries import insert_summary
from tests.golden.adapters.lossless_claw.recall import fill
from tests.support.workspaces import minute

ORIGINAL = Numbering(first_seq=0, has_dense_ordinals=True)
"""The original's rule, which every healthy conversation breaks: it numbers messages from 1."""


def doctor_markers(case: dict[str, Any]) -> dict[str, str | None]:
    return {"kind": mark_of(case["content"])}


def integrity_scan(case: dict[str, Any]) -> dict[str, Any]:
    with Store() as store:
        conversation = _stored(store, case["dag"], case["context"])
        steps = []
        for mutation in case["mutations"]:
            name = _mutate(store, conversation, mutation)
            checks = [check for check in scan(store._connection, conversation, ORIGINAL) if check.name in _NAMES]
            steps.append(
                {
                    "mutation": name,
                    "checks": {check.name: check.status for check in checks},
                    "repair_plan_count": sum(len(check.findings) for check in checks),
                }
            )
        return {"steps": steps}


_NAMES = {
    "conversation_exists", "context_items_contiguous", "context_items_valid_refs", "summaries_have_lineage",
    "no_orphan_summaries", "context_token_consistency", "message_seq_contiguous", "no_duplicate_context_refs",
}  # fmt: skip


def _stored(store: Store, dag: dict[str, Any], context: list[str]) -> int:
    fill(store, dag)
    conversation = conversation_row(store._connection, "talk")
    store._connection.execute("DELETE FROM context_items")
    for ordinal, summary_id in enumerate(context):
        _put(store, conversation, ordinal, summary_id)
    return conversation


def _put(store: Store, conversation: int, ordinal: int, summary_id: str) -> None:
    store._connection.execute(
        "INSERT INTO context_items (conversation_id, ordinal, item_type, summary_id) VALUES (?, ?, 'summary', ?)",
        (conversation, ordinal, summary_id),
    )


def _mutate(store: Store, conversation: int, mutation: str) -> str:
    """Do to the store what the vector did; returns what it calls that."""
    connection = store._connection
    if moved := re.match(r"context ordinal (\d+) -> (\d+)", mutation):
        connection.execute("UPDATE context_items SET ordinal = ? WHERE ordinal = ?", (moved[2], moved[1]))
        return "gap"
    if orphan := re.match(r"insert unlinked leaf (\S+)", mutation):
        insert_summary(connection, conversation, Summary(orphan[1], "talk", "leaf", 0, "orphan", 2, minute(2000)))
        return "orphan+nolineage"
    if twin := re.match(r"second context item \(ordinal (\d+)\) with the same summary", mutation):
        (summary_id,) = connection.execute("SELECT summary_id FROM context_items ORDER BY ordinal LIMIT 1").fetchone()
        _put(store, conversation, int(twin[1]), summary_id)
        return "dup"
    assert mutation == "none"
    return mutation
