"""Bootstrap intervals of means."""

import os
import subprocess
import sys

import numpy as np
import pytest
from scipy.stats import bootstrap

from eval.significance import bootstrap_means
from tests.conftest import ROOT


def test_the_interval_is_scipys() -> None:
    values = np.random.default_rng(1).beta(2, 3, size=(200, 2))
    low, high = bootstrap_means(values, 20_000, 0.9, seed=0)
    for column in range(2):
        theirs = bootstrap(
            (values[:, column],), np.mean, n_resamples=20_000, confidence_level=0.9, method="percentile", rng=1
        ).confidence_interval
        assert (low[column], high[column]) == pytest.approx((theirs.low, theirs.high), abs=1e-3)


def test_equal_seeds_give_equal_intervals() -> None:
    values = np.random.default_rng(2).random((50, 3))
    assert np.array_equal(bootstrap_means(values, 600, 0.9, 7), bootstrap_means(values, 600, 0.9, 7))


def test_one_query_has_no_interval() -> None:
    low, high = bootstrap_means(np.array([[0.5]]), 100, 0.95, 0)
    assert np.isnan(low).all()
    assert np.isnan(high).all()


def test_intervals_do_not_depend_on_the_number_of_threads() -> None:
    code = (
        "import numpy as np; from eval.significance import bootstrap_means; "
        "v = np.random.default_rng(0).random((997, 41)); "
        "print(np.concatenate(bootstrap_means(v, 300, 0.95, 0)).tobytes().hex())"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads},
            capture_output=True,
            check=True,
            cwd=ROOT,
        ).stdout
        for threads in ("1", "2")
    }
    assert len(printed) == 1
