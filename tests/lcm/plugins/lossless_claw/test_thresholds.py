"""Which threshold holds for a model and a session; golden vectors hold the plugin's."""

from typing import Any

import pytest

from lcm.plugins.lossless_claw.thresholds import RuntimeModel, chosen, runtime_model, threshold_rules

CLAUDE = RuntimeModel("anthropic", "claude", 200_000)


def rule(threshold: object = 0.5, **match: object) -> dict[str, Any]:
    return {"match": match or {"model": "claude"}, "contextThreshold": threshold}


def test_the_closest_rule_holds_and_of_equals_the_first() -> None:
    given = [
        rule(0.1, modelContextWindowMin=200_000, modelContextWindowMax=200_000),
        rule(0.2, sessionPattern="agent:*"),
        rule(0.3, model="anthropic/claude"),
        rule(0.4, model="claude"),
        rule(0.9, model="claude", sessionPattern="other:*"),
    ]
    rules = threshold_rules(given)
    found = [chosen(rules[:count], CLAUDE, "agent:a") for count in range(1, 6)]
    assert [(one.place, one.specificity) for one in found if one] == [(0, 40), (1, 50), (2, 100), (2, 100), (2, 100)]
    assert chosen(rules, CLAUDE, "other:a").specificity == 150  # type: ignore[union-attr]
    assert chosen(rules, RuntimeModel("x", "y", 199_999), " ") is None


def test_the_first_of_a_hosts_contexts_that_says_anything_counts() -> None:
    bags = [
        {"provider": " ", "modelId": " gpt ", "contextWindow": 0},
        {"providerId": "openai", "maxContextTokens": 9.5},
    ]
    model = runtime_model(bags)
    assert model == RuntimeModel("openai", "gpt", 9)
    assert model.reference == "openai/gpt"
    assert RuntimeModel("openai", "x/gpt").reference == "x/gpt"
    assert runtime_model([{}]).reference is None


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (rule(1.5), "contextThreshold must be a number from 0 to 1, got 1.5"),
        (rule("half"), "contextThreshold must be a number from 0 to 1, got 'half'"),
        (rule() | {"freshTailCount": 2.5}, "freshTailCount must be a whole number >= 1, got 2.5"),
        (rule() | {"match": {"model": " "}}, "match must name a model, a session pattern or a bound"),
        (rule(modelContextWindowMin=2, modelContextWindowMax="1"), r"must be <= modelContextWindowMax \(1\), got 2"),
    ],
)
def test_a_rule_that_cannot_be_used_is_refused_by_its_place(given: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=rf"^contextThresholdOverrides\[1\]\..*{told}"):
        threshold_rules([rule(), given])
