"""The gate: features, thresholds, and what it refuses to be configured with."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import pytest

from lcm.protocols.models import Vectors
from lcm.protocols.writing import Assessment, Neighbour
from lcm.records.conversation import Message
from lcm.records.document import Candidate
from lcm.writing.admission.amac import FEATURES, Amac, FixedUtility, Rating, recency_gap
from tests.lcm.refusals import assert_refused
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


def test_a_score_does_not_depend_on_what_the_weights_sum_to() -> None:
    doubled = Amac(weights={name: 2 * weight for name, weight in Amac().weights.items()})
    one, said = candidate("the kettle broke", "events"), messages("the kettle broke")
    found, scaled = (assessed(amac, one, said=said) for amac in (Amac(), doubled))
    assert found.score == pytest.approx(scaled.score)
    assert 0 < scaled.score < 1


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


def test_what_is_newer_than_all_alike_is_no_news_and_a_half_life_of_0_forgets_at_once() -> None:
    known = [Neighbour(document("d", "x", "events"), 1.0)]
    said = known[0].document.created_at
    assert recency_gap(known, said, 14.0) == recency_gap(known, said, 0.0) == 0
    assert recency_gap(known, said + timedelta(days=14), 14.0) == 1 - 1 / 2
    assert recency_gap(known, said + timedelta(milliseconds=1), 0.0) == 1


@pytest.mark.parametrize(
    ("veto", "utility", "is_admitted"), [(0.0, 0.0, True), (0.3, 0.3, False), (0.3, 0.31, True), (1.0, 1.0, False)]
)
def test_too_little_utility_is_refused_whatever_the_score(veto: float, utility: float, is_admitted: bool) -> None:
    amac = Amac(reject_threshold=0.0, utility_veto=veto, utility=FixedUtility(utility))
    found = assessed(amac, candidate("x", "profile"))
    assert (found.is_admitted, found.audit["hint"]) == (is_admitted, "add" if is_admitted else None)
    assert found.reason.startswith("score" if is_admitted else "utility")
    assert found.audit["thresholds"]["utility_veto"] == veto


def test_what_is_constructed_is_refused_unseen() -> None:
    table, one = Table(), replace(candidate("x", "profile"), metadata={"grounding": "constructed"})
    found = assessed(Amac(reject_threshold=0.0, utility=Unsure()), one, table)
    assert (found.is_admitted, found.score, set(found.features.values())) == (False, 0, {0})
    assert (found.audit["grounding"], found.audit["utility_reason"], table.asked) == ("constructed", None, [])


def test_in_fiction_no_category_counts_more_than_events() -> None:
    for category, prior in (("profile", 0.45), ("events", 0.45), ("cases", 0.45), ("other", 0.2)):
        one = replace(candidate("x", category), metadata={"conversation_register": "fiction"})
        assert assessed(Amac(other_prior=0.2), one).features["type_prior"] == prior
    assert assessed(Amac(), candidate("x", "profile")).features["type_prior"] == 0.95


def test_what_failed_is_counted_and_its_reason_is_in_the_audit() -> None:
    incidents = Counter[str]()
    found = Amac(utility=Unsure()).assess(candidate("x"), None, Table(), [], minute(0), incidents=incidents)
    assert found.audit["utility_reason"] == "no reply: gone"
    assert incidents == {"utility_no_reply": 1}


def test_settings_out_of_range_are_refused() -> None:
    utility = ONLY["utility"]
    for settings, message in (
        ({"weights": {**utility, "utility": -1.0}}, "weights.utility must be >= 0, got -1.0"),
        ({"weights": {**utility, "utility": math.nan}}, "weights.utility must be >= 0, got nan"),
        ({"weights": {**utility, "utility": 0.0}}, "^weights must not all be 0: raise one$"),
        ({"weights": dict.fromkeys(Amac().weights, 1e308)}, "^weights must have a finite sum: lower one$"),
        ({"weights": {**utility, "luck": 1.0}}, "weights has no 'luck'; choose from: utility"),
        ({"weights": {"utility": 1.0}}, "weights must name confidence, novelty, recency, type_prior"),
        ({"type_priors": {**Amac().type_priors, "events": 1.1}}, r"type_priors.events must be in \[0, 1\], got 1.1"),
        ({"type_priors": {}}, "type_priors must name profile"),
    ):
        with pytest.raises(ValueError, match=message):
            Amac(**settings)  # type: ignore[arg-type]
    assert_refused(
        Amac, "be in [0, 1]", reject_threshold=math.nan, utility_veto=2.0, admit_threshold=1.5, other_prior=-0.1
    )
    assert_refused(Amac, "be >= reject_threshold (0.45)", admit_threshold=0.4)
    assert_refused(Amac, "be in [-1, 1]", similar_cosine=math.nan)
    assert_refused(Amac, "be >= 1", novelty_pool_size=0)
    assert_refused(Amac, "be > 0", recency_half_life_days=[0.0, math.nan])
    assert_refused(Amac, "be >= 0", conversation_chars=-1)
    with pytest.raises(TypeError, match="utility must have rate"):
        Amac(utility=0.5)  # type: ignore[arg-type]
