"""Two passes against numpy: both sides answer alike, and one that does not is found out."""

import math
from dataclasses import replace
from typing import Any

import pytest

from eval.benchmark.timing import DisagreementError
from lcm.retrieval.decay.exponential import Exponential
from lcm.retrieval.decay.none import NoDecay
from lcm.retrieval.fusion.two_pass import TwoPass
from tests.support.numpy_twins import two_pass
from tests.support.numpy_twins.fused import fused
from tests.support.numpy_twins.two_pass import TwoPassScore

FUSION = TwoPass(Exponential(1e-5, 1e-7, 1e-5), k1=20, theta1=0.55, authority_weight=0.1)
CHOICE = TwoPassScore(FUSION, documents=400, queries=30, candidates=40)


@pytest.mark.full
@pytest.mark.parametrize("changes", [{}, {"rules": "original"}, {"k2": 20, "kappa": 2.0}, {"theta1": 0.99}])
def test_it_agrees_and_gives_finite_ratios(changes: dict[str, Any]) -> None:
    found = replace(CHOICE, fusion=replace(FUSION, **changes)).run(1, 0)
    assert [comparison.name for comparison in found] == ["two-pass", "two-pass, without words"]
    assert all(math.isfinite(comparison.ratio) and comparison.ratio > 0 for comparison in found)
    assert [comparison.target for comparison in found] == [two_pass.TARGET, None]


def test_every_part_of_the_score_finds_work() -> None:
    made = fused(documents=400, queries=30, candidates=40, dim=16, seed=0)
    whole = FUSION(made.frame, made.batch)
    assert 0 < len(whole) < 30 * FUSION.k2  # the floor leaves some queries less than the second pass would
    for change in ({"kappa": 0.0}, {"frequency_weight": 0.0}, {"recency": NoDecay()}, {"k1": 8}, {"theta1": 0.2}):
        other = replace(FUSION, **change)(made.frame, made.batch)
        assert not other.select("document_id", "score").equals(whole.select("document_id", "score")), change


@pytest.mark.full
@pytest.mark.parametrize("change", [{"k2": 7}, {"kappa": 0.31}, {"frequency_weight": 0.21}, {"theta1": 0.6}])
def test_others_passes_are_found_out(monkeypatch: pytest.MonkeyPatch, change: dict[str, Any]) -> None:
    best = two_pass.best
    monkeypatch.setattr(two_pass, "best", lambda arrays, fusion: best(arrays, replace(fusion, **change)))
    with pytest.raises(DisagreementError, match="two passes and those in numpy gave different"):
        CHOICE.run(1, 0)


def test_what_numpy_does_not_know_is_refused() -> None:
    with pytest.raises(ValueError, match=r"recency must decay exponentially .* got NoDecay\(\): decay=authority"):
        replace(CHOICE, fusion=replace(FUSION, recency=NoDecay()))
    with pytest.raises(ValueError, match="queries must be >= 1, got 0"):
        replace(CHOICE, queries=0)
    with pytest.raises(ValueError, match=r"candidates must be <= documents, whole pairs of them \(400\), got 401"):
        replace(CHOICE, candidates=401)
