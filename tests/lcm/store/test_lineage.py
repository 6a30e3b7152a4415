"""The walk over lineage: everything beneath a summary, in order, even where summaries run in circles."""

from lcm.store.store import Store
from lcm.store.summaries import beneath, depth_first, messages_beneath, walk
from tests.lcm.context.recall.dags import fold, talk


def test_sources_are_opened_in_order_shared_ones_twice_and_nothing_beneath_itself() -> None:
    sources = {"a": ["b", "c"], "b": ["m1"], "c": ["m1", "m2", "a"]}
    found = list(depth_first("a", lambda one: sources.get(one, [])))
    assert found == [("a", 0), ("b", 1), ("m1", 2), ("c", 1), ("m1", 2), ("m2", 2)]
    assert list(depth_first("a", lambda one: sources.get(one, []), 1)) == [("a", 0), ("b", 1), ("c", 1)]


def test_a_walk_ends_in_a_circle_and_messages_come_once_in_their_order() -> None:
    with Store() as store:
        talk(store, "talk", ["one", "two", "three"])
        first, second = fold(store, "talk", 0, 1, "of one"), fold(store, "talk", 1, 1, "of two")
        both = fold(store, "talk", 0, 2, "of both")
        top = fold(store, "talk", 0, 1, "of all")
        with store.writing() as connection:
            connection.execute("INSERT INTO summary_parents VALUES (?, ?, 2)", (both, top))
            assert [place.summary_id for place in walk(connection, [top])] == [top, both, first, second]
            assert [place.summary_id for place in walk(connection, [top], depth=1)] == [top, both]
            assert [place.summary_id for place in walk(connection, [first], "derived")] == [first, both, top]
            assert [place.summary_id for place in walk(connection, [top], kept=lambda ids: {both, second})] == [
                *(top, both, second)
            ]
            assert beneath(connection, [first, both]) == {top, both, first, second}
            assert messages_beneath(connection, [top, second]) == ["talk:1", "talk:2"]
            assert messages_beneath(connection, [second, "sum_unknown", first]) == ["talk:2", "talk:1"]
