"""Facts as of an instant; the vectors of the original are in tests/golden."""

from typing import Any

import pytest

from lcm.plugins.lancedb_pro.facts import FactAnswer, facts_at

NOW, DAY = 1_775_000_000_000, 86_400_000


def row(text: str, days_ago: int, **metadata: Any) -> dict[str, Any]:
    stamp = NOW - days_ago * DAY
    return {
        "text": text,
        "category": "preference",
        "timestamp_ms": stamp,
        "metadata": {"valid_from": stamp, **metadata},
    }


VIM = row("Editor: vim", 9, invalidated_at=NOW - 3 * DAY, superseded_by="emacs")
EMACS = row("Editor: emacs", 3, supersedes="vim")
TEA = row("Drink: tea", 5)
TABLE = (VIM, EMACS, TEA)


def told(found: FactAnswer) -> list[tuple[str, bool]]:
    return [(fact.row["text"], fact.is_active) for fact in found.facts]


def test_a_key_finds_what_held_and_with_history_what_had_held() -> None:
    key = " Preferences:EDITOR "
    assert told(facts_at(TABLE, NOW, fact_key=key)) == [("Editor: emacs", True)]
    before = "2026-03-26T00:00:00Z"
    assert told(facts_at(TABLE, NOW, fact_key=key, at=before)) == [("Editor: vim", True)]
    assert told(facts_at(TABLE, NOW, fact_key=key, include_history=True)) == [
        ("Editor: emacs", True),
        ("Editor: vim", False),
    ]
    assert told(facts_at(TABLE, NOW, fact_key=key, include_history=True, limit=0)) == [("Editor: emacs", True)]


def test_words_find_only_rows_that_had_another_version_or_pass() -> None:
    assert told(facts_at(TABLE, NOW, query="TEA")) == []
    assert told(facts_at(TABLE, NOW, query="tea", fact_key="preferences:drink")) == [("Drink: tea", True)]
    passing = row("Drink: milk tea", 1, memory_temporal_type="dynamic")
    ended = row("Drink: black tea", 2, valid_until=NOW)
    assert told(facts_at((*TABLE, passing, ended), NOW, query="tea")) == [("Drink: milk tea", True)]


@pytest.mark.parametrize(
    ("asked", "message"),
    [({"query": " "}, "by a query, by its key"), ({"query": "tea", "at": "soon"}, "an instant must be ISO 8601")],
)
def test_a_question_that_cannot_be_answered_is_refused(asked: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        facts_at(TABLE, NOW, **asked)  # type: ignore[arg-type]
