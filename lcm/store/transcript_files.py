"""Which transcript files a batch has taken in and compacted."""

import sqlite3
from datetime import datetime

from lcm.clock import format_instant
from lcm.encoding import well_formed


def is_done(connection: sqlite3.Connection, digest: str) -> bool:
    """Whether a file of that digest has been taken in and compacted."""
    found = connection.execute(
        "SELECT 1 FROM transcript_files WHERE digest = ? AND state = 'compacted'", (digest,)
    ).fetchone()
    return found is not None


def note_done(connection: sqlite3.Connection, digest: str, path: str, messages: int, finished_at: datetime) -> None:
    """Note that a file has been taken in and compacted, inside the caller's transaction."""
    connection.execute(
        """
        INSERT INTO transcript_files (digest, path, messages, state, finished_at) VALUES (?, ?, ?, 'compacted', ?)
        ON CONFLICT (digest) DO UPDATE SET
          path = excluded.path, messages = excluded.messages, state = excluded.state, finished_at = excluded.finished_at
        """,
        (digest, well_formed(path), messages, format_instant(finished_at)),
    )
