"""Protected messages and authored documents as rows; functions to be called inside `Store.writing` or `reading`."""

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import fields

from lcm.clock import format_instant, parse_instant
from lcm.encoding import to_json, well_formed
from lcm.errors import StoreError
from lcm.records.document import AuthoredNode
from lcm.records.summary import GuidanceShard
from lcm.store.rows import LISTED, insertion

_OWN_SHARD = [field.name for field in fields(GuidanceShard)][2:]
"""Of `guidance_shards`, but whose they are."""
_NODE = [field.name for field in fields(AuthoredNode)]


def add_shards(connection: sqlite3.Connection, shards: Sequence[GuidanceShard]) -> None:
    """Keep messages as guidance; one that is kept already stays as it is.

    Raises:
        StoreError: if a message is unknown.
    """
    for shard in shards:
        known = connection.execute(
            "SELECT message_id, conversation_id FROM messages WHERE message_key = ?", (shard.message_id,)
        ).fetchone()
        if known is None:
            raise StoreError(f"a shard names the unknown message {shard.message_id!r}; ingest its conversation first")
        own = {name: getattr(shard, name) for name in _OWN_SHARD}
        own |= {"text": well_formed(shard.text), "created_at": format_instant(shard.created_at)}
        statement = insertion("guidance_shards", ("message_id", "conversation_id", *own))
        connection.execute(f"{statement} ON CONFLICT (message_id) DO NOTHING", (*known, *own.values()))


def read_undocumented_shards(connection: sqlite3.Connection) -> list[GuidanceShard]:
    """The protected messages of which there is no document, in the order of protecting."""
    rows = connection.execute(
        f"""
        SELECT m.message_key, c.session_key, {", ".join(f"g.{name}" for name in _OWN_SHARD)}
        FROM guidance_shards g JOIN messages m USING (message_id)
        JOIN conversations c ON c.conversation_id = g.conversation_id
        WHERE NOT EXISTS (SELECT 1 FROM document_messages l JOIN documents d USING (document_id)
                          WHERE l.message_id = g.message_id AND d.kind = 'guidance')
        ORDER BY g.created_at, m.conversation_id, m.seq
        """  # noqa: S608 (our own constants)
    )
    return [GuidanceShard(key, of, text, parse_instant(at), *rest) for key, of, text, at, *rest in rows]


def read_nodes(connection: sqlite3.Connection) -> list[AuthoredNode]:
    """Every authored block in authored order: by source, position, ordinal, id."""
    rows = connection.execute(
        f"SELECT {', '.join(_NODE)} FROM authored_nodes ORDER BY source, position, ordinal, node_id"  # noqa: S608
    )
    named = (dict(zip(_NODE, row, strict=True)) for row in rows)
    return [AuthoredNode(**{**row, "hop_targets": tuple(json.loads(row["hop_targets"]))}) for row in named]


def put_nodes(connection: sqlite3.Connection, nodes: Sequence[AuthoredNode]) -> None:
    """Let these be all that is authored: files are the truth, what the store holds of them is a copy."""
    connection.execute("DELETE FROM authored_nodes")
    rows = ({name: getattr(node, name) for name in _NODE} for node in nodes)
    connection.executemany(
        insertion("authored_nodes", _NODE),
        [
            tuple((row | {"text": well_formed(row["text"]), "hop_targets": to_json(row["hop_targets"])}).values())
            for row in rows
        ],
    )


def drop_documents(connection: sqlite3.Connection, kind: str) -> None:
    """Forget the documents of a kind that is a copy of files, so that they can be made again."""
    connection.execute("DELETE FROM documents WHERE kind = ? AND conversation_id IS NULL", (kind,))


def admission_scores(connection: sqlite3.Connection, message_ids: Sequence[str]) -> dict[str, float]:
    """What admission scored the candidates of messages, by message id; one without a score is left out."""
    rows = connection.execute(
        f"SELECT message_key, max(score) FROM admission_scores WHERE message_key {LISTED} GROUP BY message_key",  # noqa: S608
        (to_json(list(message_ids)),),
    )
    return dict(rows.fetchall())
