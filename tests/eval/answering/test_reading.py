"""What an answerer is shown: worked cases, four UTF-16 units a token."""

from hypothesis import given
from hypothesis import strategies as st

from eval.answering import Excerpt, within
from eval.measures.measure import REPORT_TOKENS


def shown(texts: list[str], budget: int) -> list[str]:
    return [one.text for one in within([Excerpt(text) for text in texts], budget, REPORT_TOKENS)]


def test_texts_are_read_in_order_and_the_first_that_no_longer_fits_is_cut() -> None:
    assert shown(["a" * 8, "b" * 8, "c" * 8], 3) == ["a" * 8, "b" * 4]
    assert shown(["a" * 8, "b" * 8, "c"], 4) == ["a" * 8, "b" * 8]
    assert shown(["a" * 8], 0) == []
    assert shown(["", " ", "b"], 5) == ["b"]
    assert shown(["😀" * 4, "b"], 5) == ["😀" * 2]  # two tokens each


@given(st.lists(st.text(max_size=30), max_size=6), st.integers(0, 20))
def test_no_more_than_the_budget_is_read_and_nothing_is_made_up(texts: list[str], budget: int) -> None:
    read = shown(texts, budget)
    assert sum(REPORT_TOKENS.count(read)) <= budget
    kept = [text for text in texts if text.strip()]
    assert all(whole.startswith(part) for whole, part in zip(kept, read, strict=False))
    if sum(REPORT_TOKENS.count(kept)) <= budget:
        assert read == kept
