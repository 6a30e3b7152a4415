"""What is too long is clipped with a mark, keeps to its cap, and short texts stay whole beside long ones."""

from hypothesis import given
from hypothesis import strategies as st

from lcm.context.recall.expansion import clipped
from lcm.token_estimator import Utf16Units

TOKENS = Utf16Units()


def count(text: str) -> int:
    return TOKENS.count([text])[0]


@given(st.lists(st.text("ab \n", max_size=400), min_size=1, max_size=6), st.integers(1, 300))
def test_a_cap_holds_and_what_fits_is_whole(texts: list[str], cap: int) -> None:
    told, whole = clipped(texts, cap, TOKENS), "\n".join(texts)
    assert count(told) <= cap
    assert (told == whole) == (count(whole) <= cap) or "tokens left out]" in told or told == ""


def test_a_short_text_stays_whole_beside_a_long_one_and_the_mark_tells_what_is_missing() -> None:
    told = clipped(["[tool bash] command: ls", "x" * 40_000, "the end"], 100, TOKENS)
    first, long, last = told.split("\n")
    assert (first, last) == ("[tool bash] command: ls", "the end")
    assert long.startswith("xxx")
    kept = long.index(" [... ")
    assert long[kept:] == f" [... {10_000 - count('x' * kept):,} of 10,000 tokens left out]"
    assert 90 <= count(told) <= 100


def test_many_texts_under_a_small_cap_are_clipped_as_one_and_nothing_is_told_where_no_mark_fits() -> None:
    told = clipped(["a sentence of some length"] * 100, 20, TOKENS)
    assert told.startswith("a sent")
    assert told.endswith("tokens left out]")
    assert clipped(["x" * 400], 3, TOKENS) == ""
