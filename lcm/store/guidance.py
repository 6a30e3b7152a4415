"""Protected messages and authored documents as rows; functions to be called inside `Store.writing` or `reading`."""

import json
import sqlite3
from collections.abc import Sequence

from lcm.clock import format_instant, parse_instant
from lcm.encoding import to_json, well_formed
from lcm.errors import StoreError
from lcm.records.document import AuthoredNode
from lcm.records.summary import GuidanceShard

_SHARD = "m.message_key, c.session_key, g.text, g.created_at, g.protected_by, g.stability, g.provenance, g.tokens"
_NODE = (
    "node_id", "source", "tier", "kind", "text", "position", "ordinal", "tokens", "authority", "modality_mask",
    "hop_targets",
)  # fmt: skip


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
        connection.execute(
            """
            INSERT INTO guidance_shards (message_id, conversation_id, text, created_at, protected_by, stability,
                                         provenance, tokens)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (message_id) DO NOTHING
            """,
            (
                *known,
                well_formed(shard.text),
                format_instant(shard.created_at),
                shard.protected_by,
                shard.stability,
                shard.provenance,
                shard.tokens,
            ),
        )


def read_undocumented_shards(connection: sqlite3.Connection) -> list[GuidanceShard]:
    """The protected messages of which there is no document, in the order of protecting."""
    rows = connection.execute(
        f"""
        SELECT {_SHARD} FROM guidance_shards g JOIN messages m USING (message_id)
        JOIN conversations c ON c.conversation_id = g.conversation_id
        WHERE NOT EXISTS (SELECT 1 FROM document_messages l JOIN documents d USING (document_id)
                          WHERE l.message_id = g.message_id AND d.kind = 'guidance')
        ORDER BY g.created_at, m.conversation_id, m.seq
        """  # noqa: S608 (our own constants)
    )
    return [
        GuidanceShard(key, conversation, text, parse_instant(at), by, stability, provenance, tokens)
        for key, conversation, text, at, by, stability, provenance, tokens in rows
    ]


def read_nodes(connection: sqlite3.Connection) -> list[AuthoredNode]:
    """Every authored block in authored order: by source, position, ordinal, id."""
    rows = connection.execute(
        f"SELECT {', '.join(_NODE)} FROM authored_nodes ORDER BY source, position, ordinal, node_id"  # noqa: S608
    )
    return [
        AuthoredNode(**dict(zip(_NODE, (*values, tuple(json.loads(targets))), strict=True)))
        for *values, targets in rows
    ]


def put_nodes(connection: sqlite3.Connection, nodes: Sequence[AuthoredNode]) -> None:
    """Let these be all that is authored: files are the truth, what the store holds of them is a copy."""
    connection.execute("DELETE FROM authored_nodes")
    connection.executemany(
        f"INSERT INTO authored_nodes ({', '.join(_NODE)}) VALUES ({', '.join('?' * len(_NODE))})",  # noqa: S608
        [
            (
                node.node_id,
                node.source,
                node.tier,
                node.kind,
                well_formed(node.text),
                node.position,
                node.ordinal,
                node.tokens,
                node.authority,
                node.modality_mask,
                to_json(list(node.hop_targets)),
            )
            for node in nodes
        ],
    )


def drop_documents(connection: sqlite3.Connection, kind: str) -> None:
    """Forget the documents of a kind that is a copy of files, so that they can be made again."""
    connection.execute("DELETE FROM documents WHERE kind = ? AND conversation_id IS NULL", (kind,))


def admission_scores(connection: sqlite3.Connection, message_ids: Sequence[str]) -> dict[str, float]:
    """What admission scored the candidates of messages, by message id; one without a score is left out."""
    rows = connection.execute(
        """
        SELECT message_key, max(score) FROM admission_scores
        WHERE message_key IN (SELECT value FROM json_each(?)) GROUP BY message_key
        """,
        (to_json(list(message_ids)),),
    )
    return dict(rows.fetchall())
