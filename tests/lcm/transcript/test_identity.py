"""Ids are unique within a file, whatever is recorded, and those of a shorter file stay what they were."""

from hypothesis import given
from hypothesis import strategies as st

from lcm.transcript import identity
from lcm.transcript.identity import UniqueIds, native_id

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
