"""What a study is told: objectives and settings."""

import math
import re
from pathlib import Path
from typing import Any

import pytest

from eval.measures.latency import Latency
from eval.measures.retention import Retention
from eval.measures.retrieval import Retrieval
from eval.study.settings import Objective, Study, check_pick, overall, unmeasured
from lcm.errors import LcmError

RECALL = {"measure": "recall@10", "direction": "maximize"}
COST = {"measure": "tokens@10", "direction": "minimize", "within": 2}


def test_objectives_stand_in_the_order_of_their_importance() -> None:
    assert Study([RECALL, COST]).wanted() == (
        Objective("recall@10", "maximize"),
        Objective("tokens@10", "minimize", 2.0),
    )


@pytest.mark.parametrize("verdict", ["worse", "cannot tell", "same", None])
def test_a_pick_that_is_no_gain_is_asked_for_by_name(verdict: str | None) -> None:
    best = {"folder": "2", "label": "trial 4", "baseline": "default", "is_default": True, "verdict": verdict}
    for folder, what in (
        (Path("s"), "the trial, as s/trials/2 (trial 4, the pick)"),
        (None, "the run of trial 4, the pick"),
    ):
        told = f"s: no setting is significantly better than the default: keep it, or name {what}"
        with pytest.raises(LcmError, match=re.escape(told)):
            check_pick("s", {"tags": {"best_trial": "4"}, "best": best}, folder)
    with pytest.raises(LcmError, match=re.escape("as s/trials/4 (trial 4, the pick)")):
        check_pick("s", {"tags": {"best_trial": "4"}, "best": None}, Path("s"))
    check_pick("s", {"tags": {"best_trial": "4"}, "best": best | {"verdict": "better"}})


LATENCY = {"measure": "latency/total_p50_ms", "direction": "minimize"}


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"name": "a/b"}, "name must be made of letters"),
        ({"trials": 0}, "trials must be >= 1, got 0"),
        ({"folds": 1}, "folds must be workspace or a number >= 2, got 1"),
        ({"seed": -1}, "seed must be >= 0"),
        ({"timeout_s": math.nan}, "timeout_s must be > 0 or null, got nan"),
        ({"objectives": []}, "objectives must not be empty"),
        ({"objectives": [RECALL, RECALL]}, "objectives: each measure may stand there once"),
        ({"objectives": [{"measure": "recall@10"}]}, "objectives: direction is missing"),
        ({"objectives": [{**RECALL, "weight": 1}]}, "objectives: 'weight' is no key of an objective"),
        ({"objectives": [{**RECALL, "direction": "up"}]}, "objectives: direction must be one of: maximize, minimize"),
        ({"objectives": [{**RECALL, "within": -1}]}, "objectives: within must be >= 0, got -1"),
        ({"objectives": [{**RECALL, "within": math.nan}]}, "objectives: within must be >= 0, got nan"),
        ({"objectives": [RECALL, COST], "pruner": "halving"}, "pruner=halving needs a single objective, got 2"),
        ({"objectives": [LATENCY], "pruner": "halving"}, "pruner=halving: latency/total_p50_ms is known of whole runs"),
    ],
)
def test_what_cannot_be_is_refused(settings: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError) as refused:
        Study(**{"objectives": [RECALL], **settings})
    assert str(refused.value).startswith(told)


@pytest.mark.parametrize(
    ("measure", "remedy"),
    [
        ("context_tokens@4000", "set measures.retention.budgets=[4000]"),
        ("latency/total_p50_ms", "set measures.latency.queries=100"),
        ("recall@7", "add it to measures.retrieval.names"),
        ("recal@10", "choose one of: recall@5"),
    ],
)
def test_a_measure_that_nothing_measures_is_told_with_what_would(measure: str, remedy: str) -> None:
    measures = {"retrieval": Retrieval(), "retention": Retention([]), "latency": Latency(queries=0)}
    told = unmeasured([Objective("recall@10", "maximize"), Objective(measure, "minimize")], measures)
    assert told is not None
    assert f"nothing measures {measure!r} here; {remedy}" in told


def test_what_is_switched_on_is_measured() -> None:
    measures = {"retrieval": Retrieval(), "retention": Retention([4000]), "latency": Latency(queries=5)}
    wanted = ["session.recall@5", "tokens@10", "context_tokens@4000", "latency/total_p50_ms"]
    assert unmeasured([Objective(name, "minimize") for name in wanted], measures) is None
    assert "session.tokens@10" not in measures["retrieval"].value_names()


def test_an_objective_is_read_from_a_summary() -> None:
    summary = {"measures": {"recall@10": {"value": 0.5}}, "timing": {"latency_ms": {"total": {"p50_ms": 3.0}}}}
    read = [overall(summary, Objective(name, "minimize")) for name in ("recall@10", "latency/total_p50_ms", "MRR")]
    assert read == [0.5, 3.0, None]
