"""What a check of the doctor finds, as sentences."""

import sqlite3
from collections.abc import Iterator


def told(connection: sqlite3.Connection, conversation: int | None, sql: str) -> Iterator[str]:
    """The sentences that a query makes; `?1` in it is the conversation, NULL for all."""
    for (finding,) in connection.execute(sql, (conversation,)):
        yield str(finding)
