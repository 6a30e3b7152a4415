"""Laws of the lifecycle metadata; the vectors of the original are in tests/golden."""

import json
import logging
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.plugins.lancedb_pro.row_metadata import access, build, is_active, is_expired, lifecycle, parse, reinforced

NOW = 1_775_000_000_000
HOUR = 3_600_000
KEYS = [
    *("l0_abstract", "l1_overview", "l2_content", "memory_category", "tier", "access_count", "accessCount"),
    *("confidence", "last_accessed_at", "lastAccessedAt", "valid_from", "invalidated_at", "memory_temporal_type"),
    *("valid_until", "fact_key", "supersedes", "superseded_by", "canonical_id", "relations", "source", "state"),
    *("memory_layer", "injected_count", "bad_recall_count", "suppressed_until_turn", "last_injected_at"),
    *("last_confirmed_use_at", "source_session", "type", "custom"),
]
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-2, 2 * NOW)
    # An instant within the first millisecond becomes 0, which is none when it is read again.
    | st.floats(allow_nan=False, allow_infinity=False).filter(lambda number: not 0 < number < 1)
    | st.text(max_size=8)
    | st.sampled_from(
        ["core", "static", "reflection", "session-summary", "archived", "bad", "preferences", "4", " a: b "]
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
    }
)


def parsed(metadata: Any = None, text: str = "a text", category: str = "other", stamp: float = NOW) -> dict[str, Any]:
    return parse(metadata, text=text, category=category, timestamp_ms=stamp, now_ms=NOW)


@given(OBJECTS, ROWS)
def test_the_normal_form_is_its_own_normal_form(metadata: dict[str, Any], row: dict[str, Any]) -> None:
    once = parse(metadata, **row)
    assert parse(once, **row) == once
    assert parse(json.dumps(once), **row) == once


@pytest.mark.parametrize(
    ("patch", "session"), [({}, "s1"), ({"source_session": 5}, "s1"), ({"source_session": "s2"}, "s2")]
)
def test_only_another_text_names_another_session(patch: dict[str, Any], session: str) -> None:
    row = {"text": "a text", "category": "other", "timestamp_ms": NOW, "now_ms": NOW}
    assert build({"source_session": "s1"}, patch, **row)["source_session"] == session


@given(OBJECTS, ROWS)
def test_an_empty_patch_changes_nothing_but_an_unknown_last_access(
    metadata: dict[str, Any], row: dict[str, Any]
) -> None:
    base = parse(metadata, **row)
    last = base["last_accessed_at"] or row["timestamp_ms"] or NOW
    assert build(metadata, {}, **row) == base | {"last_accessed_at": last}


@given(OBJECTS, OBJECTS, ROWS)
def test_a_patched_form_is_a_normal_form(metadata: dict[str, Any], patch: dict[str, Any], row: dict[str, Any]) -> None:
    built = build(metadata, patch, **row)
    assert parse(built, **row) == built


@given(OBJECTS, ROWS)
def test_an_invalidated_document_ends_no_earlier_than_it_begins(metadata: dict[str, Any], row: dict[str, Any]) -> None:
    found = parse(metadata, **row)
    assert found.get("invalidated_at", found["valid_from"]) >= found["valid_from"]


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


def test_null_is_zero_where_an_absent_number_is_the_default() -> None:
    assert parsed({"confidence": None})["confidence"] == 0
    assert parsed({})["confidence"] == 0.7
    assert parsed({"last_accessed_at": None})["last_accessed_at"] == 0
    assert parsed({}, stamp=NOW - HOUR)["last_accessed_at"] == NOW - HOUR


def test_a_timestamp_that_is_not_finite_is_the_present() -> None:
    assert parsed(stamp=float("nan"))["valid_from"] == NOW


def test_the_layer_follows_source_then_state_then_the_rows_own_category() -> None:
    assert parsed({"source": "reflection", "state": "archived"})["memory_layer"] == "reflection"
    assert parsed({"state": "archived"}, category="preference")["memory_layer"] == "archive"
    assert parsed({"memory_category": "cases"}, category="preference")["memory_layer"] == "durable"
    assert parsed({"memory_category": "preferences"})["memory_layer"] == "working"


def test_a_patch_clears_a_time_that_is_none_and_keeps_what_it_does_not_name() -> None:
    stored = {"valid_until": NOW + HOUR, "invalidated_at": NOW + HOUR, "tier": "core"}
    row: dict[str, Any] = {"text": "a", "category": "other", "timestamp_ms": NOW, "now_ms": NOW}
    found = build(stored, {"valid_until": None}, **row)
    assert "valid_until" not in found
    assert (found["invalidated_at"], found["tier"]) == (NOW + HOUR, "core")


def test_a_patched_key_comes_before_the_stored_one_and_the_stored_before_a_derived_one() -> None:
    row: dict[str, Any] = {"text": "Editor: vim", "category": "preference", "timestamp_ms": NOW, "now_ms": NOW}
    assert build({}, {"l0_abstract": "Shell: fish"}, **row)["fact_key"] == "preferences:editor"
    assert build({}, {"fact_key": "k"}, **row)["fact_key"] == "k"
    assert build({"memory_category": "cases"}, {"memory_category": "entities"}, **row)["fact_key"] == "entities:editor"


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


def test_camel_case_goes_first_unless_it_is_null() -> None:
    assert access({"accessCount": 0, "access_count": 5}) == (0, 0)
    assert access({"accessCount": None, "access_count": 5}) == (5, 0)


def test_a_negative_last_access_is_none() -> None:
    assert access({"lastAccessedAt": -5, "last_accessed_at": NOW}) == (0, 0)


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


def test_the_lifecycle_of_a_row_without_an_instant_begins_now() -> None:
    found = lifecycle(
        parsed({"memory_temporal_type": "dynamic"}), importance=0.0, timestamp_ms=float("inf"), now_ms=NOW
    )
    assert (found["created_at_ms"], found["importance"], found["temporal_type"]) == (NOW, 0.0, "dynamic")


def test_a_document_stands_from_its_beginning_until_just_before_its_end() -> None:
    assert [is_active(10, 20, at) for at in (9, 10, 19, 20)] == [False, True, True, False]


def test_without_an_end_a_document_stands_forever() -> None:
    assert is_active(10, None, 10**15)
    assert is_active(10, 0, 10**15)


def test_a_document_expires_at_its_last_instant() -> None:
    assert [is_expired(20, at) for at in (19, 20, 21)] == [False, True, True]
    assert not is_expired(None, 10**15)
    assert is_expired(0, 1)
