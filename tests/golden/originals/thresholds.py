"""Which threshold, fresh tail and leaf chunk hold for a model and a session: what the plugin's
`contextThresholdOverrides` say; `Lossless.called` takes them.

Source: lossless-claw 0.15.3.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from lcm.javascript import is_finite_number, to_number, trim
from lcm.memory.session import matches

_PROVIDER = ("provider", "providerId")
_MODEL = ("model", "modelId")
_CONTEXT_TOKENS = (
    *("modelContextWindow", "modelContextWindowTokens", "contextWindow", "contextWindowTokens"),
    *("maxContextTokens", "contextWindowMax"),
)


class RuntimeModel(NamedTuple):
    """What a host says of the model that a session runs on; None = nothing."""

    provider: str | None = None
    model: str | None = None
    context_tokens: int | None = None

    @property
    def reference(self) -> str | None:
        """`provider/model`, where the model does not name its provider itself."""
        is_whole = self.model is None or self.provider is None or "/" in self.model
        return self.model if is_whole else f"{self.provider}/{self.model}"


@dataclass(frozen=True, slots=True)
class ThresholdRule:
    """One override, and what it holds for: all that it names."""

    context_threshold: float
    fresh_tail_count: int | None = None
    leaf_chunk_tokens: int | None = None
    name: str | None = None
    model: str | None = None
    session_pattern: str | None = None
    least_context_tokens: int | None = None
    most_context_tokens: int | None = None

    def specificity(self, model: RuntimeModel, session_key: str) -> int:
        """How closely it names them: 100 for a model, 50 for a session, 20 for each bound; 0 = it holds for others."""
        tokens = model.context_tokens
        named = [
            (100, self.model, self.model in (model.reference, model.model)),
            (50, self.session_pattern, _is_in_session(self.session_pattern, session_key)),
            (20, self.least_context_tokens, tokens is not None and tokens >= (self.least_context_tokens or 0)),
            (20, self.most_context_tokens, tokens is not None and tokens <= (self.most_context_tokens or math.inf)),
        ]
        given = [(score, holds) for score, value, holds in named if value is not None]
        return sum(score for score, _ in given) if all(holds for _, holds in given) else 0


class ThresholdChoice(NamedTuple):
    """The rule that holds, where it stands, and how closely it names what it holds for."""

    rule: ThresholdRule
    place: int
    specificity: int


def runtime_model(bags: Sequence[Mapping[str, Any]]) -> RuntimeModel:
    """What a host's runtime contexts say of the model; the first that says anything counts."""

    def told(keys: Sequence[str]) -> Iterator[Any]:
        return (bag[key] for bag in bags for key in keys if key in bag)

    def text(keys: Sequence[str]) -> str | None:
        return next((trim(value) for value in told(keys) if isinstance(value, str) and trim(value)), None)

    sizes = (math.floor(value) for value in told(_CONTEXT_TOKENS) if is_finite_number(value) and value >= 1)
    return RuntimeModel(text(_PROVIDER), text(_MODEL), next(sizes, None))


def threshold_rules(given: Sequence[Mapping[str, Any]]) -> list[ThresholdRule]:
    """Read the plugin's overrides, under its own key names.

    Raises:
        ValueError: "contextThresholdOverrides[0].contextThreshold must be a number from 0 to 1, got 1.5".
    """
    return [_rule(rule, f"contextThresholdOverrides[{place}]") for place, rule in enumerate(given)]


def chosen(rules: Sequence[ThresholdRule], model: RuntimeModel, session_key: str) -> ThresholdChoice | None:
    """The rule that names a model and a session most closely, of equals the first; None = what is configured holds."""
    found = [ThresholdChoice(rule, place, rule.specificity(model, session_key)) for place, rule in enumerate(rules)]
    best = max(found, key=lambda choice: choice.specificity, default=None)
    return best if best is not None and best.specificity else None


def _is_in_session(pattern: str | None, session_key: str) -> bool:
    return pattern is not None and bool(trim(session_key)) and matches(pattern, trim(session_key))


def _rule(given: Mapping[str, Any], place: str) -> ThresholdRule:
    match = given.get("match") or {}
    threshold = _number(given.get("contextThreshold"))
    if not 0 <= threshold <= 1:
        raise ValueError(
            f"{place}.contextThreshold must be a number from 0 to 1, got {given.get('contextThreshold')!r}"
        )
    rule = ThresholdRule(
        threshold,
        _count(given, "freshTailCount", place),
        _count(given, "leafChunkTokens", place),
        _text(given, "name"),
        _text(match, "model"),
        _text(match, "sessionPattern"),
        _count(match, "modelContextWindowMin", f"{place}.match"),
        _count(match, "modelContextWindowMax", f"{place}.match"),
    )
    least, most = rule.least_context_tokens, rule.most_context_tokens
    if all(one is None for one in (rule.model, rule.session_pattern, least, most)):
        raise ValueError(f"{place}.match must name a model, a session pattern or a bound of the context window")
    if least is not None and most is not None and least > most:
        raise ValueError(f"{place}.match.modelContextWindowMin must be <= modelContextWindowMax ({most}), got {least}")
    return rule


def _number(value: object) -> float:
    """The number that a value is, or that its text holds; NaN where there is none."""
    is_text = isinstance(value, str) and bool(trim(value))
    return to_number(value) if is_text or is_finite_number(value) else math.nan


def _count(given: Mapping[str, Any], key: str, place: str) -> int | None:
    if given.get(key) is None:
        return None
    number = _number(given[key])
    if not (number >= 1 and number.is_integer()):
        raise ValueError(f"{place}.{key} must be a whole number >= 1, got {given[key]!r}")
    return int(number)


def _text(given: Mapping[str, Any], key: str) -> str | None:
    value = given.get(key)
    return trim(value) or None if isinstance(value, str) else None
