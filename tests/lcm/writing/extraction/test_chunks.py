"""A conversation cut into chunks."""

from hypothesis import given
from hypothesis import strategies as st

from lcm.javascript import last_units, utf16_length
from lcm.records.conversation import Message
from lcm.writing.extraction.llm import Chunk, Turn, chunks


def turns(sessions: str, lengths: list[int] | None = None) -> list[Turn]:
    """One turn a letter: its session; each of the length given, else of 1."""
    return [
        Turn(i, Message(f"m{i}", "user", "", session_id=session), "x" * (lengths[i] if lengths else 1))
        for i, session in enumerate(sessions)
    ]


def cut(sessions: str, lengths: list[int] | None = None, max_chars: int = 100, min_turns: int = 2) -> list[Chunk]:
    return list(chunks(turns(sessions, lengths), max_chars, min_turns))


def positions(found: list[Chunk]) -> list[list[int]]:
    return [[turn.position for turn in chunk.turns] for chunk in found]


def ready(found: list[Chunk]) -> list[int | None]:
    return [chunk.ready_with and chunk.ready_with.position for chunk in found]


def test_a_chunk_ends_with_its_session_or_where_the_next_turn_has_no_room() -> None:
    found = cut("aaabb")
    assert positions(found) == [[0, 1, 2], [3, 4]]
    assert ready(found) == [1, 4]  # the second turn of each
    assert positions(cut("aaaa", [50, 50, 1, 1])) == [[0, 1], [2, 3]]


def test_a_short_chunk_goes_on_into_the_next_session_or_waits_until_a_turn_has_no_room_in_it() -> None:
    assert positions(cut("abbbcc", min_turns=3)) == [[0, 1, 2, 3], [4, 5]]
    assert ready(cut("aab")) == [1, None]
    found = cut("aaa", [90, 20, 1])
    assert positions(found) == [[0], [1, 2]]
    assert ready(found) == [1, 2]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 10)), min_size=1, max_size=30), st.data())
def test_every_turn_is_in_one_chunk_and_later_turns_move_no_cut(
    said: list[tuple[str, int]], data: st.DataObject
) -> None:
    sessions, lengths = "".join(session for session, _ in said), [length for _, length in said]
    whole = cut(sessions, lengths, max_chars=12, min_turns=3)
    assert [i for chunk in positions(whole) for i in chunk] == list(range(len(said)))
    assert all(sum(len(turn.words) for turn in chunk.turns) <= 12 for chunk in whole)
    end = data.draw(st.integers(1, len(said)))
    begun = cut(sessions[:end], lengths[:end], max_chars=12, min_turns=3)
    assert positions(begun)[:-1] == positions(whole)[: len(begun) - 1]
    assert ready(begun)[:-1] == ready(whole)[: len(begun) - 1]


@given(st.text(), st.integers(1, 9))
def test_the_end_of_a_text_is_never_longer_than_asked_and_holds_no_half_of_a_character(text: str, units: int) -> None:
    tail = last_units(text, units)
    assert text.endswith(tail)
    assert min(units, utf16_length(text)) - 1 <= utf16_length(tail) <= units
    assert (last_units("ab🐐", 3), last_units("🐐ab", 3), last_units("abc", 5)) == ("b🐐", "ab", "abc")
