"""What the words of a turn say to the gate, and what is known already: the pure part of `Gating`.

Source: libravdb memory 1.3.5, its gating document; the patterns 1.4.4.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import NamedTuple, get_args

import yaml

from lcm.records.rules import Rules

LOADS = ("technical_density", "conversational_load", "specificity", "actionability", "technical_load")
_COUNTED = "specificity"
"""The load that counts its matches; the others ask whether there is one."""
_TOKENS_A_UNIT = 100
"""Specificity is by so many tokens; a shorter text counts as so long."""


class PatternScores(NamedTuple):
    """The weights of the patterns that fired in one text, summed, each >= 0; only technical density may be above 1."""

    technical_density: float
    """Not divided by its norm yet."""
    conversational_load: float
    specificity: float
    actionability: float
    technical_load: float


class Familiarity(NamedTuple):
    """How much of one text the memory knows already."""

    h: float
    """Novelty: 1 - the mean cosine of the memories; 1 where there is none."""
    f: float
    """Frequency: how often the like was said."""
    s: float
    """Saturation: how often the like is remembered."""

    @property
    def r(self) -> float:
        """Repetition that is not remembered yet."""
        return self.f * (1 - self.s)


@dataclass(frozen=True, slots=True)
class Patterns:
    """A set of patterns, compiled: every one is asked once, however many loads it weighs in."""

    compiled: Mapping[str, re.Pattern[str]]
    weights: Mapping[str, Mapping[str, float]]
    """Load -> pattern -> weight."""
    weighs: Sequence[tuple[str, float, tuple[tuple[int, float], ...]]]
    """Name, weight a match, and (place of the load, weight) of each load that only asks whether it fires."""

    def matches(self, text: str) -> dict[str, int]:
        """How often each pattern that fires does, in a text without white space around it."""
        return {name: times for name, pattern in self.compiled.items() if (times := len(pattern.findall(text)))}

    def loads(self, matches: Mapping[str, int], tokens: int) -> PatternScores:
        """What the `matches` of a text of so many tokens weigh."""
        sums = [0.0] * len(LOADS)
        counted = 0.0
        for name, a_match, weighs in self.weighs:
            if times := matches.get(name):
                counted += a_match * times
                for place, weight in weighs:
                    sums[place] += weight
        density, conversational, _, actionability, technical = sums
        specificity = min(counted / max(tokens / _TOKENS_A_UNIT, 1.0), 1.0)
        return PatternScores(
            density, min(conversational, 1.0), specificity, min(actionability, 1.0), min(technical, 1.0)
        )


@cache
def load_patterns(rules: Rules) -> Patterns:
    """Read and compile a packaged set.

    Raises:
        ValueError: if there is none of that name.
    """
    if rules not in get_args(Rules):
        raise ValueError(f"rules must be one of: {', '.join(get_args(Rules))}, got {rules!r}")
    content = resources.files("lcm.writing.admission").joinpath("gating_patterns", f"{rules}.yaml").read_text("utf-8")
    written = yaml.safe_load(content)
    compiled = {key: re.compile(pattern, re.ASCII) for key, pattern in written["patterns"].items()}
    weights: dict[str, dict[str, float]] = {load: written[load] for load in LOADS}
    counted = weights[_COUNTED]
    asked = {
        key: tuple((i, weights[load][key]) for i, load in enumerate(LOADS) if load != _COUNTED and key in weights[load])
        for key in compiled
    }
    uncounted = dict.fromkeys((key for key in compiled if key not in counted), 0.0)
    weighs = [(key, a_match, asked[key]) for key, a_match in (uncounted | counted).items()]
    return Patterns(compiled, weights, weighs)


def evidence(
    turn_scores: Sequence[float],
    memory_scores: Sequence[float],
    *,
    turn_cosine: float,
    turn_saturation: int,
    memory_cosine: float,
    memory_saturation: int,
) -> Familiarity:
    """H = 1 - mean of the memories' cosines, each in [0, 1]; F and S = min(how many are near / saturation, 1).

    Args:
        turn_scores: cosines of the nearest turns.
        memory_scores: cosines of the nearest memories.
        turn_cosine: from here a turn is near.
        turn_saturation: so many near turns, or more, give F = 1.
        memory_cosine: from here a memory is near.
        memory_saturation: so many near memories, or more, give S = 1.
    """
    novelty = 1.0
    if memory_scores:
        # Rounding can put a cosine above 1; one that is no number says nothing.
        bounded = [min(score, 1.0) if score > 0 else 0.0 for score in memory_scores]
        novelty = 1 - sum(bounded) / len(bounded)
    return Familiarity(
        h=novelty,
        f=min(sum(score >= turn_cosine for score in turn_scores) / turn_saturation, 1.0),
        s=min(sum(score >= memory_cosine for score in memory_scores) / memory_saturation, 1.0),
    )
