"""Memories that a tool stores; the vectors of the original are in tests/golden."""

from typing import Any

import pytest

from lcm.plugins.lancedb_pro.manual_store import Stored, stored

NOW, DAY = 1_775_000_000_000, 86_400_000


def row(row_id: str, text: str, category: str = "preference", **metadata: Any) -> dict[str, Any]:
    return {"id": row_id, "text": text, "category": category, "timestamp_ms": NOW - DAY, "metadata": metadata}


VIM = row("vim", "Editor: vim", tier="core", l1_overview="## Editors")


def placed(near: list[tuple[dict[str, Any], float]], *rows: dict[str, Any], **settings: Any) -> Stored:
    return stored("new", "Editor: emacs", "preferences", near, rows, NOW, **settings)


@pytest.mark.parametrize(
    ("score", "settings", "action", "ended"),
    [
        (0.99, {}, "duplicate", []),
        (0.99, {"is_forced": True}, "created", []),
        (0.98, {}, "superseded", ["vim"]),
        (0.98, {"is_forced": True}, "superseded", ["vim"]),
        (0.95, {}, "created", []),
        (0.95, {"supersedes_by_key": True}, "superseded", ["vim", "nano"]),
        (0.99, {"supersedes_by_key": True}, "superseded", ["vim", "nano"]),
        (0.99, {"supersedes_by_key": True, "is_forced": True}, "created", []),
    ],
)
def test_a_score_or_a_key_says_what_is_superseded(
    score: float, settings: dict[str, bool], action: str, ended: list[str]
) -> None:
    over = row("over", "Editor: ed", invalidated_at=NOW - 1, valid_from=NOW - DAY)
    expired, other = row("expired", "Editor: ed", valid_until=NOW), row("other", "Drink: tea")
    found = placed([(over, 1.0), (VIM, score)], VIM, row("nano", "Editor: nano"), over, expired, other, **settings)
    assert (found.action, list(found.patches)) == (action, ended)
    assert found.existing_id == ("vim" if action == "duplicate" else None)


def test_of_what_it_is_like_a_memory_keeps_tier_key_and_overview() -> None:
    like = row("vim", "Editor: vim", tier="core", l1_overview="## Editors", fact_key="preferences:tools")
    found = placed([(like, 0.96)], importance=7)
    metadata = found.new["metadata"]
    assert (found.similarity, found.new["importance"], found.new["category"]) == (0.96, 1, "preference")
    assert [metadata[key] for key in ("tier", "fact_key", "l1_overview", "supersedes", "valid_from")] == [
        *("core", "preferences:tools", "## Editors", "vim", NOW)
    ]
    assert found.patches["vim"] == {
        "invalidated_at": NOW,
        "superseded_by": "new",
        "relations": [{"type": "superseded_by", "targetId": "new"}],
    }


def test_by_key_a_memory_keeps_its_own_words_and_counts_every_row_that_it_ends() -> None:
    event = row("event", "Editor: vim again", "decision")
    found = placed([(event, 0.99)], VIM, supersedes_by_key=True)
    metadata = found.new["metadata"]
    assert [metadata[key] for key in ("tier", "fact_key", "l1_overview")] == [
        *("core", "preferences:editor", "- Editor: emacs")
    ]
    assert [relation["targetId"] for relation in metadata["relations"]] == ["event", "vim"]
    assert stored("new", "Went out today", "events", [], [], NOW).new["metadata"]["valid_until"] == NOW + 18 * 3_600_000
