"""The plugin's settings, read as leniently as it reads them."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.plugins.lancedb_pro.admission_settings import PRESETS, normalised
from lcm.writing.admission.utility import FixedUtility
from pipelines.config import building, composition

ANYTHING = st.none() | st.booleans() | st.floats() | st.integers(-5, 500) | st.text(max_size=5) | st.just("0.5")
KEYS = ("preset", "enabled", "utilityMode", "rejectThreshold", "admitThreshold", "noveltyCandidatePoolSize", "weights")
PLUGIN_WEIGHTS = ("utility", "confidence", "novelty", "recency", "typePrior")


@pytest.mark.parametrize("name", PRESETS)
def test_the_presets_are_those_of_the_configuration(name: str) -> None:
    choice = name.replace("-", "_")
    amac = building.build(composition.composed([f"admission={choice}"]), "admission")
    assert amac == PRESETS[name].component(FixedUtility())


@pytest.mark.parametrize("raw", [None, "text", [], {"preset": "nope"}, {"weights": None, "typePriors": 3}])
def test_what_says_nothing_is_balanced(raw: object) -> None:
    assert normalised(raw) == PRESETS["balanced"]


def test_weights_are_bound_filled_in_and_shared_out_or_the_presets() -> None:
    found = normalised({"weights": {"utility": None, "confidence": 2, "novelty": "0.5", "recency": "x"}})
    shares = {"utility": 0, "confidence": 1, "novelty": 0.5, "recency": 0.1, "type_prior": 0.6}
    assert found.weights == pytest.approx({name: share / (1 + 0.5 + 0.1 + 0.6) for name, share in shares.items()})
    assert normalised({"weights": dict.fromkeys(PLUGIN_WEIGHTS, 0)}).weights == PRESETS["balanced"].weights


def test_thresholds_are_bound_and_the_admit_threshold_raised() -> None:
    found = normalised({"rejectThreshold": 1.5, "admitThreshold": 0.1})
    assert (found.reject_threshold, found.admit_threshold) == (1, 1)


@pytest.mark.parametrize(("given_size", "size"), [(2.9, 2), ("5", 5), (99, 20), (0, 8), (-1, 8), (0.5, 1), ("x", 8)])
def test_a_pool_size_is_whole_positive_and_at_most_20(given_size: object, size: int) -> None:
    assert normalised({"noveltyCandidatePoolSize": given_size}).novelty_pool_size == size


def test_only_true_enables_and_a_path_is_trimmed() -> None:
    found = normalised({"enabled": "true", "rejectedAuditFilePath": " /tmp/a.jsonl ", "auditMetadata": 0})
    assert not found.is_enabled
    assert found.audit_metadata
    assert found.rejected_audit_file_path == "/tmp/a.jsonl"
    assert normalised({"enabled": True, "rejectedAuditFilePath": " "}).rejected_audit_file_path is None


@given(
    raw=st.dictionaries(st.sampled_from(KEYS), ANYTHING),
    weights=st.dictionaries(st.sampled_from(PLUGIN_WEIGHTS), ANYTHING),
    priors=st.dictionaries(st.sampled_from(["events", "profile"]), ANYTHING),
    days=ANYTHING,
)
def test_whatever_is_configured_makes_a_valid_component(
    raw: dict[str, Any], weights: dict[str, Any], priors: dict[str, Any], days: object
) -> None:
    given_all = {"weights": weights, **raw, "typePriors": priors, "recency": {"halfLifeDays": days}}
    amac = normalised(given_all).component(FixedUtility())
    assert math.isclose(sum(amac.weights.values()), 1)
