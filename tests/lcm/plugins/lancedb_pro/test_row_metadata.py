"""Laws of the lifecycle metadata; the vectors of the original are in tests/golden."""

import json
import logging
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.plugins.lancedb_pro.row_fields import MAPPED
from lcm.plugins.lancedb_pro.row_metadata import access, build, injected, is_suppressed, lifecycle, parse, reinforced

NOW = 1_775_000_000_000
HOUR = 3_600_000
KEYS = [
    *("l0_abstract", "l1_overview", "l2_content", "memory_category", "tier", "access_count", "accessCount"),
    *("confidence", "last_accessed_at", "lastAccessedAt", "valid_from", "invalidated_at", "memory_temporal_type"),
    *("valid_until", "fact_key", "supersedes", "superseded_by", "canonical_id", "relations", "source", "state"),
    *("memory_layer", "injected_count", "bad_recall_count", "suppressed_until_turn", "last_injected_at"),
    *("last_confirmed_use_at", "source_session", "type", "custom", "suppressed_until_ms"),
]
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-2, 2 * NOW)
    # An instant within the first millisecond becomes 0, which is none when it is read again.
    | st.floats(allow_nan=False, allow_infinity=False).filter(lambda number: not 0 < number < 1)
    | st.text(max_size=8)
    | st.sampled_from(
        ["core", "static", "reflection", "session-summary", "archived", "bad", "preferences", "4", " a: b ", MAPPED]
    )
)
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner))
OBJECTS = st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=8)
ROWS = st.fixed_dictionaries(
    {
        # Text with white space around it, or none, has a normal form of its own: see the original's rule for "text".
        "text": st.text("ab: ", min_size=1, max_size=12).map(lambda text: text.strip() or "a"),
        "category": st.sampled_from(["fact", "preference", "entity", "decision", "other", "weird", None]),
        "timestamp_ms": st.none() | st.integers(0, NOW),
        "now_ms": st.just(NOW),
        "version": st.sampled_from(["beta.10", "beta.11"]),
    }
)


def parsed(
    metadata: Any = None, text: str = "a text", category: str = "other", stamp: float = NOW, **version: Any
) -> dict[str, Any]:
    return parse(metadata, text=text, category=category, timestamp_ms=stamp, now_ms=NOW, **version)


@pytest.mark.parametrize(
    ("metadata", "category", "before", "since"),
    [
        ({"source": "dreaming-engine"}, "other", ("legacy", "working"), ("dreaming-engine", "reflection")),
        ({"type": MAPPED}, "preference", ("legacy", "durable"), ("reflection", "durable")),
        ({"type": MAPPED, "source": "reflection"}, "other", ("reflection", "reflection"), ("reflection", "working")),
        ({"memory_category": " Event"}, "other", ("legacy", "working"), ("legacy", "durable")),
        ({"memory_category": "cases"}, "preference", ("legacy", "durable"), ("legacy", "working")),
    ],
)
def test_later_versions_have_another_source_and_layer(
    metadata: dict[str, Any], category: str, before: tuple[str, str], since: tuple[str, str]
) -> None:
    found = [parsed(metadata, category=category, version=version) for version in ("beta.10", "beta.11")]
    assert [(one["source"], one["memory_layer"]) for one in found] == [before, since]


@pytest.mark.parametrize(("given", "until"), [(None, None), (-1, 0), (2.5, 2), ("7", 7), ("no", 0)])
def test_a_row_may_be_suppressed_until_an_instant(given: object, until: int | None) -> None:
    row = {"text": "a", "category": "other", "timestamp_ms": NOW, "now_ms": NOW, "version": "beta.11"}
    assert parse({"suppressed_until_ms": given}, **row).get("suppressed_until_ms") == until
    assert build({"suppressed_until_ms": 9}, {"suppressed_until_ms": given}, **row)["suppressed_until_ms"] == (
        9 if until is None else until
    )


