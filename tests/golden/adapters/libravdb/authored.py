"""libravdb's vectors of authored files and dreams onto our components."""

from datetime import UTC, datetime
from typing import Any

from lcm.context.authored import AuthoredFiles, front_matter, lines_of, nodes_of
from lcm.writing.dream import DiaryEntry, asks_for_dreams, diary_entries, promotion
from tests.golden.components import component, fields_of
from tests.golden.originals import authored_digest as digest

TIERS = {"variant": 0, "hard": 1, "soft": 2}
KINDS = {"ListItem": "List"}


def ast_partition(case: dict[str, Any]) -> dict[str, Any]:
    files: AuthoredFiles = component("authored=libravdb", "authored")
    text = case["markdown"]
    head = front_matter(lines_of(text), files.rules)
    nodes = nodes_of(
        case["source_doc"],
        text,
        files.frame,
        rules=files.rules,
        authority=files.authority,
    )
    return {
        "cache_key": digest.cache_key(text.encode(), case["tokenizer_id"]),
        **{f"{tier}_count": sum(node.tier == tier for node in nodes) for tier in TIERS},
        "hop_targets": list(head.hop_targets) if head else [],
        "nodes": [
            {
                "kind": KINDS.get(node.kind, node.kind),
                "tier": TIERS[node.tier],
                "promoted": node.modality_mask != 0,
                "hop_targets": list(node.hop_targets),
                **fields_of(node, "text position ordinal token_estimate=tokens mask=modality_mask"),
            }
            for node in nodes
        ],
    }


def content_hash(case: dict[str, Any]) -> dict[str, str]:
    return {"hash": digest.content_hash(case["text"])}


def dream_query(case: dict[str, Any]) -> dict[str, bool]:
    return {"active": asks_for_dreams(case["query"])}


def dream_candidates(case: dict[str, Any]) -> dict[str, Any]:
    names = "text score recall_count unique_queries section line"
    return {"candidates": [fields_of(entry, names) for entry in diary_entries(case["text"])]}


def dream_promotion(case: dict[str, Any]) -> dict[str, Any]:
    try:
        made = promotion(
            [DiaryEntry(**entry) for entry in case["entries"]],
            case["source_doc"],
            case["user_id"],
            "user:u1",
            datetime(2026, 1, 1, tzinfo=UTC),
        )
    except ValueError:
        return {"error": True}
    return {
        "promoted": len(made.documents),
        "rejected": made.rejected,
        "records": [
            {"id": document.document_id.partition("/")[2], "text": document.text} for document in made.documents
        ],
    }
