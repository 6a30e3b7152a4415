"""Expansion: everything is reached where the caps allow it, and nothing beyond them."""

from hypothesis import given, settings
from hypothesis import strategies as st

from lcm.context.recall.expansion import distilled_text
from lcm.store.store import Store
from tests.lcm.context.recall.dags import fold, fold_all, folds, recall, talk


@settings(max_examples=25)
@given(st.integers(1, 13), folds)
def test_expanding_the_context_reaches_every_message(messages: int, wanted: list[tuple[int, int]]) -> None:
    with Store() as store:
        talk(store, "talk", [f"line {i}" for i in range(messages)])
        fold_all(store, "talk", wanted)
        items = store.context("talk")
        reached = [item.item_id for item in items if item.is_message]
        summaries = [item.item_id for item in items if not item.is_message]
        found = recall().on(store).expand(summaries, depth=50, token_cap=10**9, has_messages=True)
        reached += [said.message_id for root in found.roots for said in root.messages]
        assert sorted(reached) == sorted(f"talk:{i}" for i in range(1, messages + 1))
        assert not found.is_truncated


@settings(max_examples=25)
@given(st.integers(1, 13), folds, st.integers(1, 60), st.integers(1, 4))
def test_an_expansion_keeps_to_its_cap_and_says_so(messages, wanted, cap, depth):
    with Store() as store:
        talk(store, "talk", [f"a line of some length {i}" for i in range(messages)])
        ids, reader = fold_all(store, "talk", wanted), recall().on(store)
        whole, capped = (reader.expand(ids, depth=depth, token_cap=most, has_messages=True) for most in (10**9, cap))
        assert capped.tokens <= cap
        assert capped.is_truncated == (whole.tokens > cap or len(capped.roots) < len(ids))
        assert capped.tokens == sum(root.tokens for root in capped.roots)
        assert capped.is_truncated or capped == whole


def test_words_are_told_in_full_and_ids_alone_as_the_original_does(store: Store) -> None:
    talk(store, "talk", ["the port is 8443", "and the host is kettle"])
    leaf = fold(store, "talk", 0, 2, "where the service listens")
    store._connection.execute("UPDATE messages SET token_count = 0 WHERE message_id = 1")  # it is counted then
    found = recall().on(store).expand([leaf], has_messages=True)
    words, ids = (distilled_text(found, rules) for rules in ("corrected", "original"))
    assert "[msg#1] (user, 4 tokens)\nthe port is 8443" in words
    assert "and the host is kettle" in words
    assert "msg#1 (user, 4 tokens), msg#2 (user, 6 tokens)" in ids
    assert "8443" not in ids


def test_a_store_that_is_no_dag_ends(store: Store) -> None:
    talk(store, "talk", ["one", "two"])
    first, second = fold(store, "talk", 0, 1, "one"), fold(store, "talk", 1, 1, "two")
    top = fold(store, "talk", 0, 2, "top")
    store._connection.execute("UPDATE summaries SET kind = 'condensed' WHERE summary_id = ?", (first,))
    store._connection.execute("INSERT INTO summary_parents VALUES (?, ?, 0)", (first, top))
    found = recall().on(store).expand([top], depth=100, token_cap=10**9)
    assert [child.summary_id for child in found.roots[0].children] == [first, second]
