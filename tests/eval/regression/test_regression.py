"""The gate: which rows are judged, and how."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from eval.measures.names import EXTERNAL_MEMORY
from eval.regression.regression import GatedComparison, Regression
from eval.regression.report import headline, junit, markdown
from lcm.errors import LcmError
from tests.support.run_folders import side

LIMITS = {"recall@10": {"tolerance": 0.01, "detectable": 0.05}}


def limits(**of_mrr: Any) -> dict[str, Any]:
    return {"measures": {"MRR": of_mrr}}


@pytest.fixture
def compare(tmp_path: Path) -> Any:
    def run(
        before: dict[str, Sequence[float | None]],
        after: dict[str, Sequence[float | None]],
        settings: dict[str, Any] | None = None,
        **both: Any,
    ) -> GatedComparison:
        regression = Regression(**{"measures": LIMITS, "resamples": 1000, **(settings or {})})
        return regression.compare(side(tmp_path / "before", before, **both), side(tmp_path / "after", after, **both))

    return run


def row(comparison: GatedComparison, group: str = "all", measure: str = "recall@10") -> dict[str, Any]:
    (found,) = comparison.rows.filter(group=group, measure=measure).to_dicts()
    return found


def test_a_loss_beyond_tolerance_and_chance_has_regressed(compare: Any) -> None:
    """30 of 200 queries lose all: -0.15; all signs alike, so p is the least that 1,000 draws give."""
    found = compare({"recall@10": [1.0] * 200}, {"recall@10": [0.0] * 30 + [1.0] * 170})
    assert (found.gate, found.exit_code) == ("regressed", 1)
    assert row(found)["difference"] == pytest.approx(-30 / 200)
    assert row(found)["p"] == row(found)["p_holm"] == 1 / 1001
    assert (row(found)["n"], row(found)["changed"]) == (200, 30)


@pytest.mark.parametrize(
    ("before", "after", "gate", "exit_code", "difference"),
    [
        pytest.param([0.5] * 200, [0.495] * 200, "fine", 0, -0.005, id="within the tolerance, however sure"),
        pytest.param(
            [0.5] * 200, [0.0] * 13 + [1.0] * 10 + [0.5] * 177, "fine", 0, -1.5 / 200, id="which chance may have made"
        ),
        pytest.param([1.0, 0.0] * 10, [0.0, 1.0] * 10, "cannot tell", 3, 0, id="which the interval holds"),
        pytest.param([0.5] * 40, [1.0] * 40, "fine", 0, 0.5, id="none, but a gain"),
        pytest.param([0.5], [0.5], "fine", 0, 0, id="none, of one query"),
        pytest.param([1.0], [0.0], "cannot tell", 3, -1, id="of one query"),
    ],
)
def test_the_gate_is_closed_by_no_loss(
    compare: Any, before: list[float], after: list[float], gate: str, exit_code: int, difference: float
) -> None:
    found = compare({"recall@10": before}, {"recall@10": after})
    assert (found.gate, found.exit_code) == (gate, exit_code)
    assert row(found)["difference"] == pytest.approx(difference)
    if len(before) == 1 and before == after:
        assert (row(found)["low"], row(found)["p"], row(found)["p_holm"]) == (None, None, None)


@pytest.mark.parametrize(
    ("measure", "limits", "good", "bad"),
    [
        ("context_tokens@1000", {"tolerance": "10%", "detectable": "25%"}, 100.0, 130.0),
        ("session.nDCG@5", LIMITS["recall@10"], 0.9, 0.5),
    ],
)
def test_of_a_cost_more_is_a_loss_and_of_a_quality_less(
    compare: Any, measure: str, limits: dict[str, Any], good: float, bad: float
) -> None:
    settings = {"measures": {measure: limits}}
    before, after = {measure: [good] * 50}, {measure: [bad] * 50}
    found = compare(before, after, settings)
    assert found.gate == "regressed"
    assert compare(after, before, settings).gate == "fine"
    tolerance = limits["tolerance"]
    assert row(found, measure=measure)["tolerance"] == (0.10 * good if tolerance == "10%" else tolerance)


def test_of_a_cost_only_a_rise_is_to_be_detected(compare: Any) -> None:
    """Half cost 100 more or the same, half 100 less: the mean may have risen by more than 25, or fallen far."""
    settings = {"measures": {"tokens@10": {"tolerance": 20, "detectable": 25}}}
    found = compare({"tokens@10": [200.0] * 20}, {"tokens@10": [300.0, 100.0] * 10}, settings)
    assert row(found, measure="tokens@10")["difference"] == 0
    assert row(found, measure="tokens@10")["high"] > 25
    assert found.gate == "cannot tell"
    assert compare({"tokens@10": [200.0] * 20}, {"tokens@10": [200.0, 100.0] * 10}, settings).gate == "fine"


def test_what_only_the_correction_makes_chance_is_no_regression(compare: Any) -> None:
    """6 of 40 lose all, p = 2 / 2**6 = .031; beside another gated measure, .031 * 2 = .063."""
    gated = {"measures": dict.fromkeys(("recall@10", "MRR"), LIMITS["recall@10"])}
    before, after = {"recall@10": [1.0] * 40, "MRR": [1.0] * 40}, {"recall@10": [0.0] * 6 + [1.0] * 34}
    found = compare(before, {**after, "MRR": before["MRR"]}, gated)
    assert (row(found)["p"], row(found)["p_holm"], row(found)["difference"]) == (2 / 64, 2 * 2 / 64, -6 / 40)
    assert found.gate == "cannot tell"


def test_neither_categories_nor_what_is_only_told_hide_a_loss_over_all_queries(compare: Any) -> None:
    """8 of 104 lose all, p = 2 / 2**8; over all queries that are three tests, with all rows of the table it were 28."""
    same = {"nDCG@10": [1.0] * 104, "MRR": [1.0] * 104}
    before, after = ({"recall@10": of, "tokens@10": tokens, **same} for of, tokens in (
        ([1.0] * 104, [100.0] * 104), ([0.0] * 8 + [1.0] * 96, [150.0] * 104),
    ))  # fmt: skip
    settings = {"measures": dict.fromkeys(("recall@10", "nDCG@10", "MRR"), LIMITS["recall@10"])}
    found = compare(before, after, settings, categories=[f"kind {i % 6}" for i in range(104)])
    assert found.rows.height == 7 * 4
    assert row(found)["p_holm"] == pytest.approx(3 * 2 / 2**8, abs=0.005)
    assert (row(found)["verdict"], found.gate) == ("worse", "regressed")
    cost = row(found, measure="tokens@10")
    assert (cost["p"], cost["p_holm"], cost["verdict"], cost["difference"]) == (None, None, "not tested", 50.0)
    assert cost["low"] is not None
    # The rows of categories are a family of their own, of 18 tests.
    assert found.rows.filter(pl.col("group") != "all")["p_holm"].count() == 18
    assert min(found.rows.filter(pl.col("group") != "all")["p_holm"].drop_nulls()) == 1.0


@pytest.mark.parametrize(("n", "gate"), [(9, "cannot tell"), (10, "fine")])
def test_a_small_loss_is_fine_from_the_least_queries_on(compare: Any, n: int, gate: str) -> None:
    """One query loses .001: far from detectable, but nine queries are too few to say so, and ten are not."""
    found = compare({"recall@10": [1.0] * n}, {"recall@10": [0.999] + [1.0] * (n - 1)})
    assert row(found)["low"] > -0.05
    assert found.gate == gate


@pytest.mark.parametrize(("name", "group"), [("rare", "rare"), ("all", "category all"), ("category all", None)])
def test_a_category_can_fail_the_whole_and_stays_apart_if_it_is_named_so(
    compare: Any, name: str, group: str | None
) -> None:
    """20 of 1,000 lose half: -.01 in all is tolerated, -.5 in their category is not."""
    categories = [name] * 20 + ["often"] * 980
    found = compare({"recall@10": [1.0] * 1000}, {"recall@10": [0.5] * 20 + [1.0] * 980}, categories=categories)
    group = group or f"category {name}"
    assert set(found.rows["group"]) == {"all", group, "often"}
    assert (row(found)["n"], row(found)["gate"]) == (1000, "fine")
    assert (row(found, group)["n"], row(found, group)["gate"]) == (20, "regressed")
    assert found.gate == "regressed"


def test_a_small_category_is_not_tested_and_leaves_the_whole_decided(compare: Any) -> None:
    """3 queries of `rare` lose all, 397 do not move: -.0075 in all."""
    found = compare(
        {"recall@10": [1.0] * 400}, {"recall@10": [0.0] * 3 + [1.0] * 397}, categories=["rare"] * 3 + ["often"] * 397
    )
    assert (row(found, "rare")["p"], row(found, "rare")["gate"]) == (None, "cannot tell")
    assert row(found, "often")["gate"] == "fine"
    assert found.gate == "fine"


def test_queries_of_a_workspace_may_count_as_one_and_are_drawn_as_one(compare: Any) -> None:
    """40 queries of two workspaces: as 2 units even a total loss can be chance (p = 2 / 4), and is left untold.

    Two of four workspaces lose .5, two win .5: 1 of 16 draws has losers only, more than the 1 of 40 beyond `low`.
    """
    by_workspace, two, four = {"cluster": "workspace"}, ["v", "w"] * 20, ["a", "b", "c", "d"] * 10
    before, after = {"recall@10": [1.0] * 40}, {"recall@10": [0.98] * 40}
    assert compare(before, after, workspaces=two).gate == "regressed"
    clustered = compare(before, after, by_workspace, workspaces=two)
    assert (row(clustered)["units"], row(clustered)["p"], clustered.gate) == (2, 2 / 4, "cannot tell")
    sixty, six = {"workspaces": list("abcdef") * 10, "categories": ["one"] * 30 + ["two"] * 30}, 2 / 2**6
    clustered = compare({"recall@10": [1.0] * 60}, {"recall@10": [0.98] * 60}, by_workspace, **sixty)
    assert (row(clustered)["p_holm"], row(clustered)["gate"]) == (six, "regressed")
    assert row(clustered, "one")["gate"] == "cannot tell", "two tests ask too much"
    before, after = {"recall@10": [0.5] * 40}, {"recall@10": [0.0, 0.0, 1.0, 1.0] * 10}
    clustered = compare(before, after, by_workspace, workspaces=four)
    assert (row(clustered)["low"], row(clustered)["high"]) == (-0.5, 0.5)
    alone = row(compare(before, after, workspaces=four))
    assert -0.25 < alone["low"] < 0 < alone["high"] < 0.25


def test_a_measure_that_judges_some_queries_is_compared_on_these_and_one_that_neither_has_is_told(compare: Any) -> None:
    settings = {"measures": {**LIMITS, "nDCG@10": LIMITS["recall@10"]}}
    found = compare({"recall@10": [1.0, None, 0.5] * 10}, {"recall@10": [1.0, None, 0.0] * 10}, settings)
    assert (row(found)["n"], row(found)["changed"]) == (20, 10)
    assert row(found)["difference"] == pytest.approx(-0.5 / 2)
    assert found.left_out == ("nDCG@10", "tokens@10")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"alpha": float("nan")}, "alpha must be in (0, 1), got nan"),
        ({"confidence": 1.0}, "confidence must be in (0, 1), got 1.0"),
        ({"resamples": 10}, "resamples must be >= 1 / alpha = 20, got 10"),
        ({"least_queries": 1}, "least_queries must be >= 2, got 1"),
        ({"cluster": "speaker"}, "cluster must be one of: none, workspace, got 'speaker'"),
        ({"measures": {"MRR": None}}, "measures must name at least one measure"),
        (limits(tolerance=0.1), "measures.MRR must have tolerance and detectable, got tolerance"),
        (
            limits(tolerance=float("nan"), detectable=1),
            "measures.MRR.tolerance must be a number >= 0 or a share such as 10%, got nan",
        ),
        (limits(tolerance=0.1, detectable=0.1), "measures.MRR.detectable must be > tolerance, got 0.1 and 0.1"),
        (
            limits(tolerance="1%", detectable=0.1),
            "measures.MRR.tolerance and detectable must be of one kind, got 1% and 0.1",
        ),
    ],
)
def test_settings_out_of_range_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match="^" + re.escape(message) + "$"):
        Regression(**settings)


def test_the_worst_query_comes_first_with_both_rankings(tmp_path: Path) -> None:
    """Evidence is m1: the second query finds it no more, the first finds it a rank later."""
    before = side(
        tmp_path / "before",
        {"recall@10": [1.0, 1.0, 0.0], "MRR": [1.0, 1.0, 0.0]},
        rankings={"q000": ["m1", "m2"], "q001": ["m1", "m2"], "q002": ["m3"]},
    )
    after = side(
        tmp_path / "after",
        {"recall@10": [1.0, 0.0, 1.0], "MRR": [0.5, 0.0, 1.0]},
        rankings={"q000": ["m2", "m1"], "q001": ["m2"], "q002": ["m1"]},
    )
    regression = Regression(measures=dict.fromkeys(("recall@10", "MRR"), LIMITS["recall@10"]), resamples=50)
    first, second = regression.compare(before, after).worse
    assert (first.query_id, second.query_id) == ("q001", "q000")
    assert (first.values, second.values) == ({"recall@10": (1.0, 0.0), "MRR": (1.0, 0.0)}, {"MRR": (1.0, 0.5)})
    assert [(one.document_id, one.covers_evidence) for one in second.baseline or ()] == [("m1", True), ("m2", False)]
    assert [(one.document_id, one.covers_evidence) for one in second.candidate or ()] == [("m2", False), ("m1", True)]
    (only,) = replace(regression, changed_queries=1, depth=1).compare(before, after).worse
    assert (only.query_id, len(only.baseline or ())) == ("q001", 1)


def test_of_costs_alone_the_query_that_rose_most_comes_first(compare: Any) -> None:
    limits = {"measures": {"tokens@10": {"tolerance": "10%", "detectable": "25%"}}}
    worse = compare({"tokens@10": [100.0, 100.0, 100.0]}, {"tokens@10": [110.0, 20.0, 150.0]}, limits).worse
    found = [(query.query_id, query.values["tokens@10"]) for query in worse]
    assert found == [("q002", (100.0, 150.0)), ("q000", (100.0, 110.0))]


def test_a_cost_fails_a_candidate_only_where_that_is_asked_for(compare: Any) -> None:
    """A gain of .17 recall for a third more tokens: better, and a cost that is told without a test."""
    before = {"recall@10": [0.5] * 100, "tokens@10": [100.0] * 100}
    after = {"recall@10": [0.67] * 100, "tokens@10": [130.0] * 100}
    found = compare(before, after)
    assert (found.gate, found.exit_code) == ("fine", 0)
    told = [(one["measure"], one["verdict"], one["gate"]) for one in found.rows.to_dicts()]
    assert told == [("recall@10", "better", "fine"), ("tokens@10", "not tested", None)]
    assert headline(found) == (
        "fine: nothing gated is worse than tolerated beyond chance; over all queries, a loss to be detected is excluded"
        " (better: recall@10 +0.170; not tested: tokens@10 +30.0)"
    )
    assert (found.worse, len(found.better)) == ((), 10)
    asked = {**LIMITS, "tokens@10": {"tolerance": "10%", "detectable": "25%"}}
    assert compare(before, after, {"measures": asked}).gate == "regressed"
    left_out = compare(before, after, {"measures": {**LIMITS, "tokens@10": None}})
    assert left_out.rows["measure"].to_list() == ["recall@10"]


EXTERNAL = {"flags": [f"{EXTERNAL_MEMORY} mine 2 answered 199 of 200 queries"]}


def test_what_an_external_candidate_leaves_unanswered_is_left_out_and_told(compare: Any) -> None:
    found = compare({"recall@10": [1.0] * 200}, {"recall@10": [None] + [1.0] * 199}, **EXTERNAL)
    assert (found.gate, row(found)["n"], row(found)["changed"], row(found)["candidate"]) == ("fine", 199, 0, 1.0)
    (note,) = found.notes
    assert note.startswith("recall@10: left out are 1 queries of which the candidate has no value, and 0 of which")
    assert note in junit(found, "2026-01-01T00:00:00")
    assert "1 queries of which the candidate has no value" in markdown(found)
    with pytest.raises(LcmError, match="20 are missing in the candidate and 20 in the baseline"):
        compare({"recall@10": [None] * 20 + [1.0] * 20}, {"recall@10": [1.0] * 20 + [None] * 20}, **EXTERNAL)


@pytest.mark.parametrize(
    ("unanswered", "before", "after", "gate"),
    [
        (9, 1.0, None, "fine"),
        (11, 1.0, None, "cannot tell"),
        (11, 0.5, None, "fine"),
        (20, None, 0.0, "fine"),  # what the baseline could not answer makes no candidate worse
    ],
)
def test_what_is_left_out_passes_no_gate_where_it_could_hide_a_loss(
    compare: Any, unanswered: int, before: float | None, after: float | None, gate: str
) -> None:
    """.05 is to be detected: 10 of 200 queries that found all."""
    rest = [1.0] * (200 - unanswered)
    found = compare({"recall@10": [before] * unanswered + rest}, {"recall@10": [after] * unanswered + rest}, **EXTERNAL)
    assert found.gate == gate
