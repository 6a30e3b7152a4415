"""The words and patterns that recovery knows, read once from `vocabulary.yaml`, and how much a text says of when."""

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from importlib import resources
from typing import Any

import yaml

FULL_ANCHORS = 3
"""Different anchors from which a text is full of them."""


@cache
def words(name: str) -> frozenset[str]:
    """The words of the list `name`."""
    return frozenset(_content()[name].split())


@cache
def patterns(name: str) -> tuple[re.Pattern[str], ...]:
    """The patterns of the list `name`, in order."""
    return tuple(_compiled(pattern) for pattern in _content()[name])


@cache
def named_patterns(name: str) -> Mapping[str, re.Pattern[str]]:
    """The patterns of the map `name`, in order."""
    return {key: _compiled(pattern) for key, pattern in _content()[name].items()}


@cache
def pattern(name: str) -> re.Pattern[str]:
    """The pattern `name`; blanks in it mean nothing."""
    return re.compile(_content()[name], re.ASCII | re.IGNORECASE | re.VERBOSE)


def _compiled(text: str) -> re.Pattern[str]:
    return re.compile(text, re.ASCII | re.IGNORECASE)


@cache
def _content() -> Mapping[str, Any]:
    content: Mapping[str, Any] = yaml.safe_load(
        resources.files("lcm.retrieval.recovery").joinpath("vocabulary.yaml").read_text("utf-8")
    )
    return content


@lru_cache(maxsize=4096)  # half of the time of a question about time, where its turns were looked at before
def anchor_density(text: str) -> float:
    """min(1, different anchors / 3): dates, clock times, years, weekdays, words like yesterday or last week.

    Anchors are counted in lower case. Source: libravdb memory 1.4.4.
    """
    found = {match.lower() for one in patterns("anchor_patterns") for match in one.findall(text)}
    return min(1.0, len(found) / FULL_ANCHORS)
