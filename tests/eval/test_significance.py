"""Bootstrap intervals of means."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import bootstrap, permutation_test

from eval.significance import bootstrap_means, holm, least_p_value, sign_flip_p_values


def test_the_interval_is_scipys() -> None:
    values = np.random.default_rng(1).beta(2, 3, size=(200, 2))
    low, high = bootstrap_means(values, 20_000, 0.9, seed=0)
    for column in range(2):
        theirs = bootstrap(
            (values[:, column],), np.mean, n_resamples=20_000, confidence_level=0.9, method="percentile", rng=1
        ).confidence_interval
        assert (low[column], high[column]) == pytest.approx((theirs.low, theirs.high), abs=1e-3)


@pytest.mark.parametrize("clusters", [None, np.array([1, 1])])
def test_one_query_or_cluster_has_no_interval(clusters: np.ndarray | None) -> None:
    values = np.array([[0.5]] if clusters is None else [[0.5], [0.7]])
    assert np.isnan(bootstrap_means(values, 100, 0.95, 0, clusters)).all()


def test_clusters_are_drawn_whole() -> None:
    """Two clusters of 3 and 1 queries: a resample is either, or both, and its mean is over the queries in it."""
    values = np.array([[1.0], [1.0], [1.0], [0.0]])
    low, high = bootstrap_means(values, 400, 0.9, 0, clusters=np.array([7, 7, 7, 2]))
    assert (low[0], high[0]) == (0.0, 1.0)
    middle = bootstrap_means(values, 400, 0.1, 0, clusters=np.array([7, 7, 7, 2]))
    assert middle[0][0] == middle[1][0] == 3 / 4


def test_clusters_of_one_are_no_clusters_and_equal_seeds_give_equal_intervals() -> None:
    values = np.random.default_rng(3).random((40, 2))
    alone = np.arange(40)
    assert np.array_equal(bootstrap_means(values, 500, 0.9, 0, alone), bootstrap_means(values, 500, 0.9, 0))
    assert np.array_equal(sign_flip_p_values(values, 500, 0, alone), sign_flip_p_values(values, 500, 0))


@given(st.lists(st.sampled_from([-1.0, -0.375, -0.5, 0.0, 0.125, 0.5, 0.375, 1.0]), min_size=2, max_size=9))
def test_an_exact_p_value_is_scipys(differences: list[float]) -> None:
    """Over sums without an error of rounding, by which scipy's may miss a tie."""
    theirs = permutation_test(
        (np.array(differences),), np.sum, permutation_type="samples", n_resamples=np.inf, alternative="two-sided"
    )
    ours = sign_flip_p_values(np.array(differences)[:, None], resamples=2**9, seed=0)
    assert ours[0] == pytest.approx(theirs.pvalue)


def test_sums_that_differ_by_rounding_alone_are_a_tie() -> None:
    """1/3 + 1/3 + 1/3 + 1/2 - 3/2 is no whole 0 in every order, and every assignment of signs reaches 0."""
    differences = np.array([[-0.5, -0.5, -0.5, 1 / 3, 1 / 3, 0.5, 1 / 3]]).T
    assert sign_flip_p_values(differences, 2**9, 0)[0] == 1


def test_a_drawn_p_value_is_near_scipys() -> None:
    differences = np.random.default_rng(5).normal(0.17, 1, size=(250, 1))
    theirs = permutation_test((differences[:, 0],), np.sum, permutation_type="samples", n_resamples=20_000, rng=1)
    assert 0.01 < theirs.pvalue < 0.2
    assert sign_flip_p_values(differences, 20_000, seed=0)[0] == pytest.approx(theirs.pvalue, abs=0.01)


def test_the_p_value_counts_assignments_of_signs() -> None:
    """1 + 1 + 1 = 3 is reached by all signs alike: 2 of 2**3; the fourth query differs in nothing."""
    column = np.array([[1.0], [1.0], [1.0], [0.0]])
    assert sign_flip_p_values(column, 1000, 0)[0] == 2 / 2**3
    assert sign_flip_p_values(-column, 1000, 0)[0] == 2 / 2**3
    clusters = np.array([0, 0, 1, 1])  # sums 2 and 1: |2 + 1| is reached by 2 of 4
    assert sign_flip_p_values(column, 1000, 0, clusters)[0] == 2 / 4


def test_p_is_1_where_nothing_differs_and_never_0() -> None:
    assert sign_flip_p_values(np.zeros((30, 2)), 100, 0).tolist() == [1.0, 1.0]
    assert sign_flip_p_values(np.tile([[1.0], [-1.0]], (150, 1)), 300, 0)[0] == 1, "every draw reaches a sum of 0"
    assert sign_flip_p_values(np.ones((300, 1)), 999, 0)[0] == 1 / 1000


def test_the_least_p_value_is_that_of_differences_which_all_agree() -> None:
    assert least_p_value(5, 10_000) == sign_flip_p_values(np.ones((5, 1)), 10_000, 0)[0] == 2 / 2**5
    assert least_p_value(50, 999) == 1 / 1000


def test_holm_multiplies_step_by_step_never_falls_and_is_at_most_1() -> None:
    found = holm(np.array([0.04, 0.01, 0.03, 0.9]))
    assert found.tolist() == pytest.approx([0.03 * 3, 0.01 * 4, 0.03 * 3, 0.9])  # 0.04 * 2 = .08 is raised to .09
    assert holm(np.array([0.6, 0.7])).tolist() == [1.0, 1.0]
    untested = holm(np.array([0.02, np.nan, 0.03])).tolist()
    assert untested == pytest.approx([0.02 * 2, np.nan, 0.02 * 2], nan_ok=True)
