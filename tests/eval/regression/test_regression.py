"""The gate: which rows are judged, and how."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval.measures.names import EXTERNAL_MEMORY
from eval.regression.gate import GatedComparison
from eval.regression.junit import junit
from eval.regression.markdown import markdown
from eval.regression.regression import Regression
from eval.regression.wording import headline
from eval.significance import bootstrap_means, holm, sign_flip_p_values
from lcm.errors import LcmError
from tests.support.run_folders import side

LIMITS = {"recall@10": {"tolerance": 0.01, "detectable": 0.05}}


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


def test_a_loss_within_the_tolerance_is_fine_however_sure(compare: Any) -> None:
    """Every query loses .005."""
    found = compare({"recall@10": [0.5] * 200}, {"recall@10": [0.495] * 200})
    assert row(found)["p"] == 1 / 1001
    assert (found.gate, found.exit_code) == ("fine", 0)


def test_a_loss_that_chance_may_have_made_is_not_a_regression(compare: Any) -> None:
    """13 lose and 10 win of 200: -.015 is worse than .01; -.05 is far outside the interval."""
    after = [0.0] * 13 + [1.0] * 10 + [0.5] * 177
    before = [0.5] * 200
    found = compare({"recall@10": before}, {"recall@10": after})
    assert row(found)["difference"] == pytest.approx((-13 / 2 + 10 / 2) / 200)
    assert row(found)["p"] > 0.05
    assert found.gate == "fine"


def test_an_interval_that_holds_the_loss_to_be_detected_tells_nothing(compare: Any) -> None:
    """10 of 20 lose all, 10 win all: the mean does not move, but may be far from what it seems."""
    found = compare({"recall@10": [1.0, 0.0] * 10}, {"recall@10": [0.0, 1.0] * 10})
    assert row(found)["difference"] == 0
    assert row(found)["low"] < -0.05
    assert (found.gate, found.exit_code) == ("cannot tell", 2)


def test_a_gain_is_fine(compare: Any) -> None:
    found = compare({"recall@10": [0.5] * 40}, {"recall@10": [1.0] * 40})
    assert row(found)["p_holm"] < 0.05
    assert (found.gate, row(found)["verdict"]) == ("fine", "better")


def test_more_tokens_are_a_loss_and_fewer_a_gain(compare: Any) -> None:
    settings = {"measures": {"tokens@10": {"tolerance": "10%", "detectable": "25%"}}}
    cheap, dear = [100.0 + i for i in range(50)], [130.0 + i for i in range(50)]
    assert compare({"tokens@10": cheap}, {"tokens@10": dear}, settings).gate == "regressed"
    assert compare({"tokens@10": dear}, {"tokens@10": cheap}, settings).gate == "fine"
    tolerance = row(compare({"tokens@10": cheap}, {"tokens@10": dear}, settings), measure="tokens@10")["tolerance"]
    assert tolerance == pytest.approx(0.10 * (100 + 49 / 2))


@pytest.mark.parametrize(
    "measure",
    ["tokens", "session.tokens@5", "context_tokens@1000", "expansion_tokens@1000", "expansions@1000", "latency"],
)
def test_of_a_cost_more_is_a_loss(compare: Any, measure: str) -> None:
    """Every query costs .3 of the mean more, with a tolerance of .1."""
    settings = {"measures": {measure: {"tolerance": "10%", "detectable": "25%"}}}
    cheap, dear = {measure: [100.0] * 50}, {measure: [130.0] * 50}
    assert compare(cheap, dear, settings).gate == "regressed"
    assert compare(dear, cheap, settings).gate == "fine"


@pytest.mark.parametrize("measure", ["recall@10", "session.nDCG@5", "retained@1000", "MRR"])
def test_of_a_quality_less_is_a_loss(compare: Any, measure: str) -> None:
    settings = {"measures": {measure: LIMITS["recall@10"]}}
    assert compare({measure: [0.9] * 50}, {measure: [0.5] * 50}, settings).gate == "regressed"
    assert compare({measure: [0.5] * 50}, {measure: [0.9] * 50}, settings).gate == "fine"


def test_a_cost_whose_interval_holds_the_rise_to_be_detected_tells_nothing(compare: Any) -> None:
    """Half cost 100 more and half 100 less: the mean does not move, but may have risen by more than 25 of 200."""
    settings = {"measures": {"tokens@10": {"tolerance": 20, "detectable": 25}}}
    found = compare({"tokens@10": [200.0] * 20}, {"tokens@10": [300.0, 100.0] * 10}, settings)
    assert row(found, measure="tokens@10")["difference"] == 0
    assert row(found, measure="tokens@10")["high"] > 25
    assert found.gate == "cannot tell"


def test_a_cost_that_may_have_fallen_far_but_not_risen_is_fine(compare: Any) -> None:
    """Half cost 100 less, the others the same: the interval lies between -100 and 0."""
    settings = {"measures": {"tokens@10": {"tolerance": 20, "detectable": 25}}}
    assert compare({"tokens@10": [200.0] * 20}, {"tokens@10": [200.0, 100.0] * 10}, settings).gate == "fine"


def test_what_only_the_correction_makes_chance_is_no_regression(compare: Any) -> None:
    """6 of 40 lose all, p = 2 / 2**6 = .031; with those of their category, and another's, .031 * 3 = .094."""
    after = {"recall@10": [0.0] * 6 + [1.0] * 34}
    found = compare({"recall@10": [1.0] * 40}, after, categories=["a"] * 20 + ["b"] * 20)
    assert (row(found)["p"], row(found)["p_holm"]) == (2 / 64, 3 * 2 / 64)
    assert row(found)["difference"] == -6 / 40
    assert found.gate == "cannot tell"


