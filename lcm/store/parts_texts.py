"""What the parts of stored messages say besides their words, worked out anew from the parts."""

import json
import sqlite3
from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any

from lcm.records.conversation import LargeFile, Message, Part
from lcm.transcript.passages import parts_text

_BATCH = 500


def parts_texts(connection: sqlite3.Connection, conversation: int | None = None) -> Iterator[tuple[int, str]]:
    """Each message's integer key with what its parts say, in the order of the keys; conversation: None = all.

    A message whose JSON cannot be read is left out: another check of the doctor names it.
    """
    last = 0
    while rows := connection.execute(
        """
        SELECT message_id, role, content, envelope FROM messages
        WHERE message_id > ?1 AND (?2 IS NULL OR conversation_id = ?2) ORDER BY message_id LIMIT ?3
        """,
        (last, conversation, _BATCH),
    ).fetchall():
        first, last = rows[0][0], rows[-1][0]
        parts, files = _parts(connection, first, last), _files(connection, first, last)
        for key, role, content, envelope in rows:
            try:
                held = tuple(_part(row) for row in parts.get(key, ()))
                message = Message(
                    "", role, content, "", parts=held, envelope=json.loads(envelope), files=files.get(key, ())
                )
                text = parts_text(message)
            except (AttributeError, RecursionError, TypeError, ValueError):
                continue
            yield key, text


def write_parts_texts(connection: sqlite3.Connection) -> None:
    """Keep them with their messages, inside the caller's transaction; those that are right already stay untouched."""
    connection.execute("CREATE TEMP TABLE told (message_id INTEGER PRIMARY KEY, parts_text TEXT NOT NULL)")
    connection.executemany("INSERT INTO told VALUES (?, ?)", parts_texts(connection))
    connection.execute(
        """
        UPDATE messages SET parts_text = told.parts_text FROM told
        WHERE told.message_id = messages.message_id AND told.parts_text <> messages.parts_text
        """
    )
    connection.execute("DROP TABLE told")


def _parts(connection: sqlite3.Connection, first: int, last: int) -> dict[int, list[tuple[Any, ...]]]:
    rows = connection.execute(
        """
        SELECT message_id, part_type, text_content, tool_call_id, tool_name, tool_input, tool_output,
               coalesce(metadata, '{}')
        FROM message_parts WHERE message_id BETWEEN ? AND ? ORDER BY message_id, ordinal
        """,
        (first, last),
    )
    return {key: [row[1:] for row in group] for key, group in groupby(rows, itemgetter(0))}


def _part(row: tuple[Any, ...]) -> Part:
    part_type, text, call_id, name, given, output, metadata = row
    return Part(part_type, text, call_id, name, given, output, json.loads(metadata))


def _files(connection: sqlite3.Connection, first: int, last: int) -> dict[int, tuple[LargeFile, ...]]:
    """Of each message the ordinals of the parts that hold large files; nothing else of a file is said here."""
    rows = connection.execute(
        "SELECT message_id, ordinal FROM large_files WHERE message_id BETWEEN ? AND ? ORDER BY message_id",
        (first, last),
    )
    return {
        key: tuple(LargeFile("", ordinal, 0, None, None, 0, "") for _, ordinal in group)
        for key, group in groupby(rows, itemgetter(0))
    }
