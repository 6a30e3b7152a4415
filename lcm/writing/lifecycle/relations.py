"""What a document says of others, and how much of its past is kept.

Source: memory-lancedb-pro, appendRelation and stringifySmartMetadata; it keeps the oldest relations, and so drops
every new one once they are full.
"""

from collections.abc import Mapping
from typing import Any

_CAPS = {"sources": 20, "history": 50, "relations": 16}

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
    """The metadata as it is stored: the last 20 sources, 50 of the history, 16 relations."""
    stored = dict(metadata)
    for key, most in _CAPS.items():
        if isinstance(stored.get(key), list | tuple):
            stored[key] = list(stored[key])[-most:]
    return stored


def _is_relation(row: object) -> bool:
    return isinstance(row, Mapping) and isinstance(row.get("type"), str) and isinstance(row.get("targetId"), str)
