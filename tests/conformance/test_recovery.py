"""The laws of Recovery, over every choice."""

from itertools import product

import pytest

from lcm.protocols.contract import contract_of
from lcm.protocols.retrieval import Recovery, Signals
from pipelines.config import building
from tests.lcm.retrieval.recovery.turns import NOW
from tests.support.composing import composed
from tests.support.recovery_results import PROMPTS, answers, lost_turns
from tests.support.richest import once_a_class

CHOICES = once_a_class("recovery")


@pytest.fixture(params=CHOICES, scope="module")
def recovery(request: pytest.FixtureRequest) -> Recovery:
    found: Recovery = building.build(composed([f"recovery={request.param}", "embedder=hashing"]), "recovery")
    return found


def test_nothing_is_kept_for_an_answer_that_has_not_failed(recovery: Recovery) -> None:
    for signals in (Signals(False, True, False, False), Signals(True, False, False, False)):
        assert not signals.has_failed
        assert [recovery.reserve_tokens(prompt, signals, 1000) for prompt in PROMPTS] == [0] * len(PROMPTS)


def test_a_reserve_is_never_more_than_the_budget(recovery: Recovery) -> None:
    for prompt, budget in product(PROMPTS, (0, 1, 10, 100, 5000)):
        assert 0 <= recovery.reserve_tokens(prompt, Signals(True, True, True, True), budget) <= budget


@pytest.mark.parametrize("prompt", PROMPTS)
def test_an_order_is_a_permutation_of_some_of_what_was_given(recovery: Recovery, prompt: str) -> None:
    turns, tokens = lost_turns()
    order = recovery.order(prompt, turns, tokens, 100, NOW)
    assert len(set(order)) == len(order)
    assert set(order) <= set(range(len(turns)))
    assert order == recovery.order(prompt, turns, tokens, 100, NOW)


def test_what_is_off_never_says_that_an_answer_has_failed(recovery: Recovery) -> None:
    has_failed = [recovery.signals(answer, True).has_failed for answer in answers(384)]
    assert any(has_failed) != contract_of(recovery).is_off