def test_a_small_loss_is_fine_from_the_least_queries_on(compare: Any) -> None:
    """One query loses .001: far from detectable, but nine queries are too few to say so, and ten are not."""
    for n, verdict in ((9, "cannot tell"), (10, "fine")):
        found = compare({"recall@10": [1.0] * n}, {"recall@10": [0.999] + [1.0] * (n - 1)})
        assert row(found)["low"] > -0.05
        assert found.gate == verdict


@pytest.mark.parametrize("name", ["all", "category all"])
def test_a_category_that_is_named_as_the_whole_stays_apart(compare: Any, name: str) -> None:
    """20 of 1,000 lose half: -.01 in all is tolerated, -.5 in their category is not."""
    found = compare(
        {"recall@10": [1.0] * 1000},
        {"recall@10": [0.5] * 20 + [1.0] * 980},
        categories=[name] * 20 + ["often"] * 980,
    )
    assert found.rows["group"].to_list() == ["all", f"category {name}", "often"]
    assert (row(found)["n"], row(found)["gate"]) == (1000, "fine")
    assert (row(found, f"category {name}")["n"], row(found, f"category {name}")["gate"]) == (20, "regressed")


def test_what_changed_nowhere_is_fine_even_for_one_query(compare: Any) -> None:
    found = compare({"recall@10": [0.5]}, {"recall@10": [0.5]})
    assert found.gate == "fine"
    assert (row(found)["low"], row(found)["p"], row(found)["p_holm"]) == (None, None, None)


def test_one_query_that_changed_tells_nothing(compare: Any) -> None:
    assert compare({"recall@10": [1.0]}, {"recall@10": [0.0]}).gate == "cannot tell"


def test_a_small_category_is_not_tested_and_leaves_the_whole_decided(compare: Any) -> None:
    """3 queries of `rare` lose all, 397 do not move: -.0075 in all."""
    found = compare(
        {"recall@10": [1.0] * 400}, {"recall@10": [0.0] * 3 + [1.0] * 397}, categories=["rare"] * 3 + ["often"] * 397
    )
    assert (row(found, "rare")["p"], row(found, "rare")["gate"]) == (None, "cannot tell")
    assert row(found, "often")["gate"] == "fine"
    assert found.gate == "fine"


def test_a_category_can_fail_the_whole(compare: Any) -> None:
    """20 of 1,000 lose half: -.01 in all is tolerated, -.5 in their category is not."""
    found = compare(
        {"recall@10": [1.0] * 1000},
        {"recall@10": [0.5] * 20 + [1.0] * 980},
        categories=["rare"] * 20 + ["often"] * 980,
    )
    assert row(found)["gate"] == "fine"
    assert row(found, "rare")["gate"] == "regressed"
    assert found.gate == "regressed"


def test_holm_counts_every_row_that_is_tested(compare: Any) -> None:
    rng = np.random.default_rng(0)
    measures = {"recall@10": rng.random(60), "MRR": rng.random(60)}
    after = {name: np.clip(values - 0.1 * rng.random(60), 0, 1) for name, values in measures.items()}
    settings = {"measures": dict.fromkeys(measures, LIMITS["recall@10"])}
    found = compare(measures, after, settings, categories=["a"] * 40 + ["b"] * 17 + ["c"] * 3)
    tested = found.rows.drop_nulls("p")
    assert len(tested) == 2 * 3  # all, a, b; c has 3 queries
    assert tested["p_holm"].to_list() == holm(tested["p"].to_numpy()).tolist()


