"""What `survival` and `resume` tell of a system, in the form of measures of queries."""

from eval.measures.means import conversation_direction, conversation_means


def test_means_of_the_system_are_named_by_measure_and_budget_and_counts_are_left_out() -> None:
    values = {
        "system@1000": {"retained": 0.25, "missing": 0.5, "facts": 12},
        "system@2000": {"retained": 0.5, "missing": 0.25, "facts": 12},
        "oracle@1000": {"retained": 0.75},
        "whole_history": {"retained": 1},
    }
    told = {
        arm: {name: {"value": value, "n": 3, "low": value, "high": value} for name, value in one.items()}
        for arm, one in values.items()
    }
    found = conversation_means({"measures": {}, "survival": told, "compression": {"ratio": 3.5}})
    assert {name: told["value"] for name, told in found.items()} == {
        "survival.retained@1000": 0.25,
        "survival.retained@2000": 0.5,
        "survival.missing@1000": 0.5,
        "survival.missing@2000": 0.25,
    }
    assert conversation_means({"measures": {}}) == {}


def test_what_is_lost_or_paid_is_better_low() -> None:
    higher = ["survival.retained@1000", "survival.recoverable@1000", "resume.at_hand@2000"]
    lower = ["survival.stale@8000", "resume.task_tokens@2000"]
    ways = {measure: conversation_direction(measure) for measure in (*higher, *lower)}
    assert ways == dict.fromkeys(higher, "higher") | dict.fromkeys(lower, "lower")
