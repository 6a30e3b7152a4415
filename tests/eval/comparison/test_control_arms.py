"""Which arms a run's system is better and worse than: as a comparison of two runs would say."""

import re
from pathlib import Path

import polars as pl
import pytest

from eval.comparison.comparison import against_controls
from eval.comparison.pairing import Pairing, comparable
from eval.run import Run, read_summary
from eval.table import interval
from pipelines import cli
from tests.pipelines.conftest import QUICK


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("arms")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        patch.setenv("LCM_CACHE_DIR", str(place / "cache"))
        settings = [one for one in QUICK if one != "arms=none"]
        answered = ["measures=[default,answers]", "measures.retention.budgets=[]", "hydra.run.dir=run"]
        assert cli.run(["evaluate", *settings, *answered]) == 0
    return place / "run"


def test_each_arm_is_named_once_with_its_difference(run: Path) -> None:
    summary = read_summary(run)
    told, _ = against_controls(Run(run))
    assert told.startswith("by recall@10 the system is ")
    own = summary["measures"]["recall@10"]["value"]
    for arm, measures in summary["arms"].items():
        (difference,) = re.findall(rf"\b{arm} ([+-]\d\.\d+)", told)
        assert float(difference) == pytest.approx(own - measures["recall@10"]["value"], abs=0.0006)
    better, worse = (told.partition(f"{word} than ")[2].partition(";")[0] for word in ("better", "worse"))
    assert "random" in better
    assert "oracle" in worse


def test_an_arm_is_told_as_a_comparison_of_two_systems_would_tell_it(run: Path) -> None:
    summary = read_summary(run)
    told, *_ = against_controls(Run(run, summary={**summary, "arms": {"bm25": summary["arms"]["bm25"]}}))
    system, values = comparable(run, "system"), pl.read_parquet(run / "control_per_query.parquet")
    arm = system.having("bm25", values=values.filter(arm="bm25").select("query_id", "measure", "value"))
    (row,) = Pairing().rows(arm, [system], ["recall@10"]).iter_rows(named=True)
    word = {"better": "better than", "worse": "worse than", "cannot tell": "not told from"}[row["verdict"]]
    assert told == f"by recall@10 the system is {word} bm25 {row['difference']:+.3f} {interval(row)}"


def test_answers_have_a_line_of_their_own_and_a_run_without_arms_none(run: Path) -> None:
    summary = read_summary(run)
    _, answers = against_controls(Run(run))
    assert answers.startswith("by squad_F1 the system is ")
    difference = summary["measures"]["squad_F1"]["value"] - summary["arms"]["oracle"]["squad_F1"]["value"]
    assert f"oracle {difference:+.3f} " in answers
    assert against_controls(Run(run, summary={**summary, "arms": {}})) == []
