"""Sides against a baseline: the numbers are scipy's, and the words follow from them."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import bootstrap, permutation_test

from eval.comparison.pairing import PAIRED_SCHEMA, Pairing, shared_queries
from eval.run import Run
from eval.significance import holm
from lcm.errors import LcmError
from tests.support.run_folders import side

Values = dict[str, Sequence[float | None]]


@pytest.fixture
def sides(tmp_path: Path) -> Any:
    def made(*values: Values, **more: Any) -> list[Run]:
        return [side(tmp_path / f"side{i}", one, **more) for i, one in enumerate(values)]

    return made


def test_p_and_interval_are_those_of_scipy(sides: Any) -> None:
    rng = np.random.default_rng(0)
    before, after = rng.random(60), np.clip(rng.random(60) + 0.1, 0, 1)
    base, other = sides({"recall@10": before}, {"recall@10": after})
    (row,) = Pairing(resamples=20_000).rows(base, [other], ["recall@10"]).to_dicts()
    d = after - before
    theirs = permutation_test((d,), np.mean, permutation_type="samples", n_resamples=20_000, rng=1)
    assert row["p"] == pytest.approx(theirs.pvalue, abs=0.01)
    interval = bootstrap((d,), np.mean, n_resamples=20_000, method="percentile", rng=1).confidence_interval
    assert (row["low"], row["high"]) == pytest.approx((interval.low, interval.high), abs=3e-3)
    assert (row["n"], row["units"], row["changed"], row["difference"]) == (60, 60, 60, pytest.approx(d.mean()))
    assert row["verdict"] == ("better" if theirs.pvalue < 0.05 else "cannot tell")


@pytest.mark.parametrize(("measure", "more"), [("recall@10", "better"), ("tokens@10", "worse")])
def test_which_way_is_better_is_the_measures_own(sides: Any, measure: str, more: str) -> None:
    low, high = sides({measure: [0.2] * 20}, {measure: [0.4] * 20})
    other_way = {"better": "worse", "worse": "better"}[more]
    assert Pairing().rows(low, [high, low], [measure])["verdict"].to_list() == [more, "same"]
    assert Pairing().rows(high, [low], [measure])["verdict"].to_list() == [other_way]


def test_holm_corrects_over_every_side_measure_and_category(sides: Any) -> None:
    rng = np.random.default_rng(3)
    values = [{name: rng.random(40) for name in ("recall@10", "MRR")} for _ in range(3)]
    base, *others = sides(*values, categories=["a"] * 20 + ["b"] * 17 + ["c"] * 3)
    rows = Pairing(resamples=999).rows(base, others, ["recall@10", "MRR"], by_category=True)
    assert list(rows.columns) == list(PAIRED_SCHEMA)
    assert len(rows) == 2 * 2 * 4
    tested = rows.drop_nulls("p")
    assert len(tested) == 2 * 2 * 3  # `c` has three queries
    assert tested["p_holm"].to_list() == holm(tested["p"].to_numpy()).tolist()
    assert set(rows.filter(group="c")["verdict"]) == {"cannot tell"}


def test_means_are_of_the_queries_that_are_compared_and_a_measure_that_a_side_lacks_gives_no_row(sides: Any) -> None:
    base, other = sides({"recall@10": [1.0] * 12, "MRR": [1.0] * 12}, {"recall@10": [1.0] * 12})
    assert Pairing().rows(base, [other], ["MRR", "recall@10"])["measure"].to_list() == ["recall@10"]
    (one,) = sides({"recall@10": [1.0, 0.0, 0.5, None], "MRR": [None] * 4})
    told = Pairing().means(one, one.queries[:3], ["recall@10", "MRR"])
    assert told == {"recall@10": {"value": 0.5, "n": 3, "low": 0.0, "high": 1.0}}


def test_shared_queries_are_alike_in_words_and_evidence(tmp_path: Path) -> None:
    base, fewer = side(tmp_path / "base", {"MRR": [1.0] * 5}), side(tmp_path / "fewer", {"MRR": [1.0] * 3})
    assert shared_queries([base, fewer])["query_id"].to_list() == ["q000", "q001", "q002"]
    assert shared_queries([base, side(tmp_path / "other", {"MRR": [1.0] * 5}, text="Who?")]).is_empty()
    rows = Pairing(least_queries=2).rows(base, [fewer], ["MRR"], shared_queries([base, fewer]))
    assert rows["n"].to_list() == [3]


def test_draws_that_no_test_could_pass_with_are_refused(sides: Any) -> None:
    base, other = sides({"recall@10": [1.0] * 60}, {"recall@10": [0.0] * 60})
    with pytest.raises(LcmError, match=re.escape("resamples=79 is too few: with 4 tests, Holm's correction asks for")):
        Pairing(resamples=79).rows(base, [other] * 4, ["recall@10"])
    assert len(Pairing(resamples=80).rows(base, [other] * 4, ["recall@10"])) == 4
