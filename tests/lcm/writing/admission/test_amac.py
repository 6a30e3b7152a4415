"""The gate: features, thresholds, and what it refuses to be configured with."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import pytest

from lcm.protocols.models import Vectors
from lcm.protocols.writing import Assessment
from lcm.records.conversation import Message
from lcm.records.document import Candidate
from lcm.writing.admission.amac import FEATURES, Amac
from lcm.writing.admission.utility import Rating
from tests.lcm.writing.admission.tables import TOWARDS, Table, candidate, document, messages
from tests.support.workspaces import minute

ONLY = {feature: {name: float(name == feature) for name in FEATURES} for feature in FEATURES}
"""Feature -> the weights that let it count alone."""
DAY, NOW = 24 * 60, minute(2)


def assessed(
    amac: Amac,
    one: Candidate,
    table: Table | None = None,
    said: Sequence[Message] = (),
    now: datetime = NOW,
    vector: Vectors | None = TOWARDS,
) -> Assessment:
    return amac.assess(one, vector, table or Table(), said, now, incidents=Counter())


def test_the_score_is_the_weighted_sum_of_the_features_whatever_the_weights_sum_to() -> None:
    near = document("d", "the kettle", "events", at=0)
    doubled = Amac(weights={name: 2 * weight for name, weight in Amac().weights.items()})
    one, table = candidate("the kettle broke", "events"), Table().holding((near, 0.6))
    found, scaled = (
        assessed(amac, one, table, messages("the kettle broke"), minute(14 * DAY)) for amac in (Amac(), doubled)
    )
    assert found.features == pytest.approx(
        {"utility": 0.5, "confidence": 1.0, "novelty": 0.4, "recency": 0.5, "type_prior": 0.45}
    )
    assert found.score == pytest.approx(0.1 * (0.5 + 1.0 + 0.4 + 0.5) + 0.6 * 0.45) == pytest.approx(scaled.score)
    assert found.is_admitted
    assert found.audit["hint"] == "update_or_merge"
    assert found.audit["matched_existing_memory_ids"] == ["d"]


def prior_alone(prior: float) -> Amac:
    """The gate that scores events by their prior."""
    return Amac(weights=ONLY["type_prior"], type_priors={**Amac().type_priors, "events": prior}, similar_cosine=0.5)


def test_a_score_at_the_threshold_is_admitted_and_one_below_is_not() -> None:
    for prior, decision in ((0.45, "pass_to_dedup"), (0.4499, "reject")):
        found = assessed(prior_alone(prior), candidate("x", "events"))
        assert (found.is_admitted, found.audit["decision"]) == (decision != "reject", decision)


def test_a_cosine_at_the_limit_is_a_match_and_nothing_new() -> None:
    for cosine, matched, hint in ((0.5, ["d"], "update_or_merge"), (0.4999, [], "add")):
        table = Table().holding((document("d", "x", "events"), cosine))
        found = assessed(prior_alone(1.0), candidate("x", "events"), table)
        assert (found.audit["matched_existing_memory_ids"], found.audit["hint"]) == (matched, hint)


def test_documents_of_the_own_category_are_compared_alone_and_ended_ones_too_by_a_vector() -> None:
    table = Table().holding(
        (document("other", "x", "cases"), 0.9),
        (document("own", "x", "events", invalidated_at=minute(1)), 0.3),
    )
    alone = assessed(Amac(), candidate("x", "events"), table, vector=None)
    assert (alone.features["novelty"], alone.features["recency"], table.asked) == (1, 1, [])
    found = assessed(Amac(), candidate("x", "events"), table)
    assert found.audit["compared_existing_memory_ids"] == ["own"]
    assert found.features["novelty"] == pytest.approx(1 - 0.3)
    assert table.asked == [(8, False)]


def test_a_category_that_nobody_knows_has_the_prior_of_others() -> None:
    assert assessed(Amac(other_prior=0.3), candidate("x", "other")).features["type_prior"] == 0.3


def test_confidence_looks_at_the_end_of_the_conversation() -> None:
    said = messages("the kettle broke", "x" * 20)
    for chars, confidence in ((20, 0), (40, 1)):
        found = assessed(Amac(conversation_chars=chars), candidate("the kettle broke"), said=said)
        assert found.features["confidence"] == confidence


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
    with pytest.raises(TypeError, match="utility must have rate"):
        Amac(utility=0.5)
