"""Prediction-powered means: the classical ones without a model, right as often as they say, and never much wider."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from eval.judging.judgements import powered_mean

SHARES = st.lists(st.floats(0, 1), min_size=2, max_size=20)


@given(SHARES, SHARES, st.floats(0.5, 0.99))
def test_without_weight_it_is_the_classical_interval(
    people: list[float], others: list[float], confidence: float
) -> None:
    found = powered_mean(people, people, others, confidence, weight=0)
    error = stats.sem(people)
    half = stats.norm.ppf((1 + confidence) / 2) * error
    assert found.value == pytest.approx(np.mean(people))
    assert (found.low, found.high) == pytest.approx((np.mean(people) - half, np.mean(people) + half))
    assert (found.n, found.others) == (len(people), len(others))


def test_the_arithmetic_of_full_weight() -> None:
    """mean(y - f) + mean(g); var(y - f) / n + var(g) / m."""
    y, f, g = [1.0, 0.0, 0.5], [0.8, 0.1, 0.6], [0.9, 0.4, 0.2, 0.7]
    found = powered_mean(y, f, g, weight=1)
    apart = np.subtract(y, f)
    assert found.value == pytest.approx(apart.mean() + np.mean(g))
    error = np.sqrt(apart.var(ddof=1) / 3 + np.var(g, ddof=1) / 4)
    assert found.high - found.value == pytest.approx(1.959964 * error, rel=1e-5)


def drawn(rng: np.random.Generator, n: int, m: int, noise: float, bias: float) -> tuple[np.ndarray, ...]:
    """What people would say of n + m queries (mean .5), and a model that is off by `bias` and some noise."""
    truth = rng.beta(1, 1, n + m)
    model = np.clip(truth + bias + noise * rng.standard_normal(n + m), 0, 1)
    return truth[:n], model[:n], model[n:]


@pytest.mark.parametrize("bias", [0.0, 0.2])
@pytest.mark.parametrize("noise", [0.1, 10.0])
def test_95_of_100_intervals_hold_the_mean_however_wrong_the_model_is(bias: float, noise: float) -> None:
    """Of 1,000: within four standard errors of .95, less .01 for a normal interval of 60 values."""
    rng = np.random.default_rng(0)
    samples = [drawn(rng, 60, 600, noise, bias) for _ in range(1000)]
    found = [powered_mean(*sample) for sample in samples]
    covered = np.mean([one.low <= 0.5 <= one.high for one in found])
    assert 0.95 - 0.01 - 4 * np.sqrt(0.95 * 0.05 / 1000) < covered < 0.95 + 4 * np.sqrt(0.95 * 0.05 / 1000)
    width = np.mean([one.high - one.low for one in found])
    classical = np.mean([one.high - one.low for one in (powered_mean(*sample, weight=0) for sample in samples)])
    assert width < (0.6 * classical if noise < 1 else 1.001 * classical)
    weight = np.mean([one.weight for one in found])
    assert weight > 0.7 if noise < 1 else weight < 0.3


def test_a_constant_model_has_no_weight_and_too_little_is_refused() -> None:
    people = [1.0, 0.25, 0.0]
    found, alone = powered_mean(people, [0.5] * 3, [0.5] * 5), powered_mean(people, people, [])
    assert found.weight == 0
    assert (found.value, found.low, found.high) == (alone.value, alone.low, alone.high)
    with pytest.raises(ValueError, match="at least 2 queries, got 1"):
        powered_mean([1.0], [1.0], [0.5, 0.5])
    with pytest.raises(ValueError, match="one value for each of people's 2 queries, got 1"):
        powered_mean([1.0, 0.0], [1.0], [0.5, 0.5])
