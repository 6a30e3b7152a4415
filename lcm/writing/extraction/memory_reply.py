"""What a language model replies when it extracts memories, checked.

Source: memory-lancedb-pro, smart-extractor; what is real and what constructed is of 1.1.0-beta.11.
"""

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from jsonschema import Draft202012Validator

from lcm.javascript import trim
from lcm.language_model.json_reply import object_in
from lcm.records.document import category_named
from lcm.writing.noise import is_noise

ExtractionRules = Literal["beta.10", "beta.11"]
"""Of the plugin's 1.1.0."""

_END_OF_REASONING = "</think>"


class ExtractedMemory(NamedTuple):
    """One memory of a reply, its texts trimmed."""

    category: str
    abstract: str
    overview: str
    content: str
    sources: tuple[int, ...]
    """Numbers of turns, from 1, ascending; empty where the reply names none or no proper ones."""
    grounding: Mapping[str, str] = MappingProxyType({})
    """Since beta.11: `grounding`, and the `conversation_register` of the whole reply."""


class CheckedReply(NamedTuple):
    """The memories of a reply that hold, and what was wrong with the others, each a short name."""

    memories: list[ExtractedMemory]
    refused: list[str]


def read_reply(reply: str, rules: ExtractionRules = "beta.10") -> CheckedReply | None:
    """The memories that a reply names; None where it holds no object with a list of memories.

    Words, fences and reasoning around the object are passed over. A memory is refused as `invalid_memory` (no object,
    no known category, a text that is none) or as `noise_memory` (an abstract too short or of no worth). Since beta.11 a
    category may be singular, a complaint about the memory is noise, and a memory is refused as `constructed_memory`
    where it is not real, or as `fiction_memory` in a conversation that is told as fiction: nobody judges it again.
    """
    found = object_in(reply.rpartition(_END_OF_REASONING)[2], "memories")
    if found is None or not _validator("").is_valid(found):
        return None
    is_later = rules == "beta.11"
    memories, refused = [], []
    for item in [_normalised(item, is_later) for item in found["memories"]]:
        grounding = _grounding(found, item) if is_later and isinstance(item, dict) else {}
        if not _validator("memory").is_valid(item):
            refused.append("invalid_memory")
        elif is_noise(item["abstract"], complaints=is_later):
            refused.append("noise_memory")
        elif grounding.get("conversation_register") == "fiction":
            refused.append("fiction_memory")
        elif grounding.get("grounding") == "constructed":
            refused.append("constructed_memory")
        else:
            texts = (item["category"], item["abstract"], item.get("overview", ""), item.get("content", ""))
            memories.append(ExtractedMemory(*texts, sources=_sources(item), grounding=grounding))
    return CheckedReply(memories, refused)


def _normalised(item: Any, is_later: bool) -> Any:
    """The item with its texts trimmed and its category in lower case; what is null counts as absent."""
    if not isinstance(item, Mapping):
        return item
    texts = {key: trim(value) if isinstance(value, str) else value for key, value in item.items() if value is not None}
    if isinstance(category := texts.get("category"), str):
        texts["category"] = (category_named(category) if is_later else None) or category.lower()
    return texts


def _grounding(reply: Mapping[str, Any], item: Mapping[str, Any]) -> dict[str, str]:
    register = reply.get("conversation_register")
    return {
        "grounding": "constructed" if item.get("grounding") == "constructed" else "real",
        "conversation_register": register if register in ("real", "fiction") else "mixed",
    }


def _sources(item: Mapping[str, Any]) -> tuple[int, ...]:
    named = item.get("sources", [])
    return tuple(sorted({int(number) for number in named})) if _validator("sources").is_valid(named) else ()


@cache
def _validator(part: str) -> Draft202012Validator:
    """Of the whole reply, or of a named part of it."""
    schema = json.loads(resources.files(__package__).joinpath("memory_reply.schema.json").read_text("utf-8"))
    return Draft202012Validator(schema["$defs"][part] if part else schema)
