"""Which trial is picked, and what that is worth on folds that had no say."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval.study.selection import CrossValidation, FinishedTrial, best, cross_validated, front, pareto_front, pick
from eval.study.settings import Objective

RECALL, COST = Objective("recall@10", "maximize"), Objective("recall@10", "minimize")
FOLDS = ("a", "b", "c")


def trial(number: int, means: list[float], queries: tuple[int, ...] = (10, 10, 10)) -> FinishedTrial:
    """By its means over folds."""
    sums = {fold: [mean * n, n] for fold, mean, n in zip(FOLDS, means, queries, strict=True)}
    total = sum(mean * n for mean, n in zip(means, queries, strict=True))
    return FinishedTrial(number, {}, (total / sum(queries),), {"recall@10": sums})


def validated(*trials: FinishedTrial, objectives: Sequence[Objective] = (RECALL,)) -> CrossValidation:
    found = cross_validated(list(trials), list(objectives), FOLDS)
    assert found is not None
    return found


def test_the_trial_of_each_fold_is_picked_by_the_others() -> None:
    steady, lucky = trial(0, [0.5, 0.5, 0.5]), trial(1, [0.9, 0.4, 0.4])
    found = validated(steady, lucky)
    # Without a the steady trial is better, 0.5 against 0.4; with it the lucky one, 0.65 against 0.5.
    assert [row.picked for row in found.folds] == [0, 1, 1]
    assert [row.value for row in found.folds] == pytest.approx([0.5, 0.4, 0.4])
    assert found.estimate == pytest.approx((0.5 + 0.4 + 0.4) / 3)
    assert found.in_sample == pytest.approx((0.9 + 0.4 + 0.4) / 3)
    assert found.optimism == pytest.approx((0.9 - 0.5) / 3)
    assert found.spread == pytest.approx(np.std([0.5, 0.4, 0.4], ddof=1))
    assert found.agreement == 2
    assert best([steady, lucky], [RECALL]) is lucky


def test_a_fold_weighs_as_many_queries_as_it_has_and_is_held_out_if_it_judges_any() -> None:
    found = validated(trial(0, [1.0, 0.0, 0.0], (30, 10, 10)))
    assert found.estimate == found.in_sample == pytest.approx(30 / 50)
    assert found.optimism == 0
    found = validated(trial(0, [0.5, 0.6, 0.0], (10, 10, 0)))
    assert [row.fold for row in found.folds] == ["a", "b"]


def test_optimism_is_positive_where_less_is_better_too() -> None:
    found = validated(trial(0, [5.0, 5.0, 5.0]), trial(1, [1.0, 6.0, 6.0]), objectives=[COST])
    assert found.optimism == pytest.approx((5 + 6 + 6) / 3 - (1 + 6 + 6) / 3)


def test_there_is_no_cross_validation_of_one_fold_or_of_a_latency() -> None:
    assert cross_validated([trial(0, [0.5] * 3)], [RECALL], FOLDS[:1]) is None
    slow = FinishedTrial(0, {}, (3.0,), {})
    assert cross_validated([slow], [Objective("latency/total_p50_ms", "minimize")], FOLDS) is None


def test_the_first_objective_gives_way_by_what_is_within() -> None:
    values = np.array([[0.80, 500.0], [0.79, 300.0], [0.70, 100.0], [0.79, 400.0]])
    cheap = Objective("tokens@10", "minimize")
    assert pick(values, [RECALL, cheap]) == 0
    assert pick(values, [Objective("recall@10", "maximize", within=0.02), cheap]) == 1
    assert pick(values, [Objective("recall@10", "maximize", within=0.5), cheap]) == 2


def test_the_last_objective_gives_nothing_up_and_of_equals_the_first_is_picked() -> None:
    within, cheap = Objective("recall@10", "maximize", within=0.02), Objective("tokens@10", "minimize")
    about = Objective("tokens@10", "minimize", within=20)  # 310 is within 20 of 300, with none to give it up for
    assert pick(np.array([[0.80, 310.0], [0.79, 300.0]]), [within, about]) == 1
    assert pick(np.array([[0.79, 300.0], [0.80, 300.0]]), [within, cheap]) == 1, "another trial betters it"
    assert pick(np.array([[0.5], [0.7], [0.7]]), [RECALL]) == 1


def test_rivals_are_within_a_standard_error_of_the_mean_and_no_repetition() -> None:
    # Behind by 0, 0.1 and 0.3: 0.133 in the mean, which is within the deviation of 0.153 but not 0.153 / sqrt(3).
    assert validated(trial(0, [0.6, 0.6, 0.6]), trial(1, [0.6, 0.5, 0.3])).rivals == 0
    # Costs behind by 0.1, -0.1 and 0.2: 0.067 in the mean, with a standard error of 0.153 / sqrt(3) = 0.088.
    trials = [trial(0, [5.0, 5.0, 5.0]), trial(1, [5.1, 4.9, 5.2]), trial(2, [9.0, 9.0, 9.0])]
    again = FinishedTrial(3, {}, trials[0].values, trials[0].sums, same_as=0)
    assert validated(*trials, again, objectives=[COST]).rivals == 1


def test_latencies_have_their_say_in_every_fold() -> None:
    objectives = [Objective("recall@10", "maximize", within=0.1), Objective("latency/total_p50_ms", "minimize")]
    slow = FinishedTrial(0, {}, (0.6, 9.0), trial(0, [0.6] * 3).sums)
    quick = FinishedTrial(1, {}, (0.55, 1.0), trial(1, [0.55] * 3).sums)
    assert [row.picked for row in validated(slow, quick, objectives=objectives).folds] == [1, 1, 1]
    assert [one.number for one in pareto_front([slow, quick], objectives)] == [0, 1]


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=12))
def test_nothing_is_better_than_what_stands_on_the_front_and_something_than_all_else(
    rows: list[tuple[int, int]],
) -> None:
    is_in = front(np.array(rows, dtype=float))
    for i, row in enumerate(rows):
        betters = [other for other in rows if other != row and all(b >= a for a, b in zip(row, other, strict=True))]
        assert is_in[i] == (not betters)
    objectives = [RECALL, Objective("MRR", "maximize")]
    assert is_in[pick(np.array(rows, dtype=float), objectives)]
