"""Which arms a run's system is better and worse than: as a comparison of two runs would say."""

import re
from pathlib import Path

import polars as pl
import pytest

from eval.comparison.control_arms import against_controls
from eval.comparison.pairing import Pairing
from eval.comparison.side import read_side
from eval.experiment.run_folder import read_summary
from pipelines import cli
from tests.pipelines.conftest import QUICK


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("arms")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        patch.setenv("LCM_CACHE_DIR", str(place / "cache"))
        settings = [one for one in QUICK if one != "arms=none"]
        assert cli.run(["evaluate", *settings, "measures.retention.budgets=[]", "hydra.run.dir=run"]) == 0
    return place / "run"


def test_each_arm_is_named_once_with_its_difference(run: Path) -> None:
    summary = read_summary(run)
    told = against_controls(run, summary)
    assert told is not None
    assert told.startswith("by recall@10 the system is ")
    own = summary["measures"]["recall@10"]["value"]
    for arm, measures in summary["arms"].items():
        (difference,) = re.findall(rf"\b{arm} ([+-]\d\.\d+)", told)
        assert float(difference) == pytest.approx(own - measures["recall@10"]["value"], abs=0.0006)
    better, worse = (told.partition(f"{word} than ")[2].partition(";")[0] for word in ("better", "worse"))
    assert "random" in better
    assert "oracle" in worse


def test_the_verdicts_are_corrected_over_all_arms(run: Path) -> None:
    arms, pairing = list(read_summary(run)["arms"]), Pairing()
    system = read_side(run, "system")
    rows = pl.concat([pairing.rows(read_side(run, arm, arm), [system], ["recall@10"]) for arm in arms])
    corrected = pairing.corrected(rows)
    assert (corrected["p_holm"] >= rows["p_holm"]).all()
    assert corrected["p_holm"].max() <= 1
    assert corrected["p_holm"].min() == pytest.approx(rows["p"].min() * len(arms))


def test_a_run_without_arms_says_nothing(run: Path) -> None:
    assert against_controls(run, {**read_summary(run), "arms": {}}) is None
