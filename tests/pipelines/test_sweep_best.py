"""The end of a sweep: its best point beside the default, and what to do next."""

import json

from tests.pipelines.conftest import QUICK, Lcm

SMALL = (*QUICK, "measures.retention.budgets=[]", "hydra.sweep.dir=sweep")


def test_where_nothing_can_be_composed_without_what_is_swept_the_first_point_stands_for_it(lcm: Lcm) -> None:
    """Without a decay there is no floor of working documents."""
    done = lcm("evaluate", "-m", "decay=weibull,weibull_slow", "decay.floor_working=0.5", *SMALL)
    assert done.code == 0, done.stderr
    assert "without what is swept nothing can be measured, so points are held against the first: " in done.stderr
    best = json.loads((done.place / "sweep" / "summary.json").read_text())["best"]
    assert best is None or not best["is_default"]
