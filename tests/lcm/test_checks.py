"""Checks of fields: one wording for each kind, whatever the values."""

import math
import operator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.checks import check_choice, check_keys, check_range, check_weights


@dataclass(frozen=True, slots=True)
class Fields:
    half_life_days: Any = 1.0
    share: Any = 0.5
    window: Any = None
    weights: Any = None
    tier: Any = "hot"


@pytest.mark.parametrize(
    ("fields", "bounds", "message"),
    [
        ({"half_life_days": -3}, {"gt": 0}, "half_life_days must be > 0, got -3"),
        ({"half_life_days": 0}, {"gt": 0}, "half_life_days must be > 0, got 0"),
        ({"half_life_days": 9}, {"le": 8}, "half_life_days must be <= 8, got 9"),
        ({"half_life_days": math.nan}, {"ge": 0}, "half_life_days must be >= 0, got nan"),
        ({"half_life_days": math.inf}, {"ge": 0}, "half_life_days must be >= 0, got inf"),
        ({"half_life_days": -math.inf}, {}, "half_life_days must be a finite number, got -inf"),
        ({"half_life_days": True}, {"ge": 0}, "half_life_days must be >= 0, got True"),
        ({"half_life_days": "7"}, {"ge": 0}, "half_life_days must be >= 0, got '7'"),
        ({"half_life_days": None}, {"ge": 0}, "half_life_days must be >= 0, got None"),
        ({"share": 1.5}, {"ge": 0, "le": 1}, "share must be in [0, 1], got 1.5"),
        ({"share": 0}, {"gt": 0, "le": 1}, "share must be in (0, 1], got 0"),
        ({"share": 1}, {"gt": 0, "lt": 1}, "share must be in (0, 1), got 1"),
        ({"window": [3, 0]}, {"ge": 1}, "window[1] must be >= 1, got 0"),
        ({"window": -math.inf}, {"ge": 0, "or_infinite": True}, "window must be >= 0 or .inf, got -inf"),
        ({"window": 0}, {"ge": 1, "or_null": True}, "window must be >= 1 or null, got 0"),
        ({"window": 2.5}, {"ge": 1, "is_whole": True}, "window must be a whole number >= 1, got 2.5"),
        ({"window": True}, {"ge": 1, "is_whole": True}, "window must be a whole number >= 1, got True"),
        ({"weights": {"a": 1, "b": -1}}, {"ge": 0}, "weights.b must be >= 0, got -1"),
    ],
)
def test_a_field_out_of_range_is_named_with_what_it_may_be(fields, bounds, message):
    with pytest.raises(ValueError) as raised:
        check_range(Fields(**fields), *fields, **bounds)
    assert str(raised.value) == message


NUMBERS = st.integers(-4, 4) | st.floats(-4, 4)
BOUNDS = st.dictionaries(st.sampled_from(["ge", "gt", "le", "lt"]), st.integers(-3, 3))


@given(value=NUMBERS, bounds=BOUNDS)
def test_a_number_passes_where_every_bound_holds(value: float, bounds: dict[str, float]) -> None:
    if all(getattr(operator, name)(value, bound) for name, bound in bounds.items()):
        check_range(SimpleNamespace(x=value), "x", **bounds)
    else:
        with pytest.raises(ValueError, match=r"^x must be .*, got "):
            check_range(SimpleNamespace(x=value), "x", **bounds)


def test_what_may_stand_passes_and_the_first_field_that_is_wrong_is_named() -> None:
    check_range(SimpleNamespace(x=-(10**400)), "x", is_whole=True)
    check_range(Fields(), "window", ge=1, or_null=True)
    check_range(Fields(window=math.inf), "window", ge=0, or_infinite=True)
    with pytest.raises(ValueError, match=r"^share must be >= 0, got -1$"):
        check_range(Fields(half_life_days=1, share=-1), "half_life_days", "share", ge=0)


@pytest.mark.parametrize(
    "choices", [Literal["warm", "cold", "hot"], ("warm", "cold", "hot"), {"warm": 1, "cold": 2, "hot": 3}]
)
@pytest.mark.parametrize("tier", ["lukewarm", ["hot"], {"hot": 1}, None])
def test_a_choice_that_there_is_not_is_refused_with_those_there_are(choices: Any, tier: Any) -> None:
    check_choice(Fields(), tier=choices)
    with pytest.raises(ValueError) as raised:
        check_choice(Fields(tier=tier), tier=choices)
    assert str(raised.value) == f"tier must be one of: cold, hot, warm, got {tier!r}"


@pytest.mark.parametrize(
    ("names", "fields", "message"),
    [
        (["share"], {"share": 0}, "share must not all be 0: raise one"),
        (["weights"], {"weights": {"a": 0, "b": 0.0}}, "weights must not all be 0: raise one"),
        (["share", "window"], {"share": 0, "window": 0}, "share and window must not all be 0: raise one"),
        (["share", "window"], {"share": 1e308, "window": 1e308}, "share and window must have a finite sum: lower one"),
        (["weights"], {"weights": {"a": 1, "b": -1}}, "weights.b must be >= 0, got -1"),
    ],
)
def test_weights_that_weigh_nothing_are_refused(names: list[str], fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as raised:
        check_weights(Fields(**fields), *names)
    assert str(raised.value) == message


def test_the_keys_of_a_mapping_are_those_that_are_named() -> None:
    fields = Fields(weights={"recency": 1.0, "novelty": 0.0})
    check_keys(fields, weights=("novelty", "recency"))
    with pytest.raises(ValueError, match=r"^weights has no 'recency'; choose from: novelty$"):
        check_keys(fields, weights=("novelty",))
    with pytest.raises(ValueError, match=r"^weights must name utility, age, got recency, novelty$"):
        check_keys(fields, weights=("utility", "novelty", "age", "recency"))
