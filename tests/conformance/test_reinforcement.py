"""The laws of `Reinforcement`, over every YAML of its group."""

from functools import cache
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lcm.protocols.reinforcement import USE_SCHEMA, Reinforcement
from pipelines.config import building
from tests.lcm.retrieval.decay.frames import NOW, days_ago, rows
from tests.support.composing import composed
from tests.support.richest import once_a_class

CHOICES = once_a_class("reinforcement")
TIERS = ["peripheral", "working", "core"]
DOCUMENTS = st.lists(
    st.fixed_dictionaries(
        {
            "age": st.floats(-5, 400),
            "idle": st.one_of(st.none(), st.floats(-5, 400)),
            "access_count": st.integers(0, 40),
            "importance": st.floats(0, 1),
            "decay_tier": st.sampled_from(TIERS),
            "kind": st.sampled_from(["message", "session-summary"]),
        }
    ),
    min_size=1,
    max_size=12,
)
USED = st.lists(st.integers(0, 15).map(lambda i: f"d{i}"), max_size=12)


@cache
def reinforcement(choice: str, decay: str) -> Reinforcement:
    config = composed([f"reinforcement={choice}", f"decay={decay}"])
    return building.build(config, "reinforcement")


def frame(documents: list[dict[str, Any]]) -> pl.DataFrame:
    oldest_first = sorted(documents, key=lambda document: -document["age"])
    columns = {name: [document[name] for document in oldest_first] for name in oldest_first[0]}
    idle = [None if days is None else days_ago(days) for days in columns.pop("idle")]
    return rows(created_at=[days_ago(days) for days in columns.pop("age")], last_accessed_at=idle, **columns)


def before_and_after(choice: str, decay: str, documents: pl.DataFrame, used: list[str]) -> pl.DataFrame:
    after = reinforcement(choice, decay).after_recall(used, documents, NOW)
    return after.join(documents, on="document_id", how="left", suffix="_before", maintain_order="left")


LAWS = [
    pytest.mark.parametrize("choice", CHOICES),
    pytest.mark.parametrize("decay", ["none", "weibull"]),
    given(documents=DOCUMENTS.map(frame), used=USED),
    settings(max_examples=30),
]


def law(test):
    for mark in LAWS:
        test = mark(test)
    return test


@law
def test_only_given_documents_change_and_each_once(choice, decay, documents, used) -> None:
    original = documents.clone()
    after = reinforcement(choice, decay).after_recall(used, documents, NOW)
    assert dict(after.schema) == USE_SCHEMA
    assert documents.equals(original)
    assert after.equals(reinforcement(choice, decay).after_recall(used, documents, NOW))
    assert set(after["document_id"]) <= set(documents["document_id"])
    assert not after["document_id"].is_duplicated().any()


@law
def test_use_is_counted_for_the_used_alone_and_a_tier_moves_one_step_at_most(choice, decay, documents, used) -> None:
    counted = list(dict.fromkeys(used))[: reinforcement(choice, decay).recalled]
    for row in before_and_after(choice, decay, documents, used).iter_rows(named=True):
        was_used = row["document_id"] in counted
        before = row["last_accessed_at_before"]
        assert row["access_count"] == row["access_count_before"] + (was_used and row["access_count_before"] < 10_000)
        assert row["last_accessed_at"] == (max(before or NOW, NOW) if was_used else before)
        assert abs(TIERS.index(row["decay_tier"]) - TIERS.index(row["decay_tier_before"])) <= 1


@law
def test_what_is_returned_has_changed(choice, decay, documents, used) -> None:
    changed = before_and_after(choice, decay, documents, used)
    for name in ("access_count", "last_accessed_at", "decay_tier"):
        changed = changed.filter(pl.col(name).eq_missing(pl.col(f"{name}_before")))
    assert changed.is_empty()


@pytest.mark.parametrize("choice", CHOICES)
def test_what_counts_no_use_changes_nothing(choice: str) -> None:
    chosen = reinforcement(choice, "weibull")
    old = rows(created_at=[days_ago(300)])
    assert chosen.after_recall(["d0"], old, NOW).is_empty() is (chosen.recalled == 0)
