"""Which event a text testifies of, and how well."""

import math
from typing import Any

import pytest

from lcm.retrieval.recovery.witness import Witness, Witnesses, best_pair, fewest_tokens, sides
from lcm.retrieval.terms import Terms

SIDES = (("copper", "kettle"), ("garden", "gate"))


def find(text: str, events: Any = SIDES, **settings: Any) -> Witness | None:
    return Witnesses(**settings).find(text, events, Terms())


def witness(side: int, score: float) -> Witness:
    return Witness(side, 1.0, score)


def test_a_text_belongs_to_the_event_of_which_it_says_more() -> None:
    assert find("the kettle") == Witness(0, 1.0, pytest.approx(1 / 2 * 1 / 5))
    assert find("a garden gate and a kettle").side == 1  # type: ignore[union-attr]
    assert find("a kettle by the gate") is None  # half of each
    assert find("nothing") is None
    assert find("the kettle", least_share=0.6) is None


def test_what_both_events_share_and_what_is_generic_tells_nothing() -> None:
    events = (("barista", "job"), ("librarian", "job"))
    assert find("a job", events) is None
    assert find("a boat", (("red", "fast", "boat"), ("boat", "yellow"))) is None
    assert find("a librarian", events).side == 1  # type: ignore[union-attr]
    assert find("a barista job", events, is_discriminative=False).side == 0  # type: ignore[union-attr]
    assert find("a librarian", (("harbour", "librarian"), ("a",)), is_discriminative=False) is not None
    assert find("solo", (("solo", "hiking"), ("regatta",))) is None
    assert find("solo", (("solo", "hiking"), ("regatta",)), is_discriminative=False) is not None


def test_what_is_said_early_counts_whole() -> None:
    early = find("kettle bought yesterday afternoon somewhere")  # place 0 of 5, early below 0.3 * 5 = 1.5
    late = find("yesterday afternoon somewhere bought kettle")
    assert early.score == pytest.approx((1 / 2) * (1 / 5))  # type: ignore[union-attr]
    assert late.score == pytest.approx((0.5 / 2) * (0.5 / 5))  # type: ignore[union-attr]


def test_precision_falls_with_the_length_of_a_text() -> None:
    words = "kettle " + " ".join(f"word{i}" for i in range(9))
    assert find(words).score == pytest.approx((1 / 2) * (1 / 10))  # type: ignore[union-attr]


def test_an_event_of_one_term_is_told_by_that_term_alone() -> None:
    assert find("perhaps someday I will see the regatta", (("regatta",), ("gate",))).score == 1  # type: ignore[union-attr]


def test_what_is_yet_to_come_is_a_weaker_witness() -> None:
    found = find("I'm planning a kettle, I want to buy it")
    assert found.pastness == pytest.approx(1 - 2 / 3)  # type: ignore[union-attr] # two phrases; i, i and i'm
    # of planning, kettle, buy the second is late; pastness counts no less than 0.6
    assert found.score == pytest.approx((0.5 / 2) * (0.5 / 5) * 0.6)  # type: ignore[union-attr]
    plain = find("I'm planning a kettle, I want to buy it", weighs_position=False)
    assert plain.score == 1 / 2  # type: ignore[union-attr]


def test_a_text_that_speaks_of_both_events_is_a_weaker_witness() -> None:
    both = find("copper kettle behind gate")
    alone = find("copper kettle behind gate", other_penalty=0.0)
    assert both.score == pytest.approx(alone.score * (0.7 + 0.3 * (1 - 1 / 2)))  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("slots", "events"),
    [
        ([("trip",), ("regatta",), ("harvest", "supper")], (("regatta",), ("harvest", "supper"))),
        ([("trip", "oslo"), ("regatta",), ("supper",)], (("regatta",), ("supper",))),
        ([("trip", "oslo"), ("regatta",)], (("trip", "oslo"), ("regatta",))),
        ([("regatta",)], None),
        ([("trip",), ("regatta",)], None),
        ([], None),
    ],
)
def test_the_events_of_a_comparison_are_no_generic_nouns(slots: Any, events: Any) -> None:
    assert sides(slots) == events


def test_the_best_pair_fits_the_budget() -> None:
    found = [witness(0, 0.9), witness(1, 0.5), witness(0, 0.4), None, witness(1, 0.5)]
    worth = [one.score if one else 0.0 for one in found]
    tokens = [50, 20, 5, 1, 10]
    assert best_pair(found, worth, tokens, 100) == (0, 4)  # as good as (0, 1), and cheaper
    assert best_pair(found, worth, tokens, 59) == (2, 4)
    assert best_pair(found, worth, tokens, 14) is None
    assert fewest_tokens(found, tokens) == 5 + 10
    assert fewest_tokens(found[:1], tokens[:1]) is None


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"least_share": 1.5}, r"least_share must be in \[0, 1\], got 1.5"),
        ({"other_penalty": math.nan}, r"other_penalty must be in \[0, 1\], got nan"),
        ({"least_content": 0}, "least_content must be >= 1, got 0"),
    ],
)
def test_settings_out_of_range_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Witnesses(**settings)
