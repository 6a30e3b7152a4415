"""The category of a row of the plugin's table: an older name in a column, and the memory's own in its metadata.

Source: memory-lancedb-pro 1.1.0-beta.11, memory-categories.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from lcm.javascript import trim
from lcm.records.document import category_named
from tests.golden.originals.row_fields import CATEGORY_OF
from tests.golden.originals.row_metadata import object_of

_OLDER_OF = {
    "profile": "fact",
    "preferences": "preference",
    "entities": "entity",
    "events": "decision",
    "cases": "fact",
    "patterns": "other",
}


class RowCategory(NamedTuple):
    """Under what a memory is stored."""

    memory_category: str
    """In its metadata."""
    storage_category: str
    """In its column."""


def row_is_of_category(category: str, metadata: str | Mapping[str, Any] | None, wanted: str) -> bool:
    """Whether a row is wanted by a name of either vocabulary.

    Equal names are; a name of the older vocabulary alone wants nothing else. What is wanted by category is compared
    with the first that there is of the memory's own category, the column's, and the one that its older name means.

    Args:
        category: of its column.
        metadata: JSON text or what it decodes to; what is no object counts as empty.
        wanted: the name.
    """
    column, named = _written(category), category_named(wanted)
    if named is None or column == _written(wanted):
        return column == _written(wanted)
    own = category_named(object_of(metadata).get("memory_category")) or category_named(column)
    return named == (own or CATEGORY_OF.get(column))


def columns_of(wanted: str) -> list[str]:
    """What the column of a row may hold that is wanted by a name, sorted: what a store can look for beforehand."""
    category = category_named(wanted)
    return sorted({_written(wanted), *([category, _OLDER_OF[category]] if category else [])})


def row_category(named: str) -> RowCategory:
    """Under what a memory is stored whose category a tool names in either vocabulary; what is unknown is a pattern."""
    category, older = category_named(named), _written(named)
    if category is not None:
        return RowCategory(category, _OLDER_OF[category])
    if older in CATEGORY_OF:
        return RowCategory(CATEGORY_OF[older], older)
    return RowCategory("patterns", "other")


def _written(name: str) -> str:
    return trim(name).lower()
