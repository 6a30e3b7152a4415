"""Stretches and trees: what was said and then left is a conversation of its own."""

from hypothesis import given
from hypothesis import strategies as st

from lcm.transcript.branches import Stretches, is_branch, stretches_but, suffixes


def test_a_stretch_is_named_by_its_first_message_or_its_place() -> None:
    stretches = Stretches([range(4, 6), range(1, 2)])
    assert [stretches.suffix(place, name) for place, name in enumerate(["a", "b", "c", "d", "", "f", "g"])] == [
        *("", "~b", "", ""),
        *("~4", "~4", ""),
    ]


def test_a_branch_in_several_stretches_has_one_name() -> None:
    inner = [range(2, 4)]
    outer = stretches_but(range(1, 6), [inner, [range(7, 9)]])
    assert outer == [range(1, 2), range(4, 6)]
    stretches = Stretches([inner, outer])
    assert [stretches.suffix(place, f"m{place}") for place in range(7)] == ["", "~m1", "~m2", "~m2", "~m1", "~m1", ""]


def test_a_branch_is_of_a_conversation_that_is_there() -> None:
    others = {"s", "s~a", "a~b", "~c"}
    assert [name for name in ("s", "s~a", "s~a~b", "a~b", "a~b~c", "~c", "~c~d") if is_branch(name, others)] == [
        *("s~a", "s~a~b", "a~b~c", "~c~d")
    ]


def test_a_branch_begins_where_a_node_leaves_the_path_to_the_last_or_its_parent_goes_on_elsewhere() -> None:
    parents = {"a": None, "b": "a", "c": "b", "d": "b", "e": "d", "f": "d", "g": "b"}
    assert suffixes(parents, "g") == {"a": "", "b": "", "g": "", "c": "~c", "d": "~d", "e": "~d", "f": "~f"}
    assert suffixes(parents, "gone") == suffixes(parents, "g")
    assert suffixes({}, None) == {}


@given(st.dictionaries(st.sampled_from("abcdefgh"), st.none() | st.sampled_from("abcdefghx")), st.sampled_from("abx"))
def test_each_node_is_in_one_branch_whatever_cycles_there_are(parents: dict[str, str | None], last: str) -> None:
    found = suffixes(parents, last)
    assert set(found) == set(parents)
    assert all(suffix in ("", *(f"~{node}" for node in parents)) for suffix in found.values())
    assert not parents or "" in found.values()
