"""Which event a text testifies of, and how well."""

import math
from typing import Any

import pytest

from lcm.retrieval.recovery.turns import Witness, Witnesses, best_pair, sides
from lcm.retrieval.terms import Terms
from tests.lcm.refusals import assert_refused

SIDES = (("copper", "kettle"), ("garden", "gate"))


def find(text: str, events: Any = SIDES, **settings: Any) -> Witness | None:
    return Witnesses(**settings).find(text, events, Terms())


def score(text: str, events: Any = SIDES, **settings: Any) -> float:
    found = find(text, events, **settings)
    assert found is not None
    return found.score


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
    hiking = (("solo", "hiking"), ("regatta",))
    assert find("a job", events) is None
    assert find("a boat", (("red", "fast", "boat"), ("boat", "yellow"))) is None
    assert find("solo", hiking) is None
    assert find("solo", hiking, is_discriminative=False) is not None
    assert find("a librarian", (("harbour", "librarian"), ("a",)), is_discriminative=False) is not None
    for text, is_discriminative, side in (("a librarian", True, 1), ("a barista job", False, 0)):
        found = find(text, events, is_discriminative=is_discriminative)
        assert found is not None
        assert found.side == side


def test_what_is_said_early_counts_whole_and_precision_falls_with_the_length_of_a_text() -> None:
    early, late = "kettle bought yesterday afternoon somewhere", "yesterday afternoon somewhere bought kettle"
    assert score(early) == pytest.approx((1 / 2) * (1 / 5))  # place 0 of 5, early below 0.3 * 5 = 1.5
    assert score(late) == pytest.approx((0.5 / 2) * (0.5 / 5))
    assert score("kettle " + " ".join(f"word{i}" for i in range(9))) == pytest.approx((1 / 2) * (1 / 10))
    assert score("perhaps someday I will see the regatta", (("regatta",), ("gate",))) == 1  # told by its one term


def test_what_is_yet_to_come_is_a_weaker_witness() -> None:
    found = find("I'm planning a kettle, I want to buy it")
    assert found is not None
    assert found.pastness == pytest.approx(1 - 2 / 3)  # two phrases; i, i and i'm
    # of planning, kettle, buy the second is late; pastness counts no less than 0.6
    assert found.score == pytest.approx((0.5 / 2) * (0.5 / 5) * 0.6)
    assert score("I'm planning a kettle, I want to buy it", weighs_position=False) == 1 / 2


def test_a_text_that_speaks_of_both_events_is_a_weaker_witness() -> None:
    alone = score("copper kettle behind gate", other_penalty=0.0)
    assert score("copper kettle behind gate") == pytest.approx(alone * (0.7 + 0.3 * (1 - 1 / 2)))


def test_the_events_of_a_comparison_are_no_generic_nouns() -> None:
    for slots, events in (
        ([("trip",), ("regatta",), ("harvest", "supper")], (("regatta",), ("harvest", "supper"))),
        ([("trip", "oslo"), ("regatta",), ("supper",)], (("regatta",), ("supper",))),
        ([("trip", "oslo"), ("regatta",)], (("trip", "oslo"), ("regatta",))),
        ([("regatta",)], None),
        ([("trip",), ("regatta",)], None),
        ([], None),
    ):
        assert sides(slots) == events


def test_the_best_pair_fits_the_budget() -> None:
    found = [witness(0, 0.9), witness(1, 0.5), witness(0, 0.4), None, witness(1, 0.5)]
    worth = [one.score if one else 0.0 for one in found]
    tokens = [50, 20, 5, 1, 10]
    assert best_pair(found, worth, tokens, 100) == (0, 4)  # as good as (0, 1), and cheaper
    assert best_pair(found, worth, tokens, 59) == (2, 4)
    assert best_pair(found, worth, tokens, 14) is None


def test_settings_out_of_range_are_refused() -> None:
    assert_refused(Witnesses, "be in [0, 1]", least_share=1.5, other_penalty=math.nan)
    assert_refused(Witnesses, "be >= 1", least_content=0)
