"""Which measures of a run are metrics: those it is told by, and every one that somebody asked for."""

from eval.measures.names import CONTEXT_MEASURES
from eval.measures.retention import Retention
from eval.measures.retrieval import DEFAULT_NAMES
from eval.study.results import PointResult, changed_measures, compared_by
from eval.tracking.entry import headline_measures, metrics

USUAL = [*DEFAULT_NAMES, *(f"session.{name}" for name in DEFAULT_NAMES if name[-1] != "t" and "tokens" not in name)]
CONTEXTS = [f"{kind}@{budget}" for budget in Retention().budgets for kind in CONTEXT_MEASURES]


def test_a_usual_run_has_few_and_what_was_asked_for_is_always_among_them() -> None:
    assert len(headline_measures([*USUAL, *CONTEXTS])) <= 25
    asked = ["recall@3", "nDCG@7", "session.recall@3", "repaired.recall@3", "recall@500t", "retained@500"]
    for other in (["sessions@2", "politeness"], asked):  # from outside; another cutoff and another budget
        assert headline_measures([*USUAL, *other])[-len(other) :] == other
    assert "MAP" not in headline_measures(USUAL)
    assert "MAP" in headline_measures(USUAL, ["MAP"]), "what a study searches by"
    sessions = ["session.nDCG@10", "session.MAP", "session.recall@10"]  # where no message is judged
    assert headline_measures(sessions) == ["session.nDCG@10", "session.recall@10"]


def test_whatever_a_sweep_is_sorted_by_is_a_metric_of_its_points() -> None:
    """Of queries by its name; of contexts and candidates what the shares are made of."""
    entry = {"value": 0.5, "n": 3, "low": None, "high": None}
    measures = dict.fromkeys([*USUAL, *CONTEXTS], entry)
    done = {"summaries": 3, "ratio": 2.0, "confidence": 0.7, "depth_0": 3, "depth": 0}
    summary = {"measures": measures, "compression": done, "decisions": {"create": 1}, "counts": {"contexts": 1}}
    point = PointResult("a", "compaction.leaf=3", {"compaction.leaf": "3", "admission": "x"}, summary, None)
    told = {name for name, _ in metrics(summary)}
    wanted = {*compared_by([point]), *changed_measures([point])} - {"admitted", "created"}
    lacking = {name for name in wanted if not {name.replace("@", "_at_"), f"compression/{name}"} & told}
    assert not lacking
    assert {"decision/create", "compression/ratio"} <= told


def test_of_what_was_served_the_system_has_its_metrics() -> None:
    served = {arm: {"k": 20, "places": 60, "documents": 41, "top_10_share": 0.5} for arm in ("system", "random")}
    told = dict(metrics({"measures": {}, "served": served}))
    assert {name: value for name, value in told.items() if "served" in name} == {
        f"served/{name}": value for name, value in served["system"].items()
    }
