"""libravdb's vectors of authored files and dreams onto our components."""

from datetime import UTC, datetime
from typing import Any

from lcm.context.authored.files import AuthoredFiles
from lcm.context.authored.front_matter import front_matter
from lcm.context.authored.lines import lines_of
from lcm.context.authored.nodes import nodes_of
from lcm.plugins.libravdb import authored_digest as digest
from lcm.writing.dream.diary import DiaryEntry, diary_entries
from lcm.writing.dream.promotion import promotion
from lcm.writing.dream.query import asks_for_dreams
from tests.golden.components import component

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
        "hard_count": sum(node.tier == "hard" for node in nodes),
        "soft_count": sum(node.tier == "soft" for node in nodes),
        "variant_count": sum(node.tier == "variant" for node in nodes),
        "hop_targets": list(head.hop_targets) if head else [],
        "nodes": [
            {
                "kind": KINDS.get(node.kind, node.kind),
                "tier": TIERS[node.tier],
                "text": node.text,
                "position": node.position,
                "ordinal": node.ordinal,
                "token_estimate": node.tokens,
                "mask": node.modality_mask,
                "promoted": node.modality_mask != 0,
                "hop_targets": list(node.hop_targets),
            }
            for node in nodes
        ],
    }


def content_hash(case: dict[str, Any]) -> dict[str, str]:
    return {"hash": digest.content_hash(case["text"])}


def dream_query(case: dict[str, Any]) -> dict[str, bool]:
    return {"active": asks_for_dreams(case["query"])}


def dream_candidates(case: dict[str, Any]) -> dict[str, Any]:
    return {
        "candidates": [
            {
                "text": entry.text,
                "score": entry.score,
                "recall_count": entry.recall_count,
                "unique_queries": entry.unique_queries,
                "section": entry.section,
                "line": entry.line,
            }
            for entry in diary_entries(case["text"])
        ]
    }


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
