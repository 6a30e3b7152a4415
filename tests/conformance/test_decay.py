"""The laws of `Decay`, over every YAML of its group."""

import math
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lcm.protocols.contract import contract_of
from lcm.protocols.retrieval import Columns, Decay
from pipelines.config import building
from tests.lcm.retrieval.decay.frames import rows
from tests.support.composing import composed
from tests.support.richest import once_a_class

CHOICES = once_a_class("decay")
INSTANTS = st.one_of(
    st.none(),
    st.datetimes(datetime(1990, 1, 1), datetime(2060, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
)
DOCUMENTS = st.fixed_dictionaries(
    {
        "asked_at": st.datetimes(datetime(1990, 1, 1), datetime(2060, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
        "created_at": INSTANTS,
        "last_accessed_at": INSTANTS,
        "access_count": st.one_of(st.none(), st.integers(0, 10_000)),
        "importance": st.one_of(st.none(), st.floats()),
        "confidence": st.one_of(st.none(), st.floats()),
        "decay_tier": st.sampled_from(["core", "working", "peripheral"]),
        "temporal_type": st.sampled_from(["static", "dynamic"]),
    }
)


@cache
def decay(choice: str) -> Decay:
    return building.build(composed([f"decay={choice}"]), "decay")


def judged(choice: str, documents: list[dict[str, Any]]) -> list[tuple[float, float]]:
    columns = Columns(rows(**{name: [document[name] for document in documents] for name in documents[0]}))
    numbers = (decay(choice).multiplier(columns).tolist(), decay(choice).strength(columns).tolist())
    return list(zip(*numbers, strict=True))


@pytest.mark.parametrize("choice", CHOICES)
@given(document=DOCUMENTS)
def test_a_multiplier_is_a_share_and_no_strength_is_no_number(choice: str, document: dict[str, Any]) -> None:
    ((multiplier, strength),) = judged(choice, [document])
    assert 0 <= multiplier <= 1
    assert not math.isnan(strength)


@pytest.mark.parametrize("choice", CHOICES)
@given(document=DOCUMENTS, days=st.floats(0, 9999))
def test_decay_never_rises_with_age(choice: str, document: dict[str, Any], days: float) -> None:
    later = document | {"asked_at": document["asked_at"] + timedelta(days=days)}
    (before, strength_before), (after, strength_after) = judged(choice, [document, later])
    assert after <= before
    assert strength_after <= strength_before


@pytest.mark.parametrize("choice", CHOICES)
@given(document=DOCUMENTS, value=st.sampled_from([None, math.nan, math.inf, -math.inf]))
@pytest.mark.parametrize("name", ["importance", "confidence"])
def test_a_value_that_is_no_number_is_taken_as_its_columns_default(
    choice: str, name: str, document: dict[str, Any], value: float | None
) -> None:
    broken, default = judged(choice, [document | {name: value}, document | {name: 0.7}])
    assert broken == default


@pytest.mark.parametrize("choice", CHOICES)
@settings(max_examples=30)
@given(documents=st.lists(DOCUMENTS, min_size=2, max_size=5))
def test_a_document_is_judged_alone(choice: str, documents: list[dict[str, Any]]) -> None:
    assert judged(choice, documents) == [judged(choice, [document])[0] for document in documents]


@pytest.mark.parametrize("choice", CHOICES)
def test_what_comes_out_are_floats(choice: str) -> None:
    columns = Columns(rows(score=[0.5]))
    for numbers in (decay(choice).multiplier(columns), decay(choice).strength(columns)):
        assert numbers.dtype == np.float64
        assert numbers.shape == (1,)


@pytest.mark.parametrize("choice", CHOICES)
def test_a_decay_reads_what_it_names(choice: str) -> None:
    whole = rows(score=[0.5, 0.5], access_count=[0, 3], confidence=[0.2, 0.9])
    read = whole.select("asked_at", *contract_of(decay(choice)).reads)
    for formula in (decay(choice).multiplier, decay(choice).strength):
        np.testing.assert_array_equal(formula(Columns(read)), formula(Columns(whole)))
