"""The words and patterns that recovery knows, read once from `vocabulary.yaml`."""

import re
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

import yaml


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
