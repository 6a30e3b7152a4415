"""What a store holds, counted."""

import sqlite3
from typing import Any

from lcm.store.migrations import schema_version

_COUNTS = {
    "conversations": "SELECT count(*) FROM conversations",
    "messages": "SELECT count(*) FROM messages",
    "messages without documents made of them yet": """
        SELECT count(*) FROM messages m LEFT JOIN extraction_state e USING (conversation_id)
        WHERE m.seq > coalesce(e.extracted_seq, 0)""",
    "tokens of messages": "SELECT coalesce(sum(token_count), 0) FROM messages",
    "context items": "SELECT count(*) FROM context_items",
    "tokens of contexts": """
        SELECT coalesce(sum(coalesce(m.token_count, s.token_count)), 0) FROM context_items i
        LEFT JOIN messages m USING (message_id) LEFT JOIN summaries s USING (summary_id)""",
    "summaries": "SELECT count(*) FROM summaries",
    "compaction failures": "SELECT count(*) FROM compaction_events WHERE event IN ('failure', 'auth failure')",
    "summaries refused": "SELECT count(*) FROM compaction_events WHERE event = 'refusal'",
    "protected messages": "SELECT count(*) FROM guidance_shards",
    "large files": "SELECT count(*) FROM large_files",
    "decisions": "SELECT count(*) FROM decisions",
    "journal entries": "SELECT count(*) FROM lifecycle_journal",
}
_GROUPS = {
    "documents": "SELECT kind, count(*) FROM documents GROUP BY kind ORDER BY kind",
    "documents that are not durable": """
        SELECT kind, count(*) FROM documents WHERE NOT is_durable GROUP BY kind ORDER BY kind""",
    "documents that have ended": """
        SELECT kind, count(*) FROM documents WHERE invalidated_at IS NOT NULL GROUP BY kind ORDER BY kind""",
    "scopes": "SELECT scope, count(*) FROM documents GROUP BY scope ORDER BY scope",
    "authored blocks": "SELECT tier, count(*) FROM authored_nodes GROUP BY tier ORDER BY tier",
}


def census(connection: sqlite3.Connection) -> dict[str, Any]:
    """Counts by name; of what comes in kinds a count by kind; when the first and last message were said."""
    first, last = connection.execute("SELECT min(created_at), max(created_at) FROM messages").fetchone()
    counted = {name: connection.execute(sql).fetchone()[0] for name, sql in _COUNTS.items()}
    grouped = {name: dict(connection.execute(sql).fetchall()) for name, sql in _GROUPS.items()}
    return {"schema version": schema_version(connection), "first said": first, "last said": last, **counted, **grouped}
