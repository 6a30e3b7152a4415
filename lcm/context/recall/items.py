"""The ids by which recall names what is stored: whatever one command prints, every command takes."""

import re
import sqlite3
from typing import Literal, NamedTuple

from lcm.store.lineage import StoredFile, conversations_of, stored_files

_NUMBERED = re.compile(r"msg#(\d{1,18})")


class NamedItem(NamedTuple):
    """A stored summary, message or large file that an id names."""

    kind: Literal["summary", "message", "file"]
    conversation: int
    """Its integer key."""
    item_id: str
    """Of a summary or file."""
    number: int = 0
    """The integer key of a message."""
    file: StoredFile | None = None


def named_item(connection: sqlite3.Connection, item_id: str) -> NamedItem | None:
    """What an id names: `sum_...`, `file_...`, `msg#N`, or the id that a message was recorded with; None = nothing."""
    item_id = item_id.strip()
    if (row := conversations_of(connection, [item_id]).get(item_id)) is not None:
        return NamedItem("summary", row, item_id)
    if (stored := stored_files(connection, [item_id]).get(item_id)) is not None:
        return NamedItem("file", stored.conversation, item_id, file=stored)
    numbered = _NUMBERED.fullmatch(item_id)
    found = connection.execute(
        "SELECT message_id, conversation_id FROM messages WHERE message_key = ?1 OR message_id = ?2 ORDER BY 1 LIMIT 1",
        (item_id, int(numbered[1]) if numbered else None),
    ).fetchone()
    return NamedItem("message", found[1], item_id, found[0]) if found else None
