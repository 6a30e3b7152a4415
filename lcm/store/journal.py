"""What a host said of its sessions, as rows; functions to be called inside `Store.writing` or `reading`."""

import json
import sqlite3

from lcm.clock import format_instant, parse_instant
from lcm.encoding import mapping_json, require_id, well_formed
from lcm.records.conversation import JournalEntry


def add_entry(connection: sqlite3.Connection, entry: JournalEntry, max_entries: int) -> None:
    """Keep an entry; of too many the oldest go, by instant and id. `max_entries` 0 or less: all are kept.

    An entry whose id is taken takes its place.
    """
    connection.execute(
        "INSERT OR REPLACE INTO lifecycle_journal (entry_id, happened_at, hook, session_id, fields) VALUES (?,?,?,?,?)",
        (
            require_id(entry.entry_id, "entry id"),
            format_instant(entry.happened_at),
            well_formed(entry.hook),
            well_formed(entry.session_id),
            mapping_json(entry.fields),
        ),
    )
    if max_entries > 0:
        connection.execute(
            """
            DELETE FROM lifecycle_journal WHERE entry_id IN (
              SELECT entry_id FROM lifecycle_journal ORDER BY happened_at DESC, entry_id DESC LIMIT -1 OFFSET ?)
            """,
            (max_entries,),
        )


def read_entries(connection: sqlite3.Connection, session_id: str | None = None, limit: int = -1) -> list[JournalEntry]:
    """The newest entries, oldest first: of one session, or of all; at most `limit`, -1 = all."""
    rows = connection.execute(
        """
        SELECT * FROM (
          SELECT entry_id, happened_at, hook, session_id, fields FROM lifecycle_journal
          WHERE ?1 IS NULL OR session_id = ?1 ORDER BY happened_at DESC, entry_id DESC LIMIT ?2)
        ORDER BY happened_at, entry_id
        """,
        (session_id, limit),
    )
    return [
        JournalEntry(entry_id, parse_instant(at), hook, session, json.loads(fields))
        for entry_id, at, hook, session, fields in rows
    ]