def test_the_numbers_are_those_of_the_paired_differences(compare: Any) -> None:
    rng = np.random.default_rng(1)
    before, after = rng.random(80), rng.random(80)
    found = row(compare({"recall@10": before}, {"recall@10": after}, {"seed": 3}))
    d = (after - before)[:, None]
    assert found["p"] == sign_flip_p_values(d, 1000, 3)[0]
    assert (found["low"], found["high"]) == tuple(bound[0] for bound in bootstrap_means(d, 1000, 0.95, 3))


def test_queries_of_a_workspace_may_count_as_one(compare: Any) -> None:
    """40 queries of two workspaces: as 2 units even a total loss can be chance (p = 2 / 4), and is left untold."""
    both = {"workspaces": ["v", "w"] * 20}
    before, after = {"recall@10": [1.0] * 40}, {"recall@10": [0.98] * 40}
    alone = compare(before, after, **both)
    assert alone.gate == "regressed"
    clustered = compare(before, after, {"cluster": "workspace"}, **both)
    assert row(clustered)["units"] == 2
    assert row(clustered)["p"] == 2 / 4
    assert clustered.gate == "cannot tell"


def test_queries_of_a_workspace_are_drawn_as_one(compare: Any) -> None:
    """Two of four workspaces lose .5, two win .5: 1 of 16 draws has losers only, more than the 1 of 40 beyond `low`."""
    both = {"workspaces": ["a", "b", "c", "d"] * 10}
    before, after = {"recall@10": [0.5] * 40}, {"recall@10": [0.0, 0.0, 1.0, 1.0] * 10}
    clustered = row(compare(before, after, {"cluster": "workspace"}, **both))
    assert (clustered["low"], clustered["high"]) == (-0.5, 0.5)
    alone = row(compare(before, after, **both))
    assert -0.25 < alone["low"] < 0 < alone["high"] < 0.25


def test_a_measure_that_judges_some_queries_is_compared_on_these(compare: Any) -> None:
    found = compare({"recall@10": [1.0, None, 0.5] * 10}, {"recall@10": [1.0, None, 0.0] * 10})
    assert (row(found)["n"], row(found)["changed"]) == (20, 10)
    assert row(found)["difference"] == pytest.approx(-0.5 / 2)


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=10, max_size=40), st.integers(0, 3))
def test_a_run_against_itself_is_fine(tmp_path_factory: Any, values: list[float], seed: int) -> None:
    folder = tmp_path_factory.mktemp("run")
    same = side(folder / "same", {"recall@10": values})
    assert Regression(measures=LIMITS, resamples=50, seed=seed).compare(same, same).gate == "fine"


def test_measures_that_neither_run_has_are_told(compare: Any) -> None:
    settings = {"measures": {**LIMITS, "nDCG@10": LIMITS["recall@10"]}}
    assert compare({"recall@10": [1.0] * 10}, {"recall@10": [1.0] * 10}, settings).left_out == ("nDCG@10", "tokens@10")


