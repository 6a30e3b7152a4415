"""What a document says of others, and how much of its past is kept.

Source: memory-lancedb-pro, appendRelation and stringifySmartMetadata.
"""

from collections.abc import Mapping
from typing import Any

MAX_SOURCES = 20
MAX_HISTORY = 50
MAX_RELATIONS = 16

Relation = dict[str, str]


def well_formed(relations: object) -> list[Relation]:
    """The relations that name a type and a target, in order; of anything but a list none."""
    if not isinstance(relations, list | tuple):
        return []
    return [{"type": row["type"], "targetId": row["targetId"]} for row in relations if _is_relation(row)]


def appended(relations: object, relation_type: str, target_id: str) -> list[Relation]:
    """The well-formed relations and one more, unless the same one is among them."""
    kept, added = well_formed(relations), {"type": relation_type, "targetId": target_id}
    return kept if added in kept else [*kept, added]


def capped(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata as it is stored: the last 20 sources, the last 50 of the history, the first 16 relations."""
    stored = dict(metadata)
    for key, cut in (("sources", slice(-MAX_SOURCES, None)), ("history", slice(-MAX_HISTORY, None))):
        if isinstance(stored.get(key), list | tuple):
            stored[key] = list(stored[key])[cut]
    if isinstance(stored.get("relations"), list | tuple):
        stored["relations"] = list(stored["relations"])[:MAX_RELATIONS]
    return stored


def _is_relation(row: object) -> bool:
    return isinstance(row, Mapping) and isinstance(row.get("type"), str) and isinstance(row.get("targetId"), str)
