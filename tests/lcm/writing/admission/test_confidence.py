"""How well a conversation supports a candidate."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.writing.admission.confidence import f1, spans, support
from tests.lcm.writing.admission.tables import candidate

WORDS = st.lists(st.sampled_from("abcd"), max_size=8)


def test_support_is_the_best_f1_and_missing_words_cost_confidence() -> None:
    found = support(candidate("hello world", content="hello world"), ["hello world"])
    assert (found.best, found.confidence) == pytest.approx((2 * 2 / (4 + 2), 0.7 * 2 / 3 + 0.3))
    found = support(candidate("red kettle"), ["the red door"])
    assert (found.best, found.coverage) == pytest.approx((2 * 1 / (2 + 3), 1 / 2))
    assert found.confidence == pytest.approx(0.7 * 0.4 + 0.3 * 0.5 - 0.25 * 0.5)
    assert support(candidate("!!!"), ["!!!"]) == (0.0, 0.0, 0.0)


@given(left=WORDS, right=WORDS)
def test_f1_is_symmetric_and_1_only_for_equal_lists(left: list[str], right: list[str]) -> None:
    assert f1(left, right) == f1(right, left)
    assert (f1(left, right) == 1) == (left == right != [])
    assert f1(list("abc"), list("axby")) == pytest.approx(2 * (2 / 3) * (2 / 4) / (2 / 3 + 2 / 4))


@given(words=WORDS, lines=st.lists(WORDS, max_size=4), more=WORDS)
def test_more_conversation_never_lowers_confidence(words: list[str], lines: list[list[str]], more: list[str]) -> None:
    said = [" ".join(line) for line in lines]
    one = candidate(" ".join(words))
    assert support(one, [*said, " ".join(more)]).confidence >= support(one, said).confidence


@given(text=st.text(max_size=60))
def test_spans_differ_and_are_trimmed(text: str) -> None:
    found = spans(text)
    assert len(set(found)) == len(found)
    assert all(span and span in text for span in found)
