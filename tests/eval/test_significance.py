"""Bootstrap intervals of means."""

import numpy as np

from eval.significance import bootstrap_means


def test_the_interval_is_close_to_the_normal_one() -> None:
    values = np.random.default_rng(1).normal(0.5, 0.2, size=(400, 2))
    low, high = bootstrap_means(values, 2000, 0.95, seed=0)
    half = 1.96 * values.std(axis=0, ddof=1) / np.sqrt(400)
    assert np.allclose(low, values.mean(axis=0) - half, atol=0.004)
    assert np.allclose(high, values.mean(axis=0) + half, atol=0.004)


def test_equal_seeds_give_equal_intervals() -> None:
    values = np.random.default_rng(2).random((50, 3))
    assert np.array_equal(bootstrap_means(values, 100, 0.9, 7), bootstrap_means(values, 100, 0.9, 7))


def test_one_query_has_no_interval() -> None:
    low, high = bootstrap_means(np.array([[0.5]]), 100, 0.95, 0)
    assert np.isnan(low).all()
    assert np.isnan(high).all()
