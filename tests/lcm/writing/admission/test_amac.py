"""The gate: features, thresholds, and what it refuses to be configured with."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.records.conversation import Message
from lcm.records.document import MEMORY_CATEGORIES, Candidate
from lcm.writing.admission.amac import FEATURES, Amac
from lcm.writing.admission.utility import FixedUtility, Rating
from tests.lcm.writing.admission.tables import TOWARDS, Table, candidate, document, messages
from tests.support.workspaces import minute

ONLY = {feature: {name: float(name == feature) for name in FEATURES} for feature in FEATURES}
"""Feature -> the weights that let it count alone."""
DAY = 24 * 60


def test_the_score_is_the_weighted_sum_of_the_features() -> None:
    near = document("d", "the kettle", "events", at=0)
    found = Amac().assess(
        candidate("the kettle broke", "events"),
        TOWARDS,
        Table().holding((near, 0.6)),
        messages("the kettle broke"),
        minute(14 * DAY),
        incidents=Counter(),
    )
    assert found.features == pytest.approx(
        {"utility": 0.5, "confidence": 1.0, "novelty": 0.4, "recency": 0.5, "type_prior": 0.45}
    )
    assert found.score == pytest.approx(0.1 * (0.5 + 1.0 + 0.4 + 0.5) + 0.6 * 0.45)
    assert found.is_admitted
    assert found.audit["hint"] == "update_or_merge"
    assert found.audit["matched_existing_memory_ids"] == ["d"]


def test_weights_count_by_their_proportions() -> None:
    doubled = Amac(weights={name: 2 * weight for name, weight in Amac().weights.items()})
    one = candidate("the kettle broke", "cases")
    arguments = (one, None, Table(), messages("the kettle"), minute(0))
    assert doubled.assess(*arguments, incidents=Counter()).score == pytest.approx(
        Amac().assess(*arguments, incidents=Counter()).score
    )


def test_a_score_at_the_threshold_is_admitted_and_one_below_is_not() -> None:
    for prior, is_admitted in ((0.45, True), (0.4499, False)):
        amac = Amac(weights=ONLY["type_prior"], type_priors={**Amac().type_priors, "events": prior})
        found = amac.assess(candidate("x", "events"), None, Table(), [], minute(0), incidents=Counter())
        assert found.is_admitted == is_admitted
        assert found.audit["decision"] == ("pass_to_dedup" if is_admitted else "reject")


def test_a_cosine_at_the_limit_is_a_match_and_nothing_new() -> None:
    amac = Amac(weights=ONLY["type_prior"], type_priors={**Amac().type_priors, "events": 1.0}, similar_cosine=0.5)
    for cosine, matched, hint in ((0.5, ["d"], "update_or_merge"), (0.4999, [], "add")):
        table = Table().holding((document("d", "x", "events"), cosine))
        found = amac.assess(candidate("x", "events"), TOWARDS, table, [], minute(0), incidents=Counter())
        assert (found.audit["matched_existing_memory_ids"], found.audit["hint"]) == (matched, hint)


def test_documents_of_the_own_category_are_compared_alone_and_ended_ones_too() -> None:
    table = Table().holding(
        (document("other", "x", "cases"), 0.9),
        (document("own", "x", "events", invalidated_at=minute(1)), 0.3),
    )
    found = Amac().assess(candidate("x", "events"), TOWARDS, table, [], minute(2), incidents=Counter())
    assert found.audit["compared_existing_memory_ids"] == ["own"]
    assert found.features["novelty"] == pytest.approx(1 - 0.3)
    assert table.asked == [(8, False)]


def test_without_a_vector_nothing_is_compared() -> None:
    table = Table().holding((document("d", "x"), 1.0))
    found = Amac().assess(candidate("x"), None, table, [], minute(0), incidents=Counter())
    assert (found.features["novelty"], found.features["recency"]) == (1, 1)
    assert table.asked == []


def test_a_category_that_nobody_knows_has_the_prior_of_others() -> None:
    found = Amac(other_prior=0.3).assess(candidate("x", "other"), None, Table(), [], minute(0), incidents=Counter())
    assert found.features["type_prior"] == 0.3


def test_confidence_looks_at_the_end_of_the_conversation() -> None:
    said = messages("the kettle broke", "x" * 20)
    near, far = (
        Amac(conversation_chars=chars).assess(
            candidate("the kettle broke"), None, Table(), said, minute(1), incidents=Counter()
        )
        for chars in (20, 40)
    )
    assert near.features["confidence"] == 0
    assert far.features["confidence"] == 1


@dataclass(frozen=True)
class Unsure:
    def rate(self, candidate: Candidate, messages: Sequence[Message], *, incidents: Counter[str]) -> Rating:
        incidents["utility_no_reply"] += 1
        return Rating(0.5, "no reply: gone")


def test_what_failed_is_counted_and_its_reason_is_in_the_audit() -> None:
    incidents = Counter[str]()
    found = Amac(utility=Unsure()).assess(candidate("x"), None, Table(), [], minute(0), incidents=incidents)
    assert found.audit["utility_reason"] == "no reply: gone"
    assert incidents == {"utility_no_reply": 1}


NAN = math.nan


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"weights": {**ONLY["utility"], "utility": -1.0}}, "weights.utility must be >= 0, got -1.0"),
        ({"weights": {**ONLY["utility"], "utility": NAN}}, "weights.utility must be >= 0, got nan"),
        ({"weights": {**ONLY["utility"], "utility": 0.0}}, "^weights must not all be 0: raise one$"),
        ({"weights": dict.fromkeys(Amac().weights, 1e308)}, "^weights must have a finite sum: lower one$"),
        ({"weights": {**ONLY["utility"], "luck": 1.0}}, "weights has no 'luck'; choose from: utility"),
        ({"weights": {"utility": 1.0}}, "weights must name confidence, novelty, recency, type_prior"),
        ({"type_priors": {**Amac().type_priors, "events": 1.1}}, r"type_priors.events must be in \[0, 1\], got 1.1"),
        ({"type_priors": {}}, "type_priors must name profile"),
        ({"reject_threshold": NAN}, r"reject_threshold must be in \[0, 1\], got nan"),
        ({"admit_threshold": 1.5}, r"admit_threshold must be in \[0, 1\], got 1.5"),
        ({"admit_threshold": 0.4}, r"admit_threshold must be >= reject_threshold \(0.45\), got 0.4"),
        ({"similar_cosine": NAN}, r"similar_cosine must be in \[-1, 1\], got nan"),
        ({"other_prior": -0.1}, r"other_prior must be in \[0, 1\], got -0.1"),
        ({"novelty_pool_size": 0}, "novelty_pool_size must be >= 1, got 0"),
        ({"recency_half_life_days": 0.0}, "recency_half_life_days must be > 0, got 0.0"),
        ({"recency_half_life_days": NAN}, "recency_half_life_days must be > 0, got nan"),
        ({"conversation_chars": -1}, "conversation_chars must be >= 0, got -1"),
    ],
)
def test_a_setting_out_of_range_is_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Amac(**settings)


def test_a_utility_that_rates_nothing_is_refused() -> None:
    with pytest.raises(TypeError, match="utility must have rate"):
        Amac(utility=0.5)


SHARES = st.floats(0, 1)


@given(
    weights=st.fixed_dictionaries(dict.fromkeys(FEATURES, SHARES)).filter(lambda w: sum(w.values()) > 0),
    prior=SHARES,
    utility=SHARES,
    cosine=st.floats(-1, 1),
    age=st.integers(-100, 10**6),
    category=st.sampled_from([*MEMORY_CATEGORIES, "other"]),
)
def test_features_and_score_stay_between_0_and_1(
    weights: dict[str, float], prior: float, utility: float, cosine: float, age: int, category: str
) -> None:
    amac = Amac(weights=weights, other_prior=prior, utility=FixedUtility(utility))
    table = Table().holding((document("d", "the kettle"), cosine))
    now = minute(0) + timedelta(minutes=age)
    found = amac.assess(
        candidate("the kettle broke", category), TOWARDS, table, messages("the kettle"), now, incidents=Counter()
    )
    assert all(0 <= value <= 1 for value in found.features.values())
    assert 0 <= found.score <= 1 + 1e-12
    assert found.is_admitted == (found.score >= amac.reject_threshold)
