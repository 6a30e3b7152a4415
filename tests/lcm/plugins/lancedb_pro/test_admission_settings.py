"""The plugin's settings, read as leniently as it reads them."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.plugins.lancedb_pro.admission_settings import PRESETS, batch_size, normalised
from lcm.writing.admission.utility import FixedUtility
from pipelines.config import building, composition

ANYTHING = st.none() | st.booleans() | st.floats() | st.integers(-5, 500) | st.text(max_size=5) | st.just("0.5")
KEYS = ("preset", "enabled", "utilityMode", "rejectThreshold", "admitThreshold", "noveltyCandidatePoolSize", "weights")
NEWER = ("utilityVetoThreshold", "model", "modelAffinity")
PLUGIN_WEIGHTS = ("utility", "confidence", "novelty", "recency", "typePrior")


@pytest.mark.parametrize("name", PRESETS)
def test_the_presets_are_those_of_the_configuration(name: str) -> None:
    choice = name.replace("-", "_")
    amac = building.build(composition.composed([f"admission={choice}"]), "admission")
    assert amac == PRESETS[name].component(FixedUtility())


@given(
    raw=st.dictionaries(st.sampled_from((*KEYS, *NEWER)), ANYTHING),
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


def test_a_veto_reaches_the_component_and_models_are_told() -> None:
    found = normalised({"utilityMode": "batch", "utilityVetoThreshold": 2, "model": " a/b ", "modelAffinity": "lanes"})
    assert (found.utility_mode, found.model, found.model_affinity) == ("batch", "a/b", "global")
    assert found.component(FixedUtility()).utility_veto == 1
    assert normalised(None).model_affinity is None


@pytest.mark.parametrize(
    ("raw", "size"), [(None, 10), (0.9, 10), ("x", 10), (math.inf, 10), (1, 1), ("2.9", 2), (100, 50)]
)
def test_batches_are_of_1_to_50(raw: object, size: int) -> None:
    assert batch_size(raw) == size