def test_draws_that_no_test_could_pass_with_are_refused(compare: Any) -> None:
    """Four tests: 4 / 80 is not below .05, 4 / 81 is."""
    values, categories = {"recall@10": [1.0] * 60}, ["a"] * 20 + ["b"] * 20 + ["c"] * 20
    with pytest.raises(LcmError, match=r"resamples=79 is too few: with 4 tests, .* at least 80"):
        compare(values, values, {"resamples": 79}, categories=categories)
    compare(values, values, {"resamples": 80}, categories=categories)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"alpha": float("nan")}, "alpha must be in (0, 1), got nan"),
        ({"confidence": 1.0}, "confidence must be in (0, 1), got 1.0"),
        ({"resamples": 10}, "resamples must be >= 1 / alpha = 20, got 10"),
        ({"least_queries": 1}, "least_queries must be >= 2, got 1"),
        ({"cluster": "speaker"}, "cluster must be one of: none, workspace, got 'speaker'"),
        ({"measures": {"MRR": None}}, "measures must name at least one measure"),
        ({"measures": {"MRR": {"tolerance": 0.1}}}, "measures.MRR must have tolerance and detectable, got tolerance"),
        (
            {"measures": {"MRR": {"tolerance": float("nan"), "detectable": 1}}},
            "measures.MRR.tolerance must be a number >= 0 or a share such as 10%, got nan",
        ),
        (
            {"measures": {"MRR": {"tolerance": 0.1, "detectable": 0.1}}},
            "measures.MRR.detectable must be > tolerance, got 0.1 and 0.1",
        ),
        (
            {"measures": {"MRR": {"tolerance": "1%", "detectable": 0.1}}},
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
    limits = LIMITS["recall@10"]
    settings = {"recall@10": limits, "MRR": limits}
    first, second = Regression(measures=settings, resamples=50).compare(before, after).worse
    assert (first.query_id, second.query_id) == ("q001", "q000")
    assert first.values == {"recall@10": (1.0, 0.0), "MRR": (1.0, 0.0)}
    assert second.values == {"MRR": (1.0, 0.5)}
    assert [(one.document_id, one.covers_evidence) for one in second.baseline or ()] == [("m1", True), ("m2", False)]
    assert [(one.document_id, one.covers_evidence) for one in second.candidate or ()] == [("m2", False), ("m1", True)]
    only = Regression(measures=settings, resamples=50, changed_queries=1, depth=1).compare(before, after).worse
    assert [query.query_id for query in only] == ["q001"]
    assert len(only[0].baseline or ()) == 1


def test_of_costs_alone_the_query_that_rose_most_comes_first(tmp_path: Path) -> None:
    before = side(tmp_path / "before", {"tokens@10": [100.0, 100.0, 100.0]})
    after = side(tmp_path / "after", {"tokens@10": [110.0, 20.0, 150.0]})
    limits = {"tokens@10": {"tolerance": "10%", "detectable": "25%"}}
    worse = Regression(measures=limits, resamples=50).compare(before, after).worse
    assert [(query.query_id, query.values["tokens@10"]) for query in worse] == [
        ("q002", (100.0, 150.0)),
        ("q000", (100.0, 110.0)),
    ]


def test_a_cost_fails_a_candidate_only_where_that_is_asked_for(compare: Any) -> None:
    """A gain of .17 recall for a third more tokens: better, worse, and nothing regressed."""
    before = {"recall@10": [0.5] * 100, "tokens@10": [100.0] * 100}
    after = {"recall@10": [0.67] * 100, "tokens@10": [130.0] * 100}
    found = compare(before, after)
    assert (found.gate, found.exit_code) == ("fine", 0)
    assert [(one["measure"], one["verdict"], one["gate"]) for one in found.rows.to_dicts()] == [
        ("recall@10", "better", "fine"), ("tokens@10", "worse", None)
    ]  # fmt: skip
    told = (
        "fine: nothing gated is worse than tolerated beyond chance; over all queries, a loss to be detected is excluded"
    )
    assert headline(found) == f"{told} (better: recall@10 +0.170; worse: tokens@10 +30.0 (not gated))"
    assert (found.worse, len(found.better)) == ((), 10)
    asked = {"measures": {**LIMITS, "tokens@10": {"tolerance": "10%", "detectable": "25%"}}}
    assert compare(before, after, asked).gate == "regressed"
    left_out = {"measures": {**LIMITS, "tokens@10": None}}
    assert compare(before, after, left_out).rows["measure"].to_list() == ["recall@10"]


EXTERNAL = {"flags": [f"{EXTERNAL_MEMORY} mine 2 answered 199 of 200 queries"]}


def test_what_an_external_candidate_leaves_unanswered_is_left_out_and_told(compare: Any) -> None:
    found = compare({"recall@10": [1.0] * 200}, {"recall@10": [None] + [1.0] * 199}, **EXTERNAL)
    assert (found.gate, row(found)["n"], row(found)["changed"], row(found)["candidate"]) == ("fine", 199, 0, 1.0)
    (note,) = found.notes
    assert note.startswith("recall@10: left out are 1 queries of which the candidate has no value, and 0 of which")
    assert note in junit(found, "2026-01-01T00:00:00")
    assert "1 queries of which the candidate has no value" in markdown(found)


@pytest.mark.parametrize(
    ("unanswered", "value", "gate"), [(9, 1.0, "fine"), (11, 1.0, "cannot tell"), (11, 0.5, "fine")]
)
def test_what_is_left_out_passes_no_gate_where_it_could_hide_a_loss(
    compare: Any, unanswered: int, value: float, gate: str
) -> None:
    """.05 is to be detected: 10 of 200 queries that found all."""
    before = [value] * unanswered + [1.0] * (200 - unanswered)
    assert (
        compare({"recall@10": before}, {"recall@10": [None] * unanswered + before[unanswered:]}, **EXTERNAL).gate
        == gate
    )


def test_a_candidate_that_answers_what_the_baseline_could_not_is_no_worse(compare: Any) -> None:
    found = compare({"recall@10": [None] * 20 + [0.5] * 180}, {"recall@10": [0.0] * 20 + [0.5] * 180}, **EXTERNAL)
    assert (found.gate, row(found)["difference"]) == ("fine", 0)


def test_nothing_in_common_is_refused(compare: Any) -> None:
    with pytest.raises(LcmError, match="20 are missing in the candidate and 20 in the baseline"):
        compare({"recall@10": [None] * 20 + [1.0] * 20}, {"recall@10": [1.0] * 20 + [None] * 20}, **EXTERNAL)
