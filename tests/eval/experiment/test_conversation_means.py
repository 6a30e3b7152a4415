"""What `survival` and `resume` tell of a system, in the form of measures of queries."""

from typing import Any

import pytest

from eval.experiment.conversation_means import conversation_direction, conversation_means


def entry(value: float) -> dict[str, Any]:
    return {"value": value, "n": 3, "low": value, "high": value}


SUMMARY = {
    "measures": {},
    "survival": {
        "system@1000": {"retained": entry(0.25), "missing": entry(0.5), "facts": entry(12)},
        "system@2000": {"retained": entry(0.5), "missing": entry(0.25), "facts": entry(12)},
        "oracle@1000": {"retained": entry(0.75)},
        "whole_history": {"retained": entry(1)},
    },
    "compression": {"ratio": 3.5},
}


def test_means_of_the_system_are_named_by_measure_and_budget_and_counts_are_left_out() -> None:
    assert {name: told["value"] for name, told in conversation_means(SUMMARY).items()} == {
        "survival.retained@1000": 0.25,
        "survival.retained@2000": 0.5,
        "survival.missing@1000": 0.5,
        "survival.missing@2000": 0.25,
    }
    assert conversation_means({"measures": {}}) == {}


@pytest.mark.parametrize(
    ("measure", "way"),
    [
        ("survival.retained@1000", "higher"),
        ("survival.recoverable@1000", "higher"),
        ("survival.stale@8000", "lower"),
        ("resume.task_tokens@2000", "lower"),
        ("resume.at_hand@2000", "higher"),
    ],
)
def test_what_is_lost_or_paid_is_better_low(measure: str, way: str) -> None:
    assert conversation_direction(measure) == way
