"""The laws of `TokenEstimator`, over every YAML of its group."""

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.protocols.models import TokenEstimator
from pipelines.config import building
from tests.support.composing import composed
from tests.support.richest import once_a_class

CHOICES = once_a_class("token_estimator")


@cache
def estimator(choice: str) -> TokenEstimator:
    return building.build(composed([f"token_estimator={choice}"]), "token_estimator")


@pytest.mark.parametrize("choice", CHOICES)
def test_the_empty_text_has_no_token(choice: str) -> None:
    assert estimator(choice).count(["", ""]) == [0, 0]


@pytest.mark.parametrize("choice", CHOICES)
@given(texts=st.lists(st.text(st.characters())))
def test_counts_are_whole_positive_and_do_not_depend_on_the_batch(choice: str, texts: list[str]) -> None:
    counts = estimator(choice).count(texts)
    assert counts == [estimator(choice).count([text])[0] for text in texts]
    assert all(
        isinstance(count, int) and count >= (1 if text else 0) for count, text in zip(counts, texts, strict=True)
    )


@pytest.mark.parametrize("choice", CHOICES)
@given(text=st.text(), more=st.text())
def test_more_text_never_has_fewer_tokens(choice: str, text: str, more: str) -> None:
    shorter, longer = estimator(choice).count([text, text + more])
    assert shorter <= longer
