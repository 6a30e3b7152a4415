"""Ids are unique within a file, whatever is recorded, and those of a shorter file stay what they were; instants."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.errors import TranscriptError
from lcm.transcript import fields as identity
from lcm.transcript.fields import UniqueIds, native_id, said_at

recorded = st.lists(
    st.tuples(st.sampled_from("ab"), st.sampled_from(["", "", "x", "x#2", "1", "2", "3", "01", "9" * 5000])),
    max_size=12,
)


def named(records: list[tuple[str, str]]) -> list[str]:
    ids, heard, found = UniqueIds(), dict.fromkeys("ab", 0), []
    for conversation, recorded_id in records:
        heard[conversation] += 1
        found.append(ids.name(conversation, recorded_id, heard[conversation]))
    return found


@given(recorded)
def test_no_two_messages_have_one_id(records: list[tuple[str, str]]) -> None:
    found = named(records)
    assert len(set(found)) == len(found)
    assert all(
        name.startswith(f"{conversation}:{recorded_id}")
        for name, (conversation, recorded_id) in zip(found, records, strict=True)
    )


@given(recorded, st.integers(0, 12))
def test_what_comes_later_changes_no_id(records: list[tuple[str, str]], n: int) -> None:
    assert named(records[:n]) == named(records)[:n]


def test_many_ids_are_remembered_after_they_are_merged(monkeypatch) -> None:
    monkeypatch.setattr(identity, "_MERGED_FROM", 7)
    ids = UniqueIds()
    first = [ids.name("c", f"id {n}", n) for n in range(1, 301)]
    assert first == [f"c:id {n}" for n in range(1, 301)]
    again = [ids.name("c", f"id {n}", n + 300) for n in range(1, 301)]
    assert again == [f"c:id {n}#2" for n in range(1, 301)]
    assert ids.name("c", "id 7", 601) == "c:id 7#3"
    assert len(ids._given._sorted) < 12


def test_what_can_serve_as_an_id() -> None:
    values = ["x", 17, "", None, True, 1.5, "\ud83d", ["x"]]
    assert [native_id(value) for value in values] == ["x", "17", "", "", "", "", "", ""]


NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)


@pytest.mark.parametrize("key", ["created_at", "timestamp", *identity._MAY_BE_INSTANTS])
@pytest.mark.parametrize(
    "value",
    [
        NOON.timestamp(),
        int(NOON.timestamp()),
        *(int(NOON.timestamp()) * units for units in (10**3, 10**6, 10**9)),
        *(f"{int(NOON.timestamp()) * units}" for units in (1, 10**3, 10**6, 10**9)),
        f"{NOON.timestamp()}",
        "2026-01-05 12:00:00 UTC",
        "2026-01-05T12:00:00Z",
        "2026-01-05 13:00+01:00",
    ],
)
def test_an_instant_is_read_under_the_keys_and_in_the_units_of_peoples_files(key: str, value: Any) -> None:
    assert said_at({"content": "hello", key: value}) == NOON


def test_what_is_no_instant_is_passed_over_where_it_may_be_anything_and_refused_where_it_may_not() -> None:
    assert said_at({"time": 3.5, "date": "Monday", "ts": [1], "created": True, "sentAt": None}) is None
    assert said_at({"time": 3.5, "ts": "1767614400.000200"}) == NOON
    with pytest.raises(TranscriptError, match="an instant must be ISO 8601 text or an epoch number, got 'Monday'"):
        said_at({"timestamp": "Monday", "ts": NOON.timestamp()})
