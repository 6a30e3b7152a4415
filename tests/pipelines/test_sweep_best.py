"""The end of a sweep: its best point beside the default, and what to do next."""

import json

import polars as pl
import pytest

from eval.dataset.sample import bundled_directory
from eval.sweep.gain import PAIRED
from tests.pipelines.conftest import QUICK, Lcm

SMALL = (*QUICK, "measures.retention.budgets=[]", "hydra.sweep.dir=sweep")


def test_where_nothing_can_be_composed_without_what_is_swept_the_first_point_stands_for_it(lcm: Lcm) -> None:
    """Without a decay there is no floor of working documents."""
    done = lcm("evaluate", "-m", "decay=weibull,weibull_slow", "decay.floor_working=0.5", *SMALL)
    assert done.code == 0, done.stderr
    assert "without what is swept nothing can be measured, so points are held against the first: " in done.stderr
    best = json.loads((done.place / "sweep" / "summary.json").read_text())["best"]
    assert best is None or not best["is_default"]


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
