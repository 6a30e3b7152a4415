"""The share of a gain that reappears elsewhere."""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import bootstrap

from eval.comparison.pairing import Pairing
from eval.comparison.transfer import Gains, told_measures, transferred
from eval.run import Run
from eval.significance import bootstrap_ratio
from lcm.errors import LcmError
from tests.support.run_folders import side

N = 40
NOTHING, EVERYTHING = [0.0] * N, [1.0] * N
PAIRING = Pairing(resamples=2000)


def sides(folder: Path, values: Sequence[Sequence[float | None]], measure: str = "recall@10") -> list[Run]:
    """Default and tuned here, default and tuned there."""
    workspaces = [f"w{query // 4}" for query in range(N)]
    return [side(folder / f"side {i}", {measure: one}, workspaces=workspaces) for i, one in enumerate(values)]


def share(
    folder: Path, *values: Sequence[float | None], measure: str = "recall@10", pairing: Pairing = PAIRING
) -> Gains:
    a, b, c, d = sides(folder, values, measure)
    (found,) = transferred((a, b), (c, d), told_measures(a, b, ()), pairing).gains
    return found


def test_what_reappears_for_four_of_five_questions_is_a_share_of_four_fifths(tmp_path: Path) -> None:
    """Where questions of a workspace are drawn together its interval is wider."""
    most = [1.0] * 32 + [0.0] * 8
    found = share(tmp_path / "a", NOTHING, EVERYTHING, NOTHING, most)
    assert found.share == pytest.approx(0.8)
    assert found.low is not None and found.high is not None
    assert 0.6 < found.low < 0.8 < found.high < 1
    assert found.here is not None
    assert (found.here["verdict"], found.queries) == ("better", N)
    by_workspace = Pairing(resamples=2000, cluster="workspace")
    together = share(tmp_path / "b", NOTHING, EVERYTHING, NOTHING, most, pairing=by_workspace)
    assert together.share == found.share
    assert together.low is not None and together.low < found.low


def test_a_cost_that_falls_is_a_gain(tmp_path: Path) -> None:
    costs = [[100.0] * N, [50.0] * N, [80.0] * N, [40.0] * N]
    assert share(tmp_path, *costs, measure="tokens@10").share == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("here", "why"),
    [
        ((NOTHING, NOTHING), "nothing changes here"),
        ((EVERYTHING, NOTHING), "the tuned settings are worse here"),
        ((NOTHING, [1.0, *NOTHING[1:]]), r"the gain here is not beyond chance \(p = 1.000, alpha = 0.05\)"),
        ((NOTHING, [1.0] * 5 + [None] * 35), "5 questions are too few to tell a gain here from chance"),
    ],
)
def test_without_a_gain_here_no_share_is_told(
    here: tuple[list[float | None], list[float | None]], why: str, tmp_path: Path
) -> None:
    found = share(tmp_path, *here, NOTHING, EVERYTHING)
    assert found.share is found.low is found.high is None
    assert found.there is not None  # its gain is told all the same
    assert re.match(why, found.why_untold or ""), found.why_untold


def test_a_side_without_a_number_has_no_share(tmp_path: Path) -> None:
    found = share(tmp_path, NOTHING, EVERYTHING, NOTHING, [None] * N)
    assert (found.share, found.here, found.why_untold) == (None, None, "no value of it: side 3")


def test_all_four_must_have_been_asked_the_same(tmp_path: Path) -> None:
    a, b, c, _ = sides(tmp_path, [NOTHING] * 4)
    other = side(tmp_path / "other", {"recall@10": NOTHING}, text="Who?")
    with pytest.raises(LcmError, match="no question was put to all four"):
        transferred((a, b), (c, other), ["recall@10"], PAIRING)
    with pytest.raises(LcmError, match="measures=nothing: no such measure; both evaluations here have: recall@10"):
        told_measures(a, b, ["nothing"])


def test_each_measure_is_corrected_for_the_others(tmp_path: Path) -> None:
    """What one measure alone could tell, none of many can."""
    gain = [1.0] * 6 + [0.0] * 34
    values = {f"nDCG@{k}": NOTHING for k in range(1, 6)}
    columns = enumerate((NOTHING, gain, NOTHING, gain))
    a, b, c, d = (side(tmp_path / str(i), {"recall@10": column, **values}) for i, column in columns)
    for measures, told in ((["recall@10"], 1.0), (["recall@10", *values], None)):
        assert transferred((a, b), (c, d), measures, PAIRING).gains[0].share == told


def test_the_interval_of_a_ratio_is_scipys() -> None:
    rng = np.random.default_rng(3)
    wholes = rng.beta(2, 3, 200)
    parts = wholes * rng.random(200)
    settings = {"paired": True, "n_resamples": 10_000, "method": "percentile", "rng": 1}
    theirs = bootstrap((parts, wholes), lambda a, b, axis: a.mean(axis) / b.mean(axis), **settings).confidence_interval
    assert bootstrap_ratio(parts, wholes, 10_000, 0.95, 0) == pytest.approx((theirs.low, theirs.high), abs=0.005)


def test_where_the_whole_may_be_nothing_the_interval_is_open() -> None:
    wholes = np.array([1.0, -1.0, 0.5, -0.4])
    low, high = bootstrap_ratio(np.array([1.0, 1.0, 1.0, 1.0]), wholes, 500, 0.95, 0)
    assert high == float("inf")
    assert low > 0
    assert np.isnan(bootstrap_ratio(wholes[:1], wholes[:1], 500, 0.95, 0)).all()
