"""A search space: what it accepts, and that every bound and choice of it is tried."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval.study.settings import Choices, Range, space

WEIBULL = {"decay": "weibull"}
DECAY: dict[str, Any] = {
    "decay": {
        "choices": ["none", "weibull", "exponential"],
        "floor": {"low": 0.0, "high": 1.0, "when": WEIBULL},
        "rate": {"low": 1e-9, "high": 1e-4, "log": True, "when": {"decay": "exponential"}},
    },
    "fusion.dense_weight": {"low": 0.0, "high": 1.0, "step": 0.25},
    "ranking": {"stages": {"limit": {"n": {"low": 5, "high": 50}}}},
}


def test_keys_may_be_nested_or_written_with_dots() -> None:
    keys = [dimension.key for dimension in space(DECAY).dimensions]
    assert keys == ["decay", "decay.floor", "decay.rate", "fusion.dense_weight", "ranking.stages.limit.n"]


def test_extremes_have_every_bound_and_every_choice_and_no_key_that_is_not_there() -> None:
    found = [assignment for _, assignment in space(DECAY).extremes()]
    for key, values in {
        "decay": {"none", "weibull", "exponential"},
        "decay.floor": {0.0, 1.0},
        "decay.rate": {1e-9, 1e-4},
        "fusion.dense_weight": {0.0, 1.0},
        "ranking.stages.limit.n": {5, 50},
    }.items():
        assert {assignment[key] for assignment in found if key in assignment} == values
    for assignment in found:
        assert ("decay.floor" in assignment) == (assignment["decay"] == "weibull")
        assert ("decay.rate" in assignment) == (assignment["decay"] == "exponential")
    assert len({repr(sorted(assignment.items())) for assignment in found}) == len(found)


def test_a_key_may_depend_on_one_that_depends_on_another() -> None:
    nested = {
        "c": {"low": 1, "high": 2, "when": {"b": "y"}},
        "b": {"choices": ["x", "y"], "when": {"a": ["q", "r"]}},
        "a": {"choices": ["p", "q", "r"]},
    }
    found = [assignment for _, assignment in space(nested).extremes() if "c" in assignment]
    assert found == [{"a": "q", "b": "y", "c": 1}, {"a": "q", "b": "y", "c": 2}]


@pytest.mark.parametrize(
    ("current", "held"),
    [
        ({"a": "x", "b": 0.5}, {"a": "x", "b": 0.5}),
        ({"a": "y", "b": 0.5}, {"a": "y"}),  # b is not there
        ({"a": "x", "b": 1.5}, None),  # out of bounds
        ({"a": "z"}, None),
        ({"b": 0.5}, None),
    ],
)
def test_a_configuration_is_held_with_the_keys_that_are_there_or_not_at_all(
    current: dict[str, Any], held: dict[str, Any] | None
) -> None:
    searched = space({"a": {"choices": ["x", "y"]}, "b": {"low": 0.0, "high": 1.0, "when": {"a": "x"}}})
    assert searched.held(current) == held


def test_true_is_not_the_number_one_and_a_node_that_is_null_is_left_out() -> None:
    assert not Choices([1, 2]).holds(True)
    assert not Range(0, 2).holds(True)
    assert Choices([True, 1]).values == [True, 1]
    assert [one.key for one in space({"a": None, "b": {"low": 0, "high": 1}}).dimensions] == ["b"]


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({}, "space is empty"),
        ({"a": {"low": 1}}, "space.a: needs low and high"),
        ({"a": 3}, "space.a must be a map"),
        ({"a": {"low": 2.0, "high": 1.0}}, "space.a: low must be < high, got 2.0 and 1.0"),
        ({"a": {"low": float("nan"), "high": 1.0}}, "space.a: low must be a finite number, got nan"),
        ({"a": {"low": True, "high": 2}}, "space.a: low must be a finite number, got True"),
        ({"a": {"low": 0.0, "high": 1.0, "log": True}}, "space.a: low must be > 0 where log is true"),
        ({"a": {"low": 0, "high": 1, "log": "yes"}}, "space.a: log must be true or false, got 'yes'"),
        ({"a": {"low": 1.0, "high": 2.0, "log": True, "step": 0.5}}, "space.a: step=0.5 has no meaning"),
        ({"a": {"low": 0, "high": 4, "step": 0.5}}, "space.a: step must be a whole number"),
        ({"a": {"low": 0.0, "high": 1.0, "step": 0.3}}, "space.a: high must be low plus a number of steps of 0.3"),
        ({"a": {"low": 0.0, "high": 1.0, "step": 0}}, "space.a: step must be > 0, got 0"),
        ({"a": {"choices": []}}, "space.a: choices must be a list of one or more"),
        ({"a": {"choices": ["x", "x"]}}, "space.a: choices must differ"),
        ({"a": {"choices": ["x", [1]]}}, "space.a: choices must be text, numbers, true, false or null, got [1]"),
        ({"a": {"choices": ["x", "y"], "low": 1}}, "space.a: needs low and high"),
        ({"a": {"low": 0, "high": 1, "when": {"b": 1}}}, "space.a.when: b is no key of this space that has choices"),
        ({"b": {"choices": [1, 2]}, "a": {"low": 0, "high": 1, "when": {"b": 3}}}, "space.a.when: 3 is no choice of b"),
        ({"a": {"choices": [1, 2], "when": {"a": 1}}}, "space.a.when: it depends on itself"),
        ({"a": {"low": 0, "high": 1, "when": "b"}}, "space.a.when must be a map"),
        ({"a": {"b": {"low": 0, "high": 1}}, "a.b": {"low": 0, "high": 1}}, "space.a.b stands there twice"),
        (
            {"dataset": {"evidence": {"choices": ["a", "b"]}}},
            "space.dataset.evidence: dataset decides what is measured",
        ),
    ],
)
def test_what_is_no_space_is_refused_by_its_key(settings: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=r"^space") as refused:
        space(settings)
    assert str(refused.value).startswith(told)


@given(low=st.integers(-5, 5), steps=st.integers(1, 8), step=st.sampled_from([0.1, 0.25, 1.0]))
def test_a_range_holds_its_steps_and_nothing_between(low: int, steps: int, step: float) -> None:
    found = Range(float(low), low + steps * step, step=step)
    assert all(found.holds(low + i * step) for i in range(steps + 1))
    assert not any(found.holds(low + (i + 0.5) * step) for i in range(steps))
    assert not found.holds(low - step)
