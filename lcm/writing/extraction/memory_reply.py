"""What a language model replies when it extracts memories, checked.

Source: memory-lancedb-pro, smart-extractor.
"""

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

from jsonschema import Draft202012Validator

from lcm.javascript import trim
from lcm.language_model.json_reply import object_in
from lcm.writing.noise import is_noise

_END_OF_REASONING = "</think>"


class ExtractedMemory(NamedTuple):
    """One memory of a reply, its texts trimmed."""

    category: str
    abstract: str
    overview: str
    content: str
    sources: tuple[int, ...]
    """Numbers of turns, from 1, ascending; empty where the reply names none or no proper ones."""


class CheckedReply(NamedTuple):
    """The memories of a reply that hold, and what was wrong with the others, each a short name."""

    memories: list[ExtractedMemory]
    refused: list[str]


def read_reply(reply: str) -> CheckedReply | None:
    """The memories that a reply names; None where it holds no object with a list of memories.

    Words, fences and reasoning around the object are passed over. A memory is refused as `invalid_memory` (no object,
    no known category, a text that is none) or as `noise_memory` (an abstract too short or of no worth).
    """
    found = object_in(reply.rpartition(_END_OF_REASONING)[2], "memories")
    if found is None or not _validator("").is_valid(found):
        return None
    memories, refused = [], []
    for item in map(_normalised, found["memories"]):
        if not _validator("memory").is_valid(item):
            refused.append("invalid_memory")
        elif is_noise(item["abstract"]):
            refused.append("noise_memory")
        else:
            texts = (item["category"], item["abstract"], item.get("overview", ""), item.get("content", ""))
            memories.append(ExtractedMemory(*texts, sources=_sources(item)))
    return CheckedReply(memories, refused)


def _normalised(item: Any) -> Any:
    """The item with its texts trimmed and its category in lower case; what is null counts as absent."""
    if not isinstance(item, Mapping):
        return item
    texts = {key: trim(value) if isinstance(value, str) else value for key, value in item.items() if value is not None}
    if isinstance(category := texts.get("category"), str):
        texts["category"] = category.lower()
    return texts


def _sources(item: Mapping[str, Any]) -> tuple[int, ...]:
    named = item.get("sources", [])
    return tuple(sorted({int(number) for number in named})) if _validator("sources").is_valid(named) else ()


@cache
def _validator(part: str) -> Draft202012Validator:
    """Of the whole reply, or of a named part of it."""
    schema = json.loads(resources.files(__package__).joinpath("memory_reply.schema.json").read_text("utf-8"))
    return Draft202012Validator(schema["$defs"][part] if part else schema)
