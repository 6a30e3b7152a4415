"""The six memory categories, and what each of them means for a document's life.

Source: memory-lancedb-pro, memory-categories and smart-extractor.
"""

from collections.abc import Mapping
from types import MappingProxyType

ALWAYS_MERGED = frozenset({"profile"})
"""Merged into the nearest document of the same category, without deduplication."""
MERGED = frozenset({"preferences", "entities", "patterns"})
"""May be merged into a document that they refine."""
VERSIONED = frozenset({"preferences", "entities"})
"""Truths that are replaced over time: a newer one supersedes."""

DEFAULT_IMPORTANCE: Mapping[str, float] = MappingProxyType(
    {"profile": 0.9, "preferences": 0.8, "entities": 0.7, "events": 0.6, "cases": 0.8, "patterns": 0.85}
)
UNKNOWN_IMPORTANCE = 0.5
"""Of any other category."""
