"""Everything that a database holds, and generated records to put in."""

import json
import sqlite3
from datetime import datetime

from hypothesis import strategies as st

from lcm.records.conversation import PART_TYPES, ROLES, Message, Part, Transcript
from lcm.store.store import Store
from lcm.token_estimator import Utf16Units
from tests.support.workspaces import minute

TOKENS = Utf16Units()
OPENED_AT = minute(0)


def dump(store: Store) -> dict[str, list[tuple[object, ...]]]:
    """Every row of every table, the full-text tables' own included."""
    return dump_connection(store._connection)


def dump_connection(connection: sqlite3.Connection) -> dict[str, list[tuple[object, ...]]]:
    names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall()
    return {name: connection.execute(f'SELECT * FROM "{name}"').fetchall() for (name,) in names}


def is_sound(connection: sqlite3.Connection) -> bool:
    """Whether SQLite finds pages, indexes, full-text tables and references in order."""
    for table in ("messages_fts", "summaries_fts", "summaries_fts_cjk"):
        connection.execute(f"INSERT INTO {table} ({table}) VALUES ('integrity-check')")
    pages = connection.execute("PRAGMA integrity_check").fetchall()
    return pages == [("ok",)] and not connection.execute("PRAGMA foreign_key_check").fetchall()


def message(position: int, content: str = "", created_at: datetime | None = None, name: str = "talk") -> Message:
    content = content or f"words of message {position}"
    return Message(f"{name}:{position}", "user", content, f"{name} session", created_at, parts=(Part("text", content),))


def talk(length: int, name: str = "talk") -> Transcript:
    return Transcript(name, tuple(message(i, created_at=minute(i), name=name) for i in range(1, length + 1)))


def _as_json_reads(value: object) -> object:
    """JSON joins the two halves of a surrogate pair that stand side by side."""
    return json.loads(json.dumps(value))


_any_text = st.text(st.characters(), max_size=8)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | _any_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_any_text, inner, max_size=3),
    max_leaves=6,
).map(_as_json_reads)
"""Nested, with empty and odd keys, NUL, characters beyond U+FFFF and half surrogate pairs."""

json_objects = st.dictionaries(_any_text, json_values, max_size=3).map(_as_json_reads)

_optional_text = st.none() | st.text(max_size=8)
_parts = st.builds(
    Part,
    part_type=st.sampled_from(PART_TYPES),
    text=_optional_text,
    tool_call_id=_optional_text,
    tool_name=_optional_text,
    tool_input=_optional_text,
    tool_output=_optional_text,
    metadata=json_objects,
)
_messages = st.builds(
    Message,
    message_id=st.text(max_size=8),
    role=st.sampled_from(ROLES),
    content=st.text(max_size=20),
    session_id=st.text(max_size=4),
    created_at=st.none() | st.integers(-10_000, 10_000).map(minute),
    author=_optional_text,
    parts=st.lists(_parts, max_size=3).map(tuple),
    envelope=json_objects,
)
transcripts = st.builds(
    Transcript,
    conversation_id=st.text(max_size=8),
    messages=st.lists(_messages, min_size=1, max_size=5, unique_by=lambda m: m.message_id).map(tuple),
    title=_optional_text,
)