@given(OBJECTS, OBJECTS, ROWS)
def test_a_normal_form_is_its_own_patched_or_not(
    metadata: dict[str, Any], patch: dict[str, Any], row: dict[str, Any]
) -> None:
    once = parse(metadata, **row)
    assert parse(once, **row) == parse(json.dumps(once), **row) == once
    assert once.get("invalidated_at", once["valid_from"]) >= once["valid_from"]
    last = once["last_accessed_at"] or row["timestamp_ms"] or NOW
    assert build(metadata, {}, **row) == once | {"last_accessed_at": last}
    patched = build(metadata, patch, **row)
    assert parse(patched, **row) == patched


@given(st.text() | st.sampled_from(["[1]", "5", "null", '"a"', '{"a": NaN}', '{"tier": Infinity}', "[" * 100_000]))
def test_a_text_that_is_no_json_object_counts_as_empty(text: str) -> None:
    assert parsed(text) == parsed(None)
    assert access(text) == (0, 0)


def test_what_is_taken_as_empty_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        parsed("{")
        parsed("[]")
    assert [record.message.split(",")[0] for record in caplog.records] == [
        "metadata is no JSON",
        "metadata is a JSON list",
    ]


@given(OBJECTS, st.integers(-3, 5))
def test_an_access_is_read_back_under_both_spellings(metadata: dict[str, Any], delta: int) -> None:
    before, _ = access(metadata)
    after = reinforced(metadata, delta, NOW)
    assert access(after) == (min(max(before + delta, 0), 10_000), NOW)
    assert after["accessCount"] == after["access_count"]
    assert after["lastAccessedAt"] == after["last_accessed_at"]
    assert {key: value for key, value in after.items() if "ccess" not in key} == {
        key: value for key, value in metadata.items() if "ccess" not in key
    }


def test_the_lifecycle_falls_back_to_the_rows_own_instant() -> None:
    found = lifecycle(
        parsed({"last_accessed_at": 0, "access_count": 3}), importance=None, timestamp_ms=NOW - HOUR, now_ms=NOW
    )
    assert found == {
        "importance": 0.7,
        "confidence": 0.7,
        "tier": "working",
        "access_count": 3,
        "created_at_ms": NOW - HOUR,
        "last_accessed_at_ms": NOW - HOUR,
        "temporal_type": None,
    }
    now = lifecycle(parsed({"memory_temporal_type": "dynamic"}), importance=0.0, timestamp_ms=float("inf"), now_ms=NOW)
    assert (now["created_at_ms"], now["importance"], now["temporal_type"]) == (NOW, 0.0, "dynamic")


def test_a_row_that_is_recalled_in_vain_three_times_is_suppressed_for_a_while() -> None:
    fields: dict[str, Any] = {"access_count": 2}
    for times in range(4):
        assert not is_suppressed(fields, NOW + times)
        fields |= injected(fields, NOW + times)
        assert (fields["access_count"], fields["bad_recall_count"]) == (3 + times, times)
    last = NOW + 3
    assert [is_suppressed(fields, last + after) for after in (0, 1_799_999, 1_800_000)] == [True, True, False]
    assert injected(fields, last + 1, suppresses=False)["suppressed_until_ms"] == last + 1_800_000


@pytest.mark.parametrize(
    ("known", "in_vain"),
    [
        ({}, 3),
        ({"last_confirmed_use_at": NOW - HOUR}, 2),
        ({"last_injected_at": NOW - 25 * HOUR}, 1),
        ({"suppressed_until_ms": None}, 1),
    ],
)
def test_what_was_confirmed_long_ago_or_of_another_rule_is_not_in_vain(known: dict[str, Any], in_vain: int) -> None:
    fields = {"bad_recall_count": 2, "last_injected_at": NOW - HOUR, "suppressed_until_ms": 0, **known}
    assert injected(fields, NOW)["bad_recall_count"] == in_vain
    assert injected(fields, NOW, forgets_after_ms=0)["bad_recall_count"] >= in_vain
