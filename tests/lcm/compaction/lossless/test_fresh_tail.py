"""How many of the newest messages a fresh tail takes, by what they say."""

import math
from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from lcm.compaction.lossless.planning import chosen_count, fresh_tail, words_of
from lcm.compaction.window import StoredWindow
from lcm.store.store import Store
from lcm.token_estimator import Utf16Units
from tests.lcm.compaction.contexts import CONVERSATION, NOW, compacted, conversation, head, lossless, message, window

SAID = st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=6).map(" ".join), min_size=1, max_size=14)


def start(context: StoredWindow, **fields: Any) -> int:
    return fresh_tail(lossless(head(0), **fields), context)


COUNT, NOVELTY = st.integers(0, 4), st.floats(0, 1)


def taken(said: list[str], count: int, novelty: float) -> int:
    """Of messages in order."""
    return chosen_count(iter([words_of(text) for text in reversed(said)]), count, novelty)


def test_novelty_is_the_share_of_the_most_bits_that_words_can_carry() -> None:
    """The tail "a a b" has three words of two kinds: of "a c", a carries log2(6 / 3) bits and c log2(6 / 1)."""
    novelty = (math.log2(6 / 3) + math.log2(6 / 1)) / (2 * math.log2(6))
    assert taken(["a c", "a a b"], 1, novelty - 1e-9) == 2
    assert taken(["a c", "a a b"], 1, novelty + 1e-9) == 1
    assert words_of("Café cafe 東京都") == Counter({"cafe": 2, "東京": 1, "京都": 1})  # CJK by pairs


def test_what_was_taken_is_weighed_together() -> None:
    """A short answer that repeats ends no tail that has grown by much that is new."""
    assert taken(["x y z", "a", "p q r s t", "a b"], 1, 0.8) == 4
    assert taken(["x y z", "p q r s t", "a", "a b"], 1, 0.8) == 1


@given(said=SAID, count=COUNT, novelty=NOVELTY, more=st.integers(0, 10))
def test_a_tail_is_a_suffix_within_its_counts_and_equal_when_read_anew(
    said: list[str], count: int, novelty: float, more: int
) -> None:
    tail = {"fresh_tail_count": count, "fresh_tail_max_count": count + more, "fresh_tail_novelty": novelty}
    with conversation(said) as store:
        kept = window(store)
        found = start(kept, **tail)
        assert min(count, len(said)) <= len(said) - found <= count + more
        assert found == start(kept, **tail) == start(window(store), **tail)
        tail["fresh_tail_max_count"] = count
        assert start(kept, fresh_tail_count=count) == start(kept, **tail) == max(0, len(said) - count)


@given(said=SAID, count=COUNT, novelty=NOVELTY, other=NOVELTY)
def test_nothing_older_moves_a_tail_and_the_more_must_be_new_the_shorter_it_is(said, count, novelty, other):
    whole = min(taken(said, count, novelty), len(said))
    assert min(taken(said[len(said) - whole :], count, novelty), whole) == whole
    assert taken(said, count, min(novelty, other)) >= taken(said, count, max(novelty, other))


def test_compaction_leaves_what_is_new_and_a_second_run_changes_nothing() -> None:
    """Of what is repeated one stays: nothing in the tail had said it."""
    new = [" ".join(f"{stem}{n}" for stem in ("alpha", "beta", "gamma", "delta")) for n in range(4)]
    said = ["the same words again and again " * 8] * 12 + new
    small: dict[str, Any] = {"budget_tokens": 1000, "leaf_chunk_tokens": 200, "min_leaf_tokens": 0}
    for most, left in ((None, 2), (9, 4 + 1)):
        compaction = lossless(head(40), **small, fresh_tail_count=2, fresh_tail_max_count=most)
        with conversation(said) as store:
            for _ in range(2):
                compacted(store, compaction, is_forced=True)
                assert sum(entry.is_message for entry in store.context("c")) == left


def test_a_tail_reaches_back_to_the_newest_message_of_a_user_whatever_it_weighs() -> None:
    roles = ["user", "assistant", "user", "assistant", "tool", "assistant"]
    with Store(opened_at=NOW) as store:
        said = [message(i, "w" * 40, role) for i, role in enumerate(roles)]
        store.append(CONVERSATION, said, Utf16Units())
        kept = window(store)
        starts = {
            (count, most): start(kept, fresh_tail_count=count, fresh_tail_max_tokens=most, rules="0.15")
            for count, most in [(2, None), (5, None), (5, 40), (9, 55), (1, 0), (0, None)]
        }
        assert starts == {(2, None): 2, (5, None): 1, (5, 40): 2, (9, 55): 1, (1, 0): 2, (0, None): 6}
        assert [start(kept, fresh_tail_count=4, fresh_tail_max_tokens=most) for most in (None, 40, 25, 0)] == [
            2,
            2,
            4,
            5,
        ]
