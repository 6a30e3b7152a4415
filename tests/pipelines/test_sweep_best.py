"""The end of a sweep: its best point beside the default, and what to do next."""

import json

import polars as pl
import pytest

from eval.dataset.sample import bundled_directory
from eval.sweep.gain import PAIRED
from tests.pipelines.conftest import QUICK, Lcm

SMALL = (*QUICK, "measures.retention.budgets=[]", "hydra.sweep.dir=sweep")


@pytest.mark.full
def test_a_default_that_is_no_point_is_run_beside_them_and_stands_in_no_table(lcm: Lcm) -> None:
    command = ("evaluate", "-m", "fusion.dense_weight=0.2,0.4", *SMALL)
    done = lcm(*command)
    assert done.code == 0, done.stderr
    assert "2 of 2 points kept: sweep\nbest by " in done.stdout
    assert "against the default, " in done.stdout
    best = json.loads((done.place / "sweep" / "summary.json").read_text())["best"]
    points = pl.read_parquet(done.place / "sweep" / "points.parquet")
    assert best["is_default"]
    assert best["baseline"] not in points["folder"]
    assert "dense_weight: 0.7" in (done.place / "sweep" / best["baseline"] / "config.yaml").read_text()
    assert len(pl.read_parquet(done.place / "sweep" / "paired.parquet")) == 2
    assert (
        f"its folder: sweep/{best['folder']}\nnext: lcm export sweep to=presets/sweep\n      lcm compare sweep\n"
        in done.stdout
    )
    again = lcm(*command)
    assert again.stdout.startswith("2 of 2 points are finished in sweep, nothing is left to run")


@pytest.mark.full
def test_where_nothing_can_be_composed_without_what_is_swept_the_first_point_stands_for_it(lcm: Lcm) -> None:
    """Without a decay there is no floor of working documents."""
    done = lcm("evaluate", "-m", "decay=weibull,weibull_slow", "decay.floor_working=0.5", *SMALL)
    assert done.code == 0, done.stderr
    assert "without what is swept nothing can be measured, so points are held against the first: " in done.stderr
    best = json.loads((done.place / "sweep" / "summary.json").read_text())["best"]
    assert best is None or not best["is_default"]


def test_the_folder_of_another_sweep_is_refused(lcm: Lcm) -> None:
    """Other values, another setting beside the same values, another key: nothing there is touched."""
    first = lcm("evaluate", "-m", "fusion.dense_weight=0.2,0.4", *SMALL)
    assert first.code == 0, first.stderr
    kept = {path: path.stat().st_mtime_ns for path in (first.place / "sweep").rglob("*.*")}
    same = "fusion.dense_weight=0.2,0.4"
    for other in (
        ["fusion.dense_weight=0.8,0.9"],
        [same, "ranking.stages.limit.n=7"],
        ["fusion.lexical_weight=0.2,0.4"],
    ):
        done = lcm("evaluate", "-m", *other, *SMALL)
        assert done.code == 2
        assert done.stderr.startswith("lcm: hydra.sweep.dir=sweep holds 2 points of another sweep, as ")
        assert done.stderr.endswith("name another folder, or sweep over them too\n")
    assert {path: path.stat().st_mtime_ns for path in (first.place / "sweep").rglob("*.*")} == kept


@pytest.mark.full
def test_compactions_are_chosen_by_what_survives_of_each_conversation(lcm: Lcm) -> None:
    sessions = bundled_directory() / "transcripts"
    done = lcm(
        "evaluate", "-m", str(sessions), "measures=survival", "measures.survival.budgets=[500]", "embedder=hashing",
        "compaction=lossless", "assembly=lossless", "summarizer=extractive,truncate", "compaction.fresh_tail_count=4",
        "assembly.fresh_tail_count=4", "compaction.leaf_chunk_tokens=500", "compaction.min_leaf_tokens=0",
        "hydra.sweep.dir=sweep",
    )  # fmt: skip
    assert done.code == 0, done.stderr
    assert "best by survival.retained@500: " in done.stdout
    assert "equal by every mean" not in done.stdout
    paired = pl.read_parquet(done.place / "sweep" / PAIRED)
    assert (paired["measure"].unique().to_list(), paired["n"].max()) == (["survival.retained@500"], 4)
    compared = lcm("compare", "sweep", "measures=survival.retained@500")
    assert compared.code == 0, compared.stderr
    assert "4 conversations of 4, paired" in compared.stdout
