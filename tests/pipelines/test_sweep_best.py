"""The end of a sweep: its best point beside the default, and what to do next."""

import json
from pathlib import Path

from tests.pipelines.conftest import QUICK, Lcm

SMALL = (*QUICK, "measures.retention.budgets=[]", "hydra.sweep.dir=sweep")


def test_a_point_that_is_better_has_a_star_and_is_offered_for_export(lcm: Lcm, tmp_path: Path) -> None:
    """Against a default that shows one document a query."""
    (tmp_path / "experiment").mkdir()
    (tmp_path / "experiment" / "one.yaml").write_text("# @package _global_\nranking: {stages: {limit: {n: 1}}}\n")
    chosen = (*SMALL, "experiment=one", f"hydra.searchpath=[file://{tmp_path}]")
    done = lcm("evaluate", "-m", "ranking.stages.limit.n=2,40", *chosen)
    assert done.code == 0, done.stderr
    best = json.loads((done.place / "sweep" / "summary.json").read_text())["best"]
    assert (best["label"], best["verdict"], best["stars"]["recall@10"]) == ("ranking.stages.limit.n=40", "better", [1])
    assert "the system, by point; * = best, and significantly better than the default" in done.stdout
    told = f"its folder: sweep/{best['folder']}\nnext: lcm export sweep to=presets/sweep\n      lcm compare sweep\n"
    assert told in done.stdout
    exported = lcm("export", "sweep", "to=preset", "target=yaml", "tracking=none")
    told = f"The sweep's best point: {best['label']}, best by {best['measure']}: sweep/{best['folder']}"
    assert told in exported.stdout, exported.stderr


def test_where_nothing_can_be_composed_without_what_is_swept_the_first_point_stands_for_it(lcm: Lcm) -> None:
    """Without a decay there is no floor of working documents."""
    done = lcm("evaluate", "-m", "decay=weibull,weibull_slow", "decay.floor_working=0.5", *SMALL)
    assert done.code == 0, done.stderr
    assert "without what is swept nothing can be measured, so points are held against the first: " in done.stderr
    best = json.loads((done.place / "sweep" / "summary.json").read_text())["best"]
    assert best is None or not best["is_default"]
