"""What is kept of relations, sources and history."""

from hypothesis import given
from hypothesis import strategies as st

from lcm.writing.lifecycle.relations import appended, capped, well_formed

RELATIONS = st.lists(
    st.fixed_dictionaries({"type": st.sampled_from("abc"), "targetId": st.sampled_from("12")})
    | st.sampled_from([None, "x", {"type": 3}, {"type": "a", "targetId": 1}])
)


@given(RELATIONS)
def test_a_relation_is_held_once_after_the_others(relations: list[object]) -> None:
    once = appended(relations, "new", "1")
    assert once == [*well_formed(relations), {"type": "new", "targetId": "1"}]
    assert appended(once, "new", "1") == once
    assert appended("no list", "a", "1") == appended(None, "a", "1") == [{"type": "a", "targetId": "1"}]


def test_the_last_of_each_list_are_kept_and_other_types_left_alone() -> None:
    numbers = list(range(60))
    stored = capped({"sources": numbers, "history": numbers, "relations": numbers, "a": 1})
    assert stored == {"sources": numbers[-20:], "history": numbers[-50:], "relations": numbers[-16:], "a": 1}
    assert capped({"sources": "x" * 30, "relations": None}) == {"sources": "x" * 30, "relations": None}
