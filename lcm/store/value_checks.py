"""Whether what stands in a column is what may stand there."""

import json
import sqlite3
from collections.abc import Iterator

from lcm.clock import format_instant, parse_instant
from lcm.records.summary import LEVELS, SUMMARY_KINDS


def no_instants(connection: sqlite3.Connection, conversation: int | None) -> Iterator[str]:
    """Of conversations, of messages, and of the making of summaries."""
    rows = connection.execute(
        """
        SELECT 'message ' || message_key, 'created_at', created_at FROM messages
        WHERE ?1 IS NULL OR conversation_id = ?1
        UNION ALL
        SELECT 'message ' || message_key, 'hidden_at', hidden_at FROM messages
        WHERE hidden_at IS NOT NULL AND (?1 IS NULL OR conversation_id = ?1)
        UNION ALL
        SELECT 'summary ' || summary_id, 'created_at', created_at FROM summaries
        WHERE ?1 IS NULL OR conversation_id = ?1
        UNION ALL
        SELECT 'conversation ' || conversation_id, 'created_at', created_at FROM conversations
        WHERE ?1 IS NULL OR conversation_id = ?1
        UNION ALL
        SELECT 'conversation ' || conversation_id, 'updated_at', updated_at FROM conversations
        WHERE ?1 IS NULL OR conversation_id = ?1
        """,
        (conversation,),
    )
    for named, column, value in rows:
        if not _is_instant(value):
            yield f"{named}: {column} is no instant: {value!r}"


def no_spans(connection: sqlite3.Connection, conversation: int | None) -> Iterator[str]:
    """The time that a summary covers, where it names one."""
    rows = connection.execute(
        "SELECT summary_id, earliest_at, latest_at FROM summaries WHERE ?1 IS NULL OR conversation_id = ?1",
        (conversation,),
    )
    for summary_id, earliest_at, latest_at in rows:
        named = {"earliest_at": earliest_at, "latest_at": latest_at}
        wrong = [column for column, value in named.items() if value is not None and not _is_instant(value)]
        yield from (f"summary {summary_id}: {column} is no instant: {named[column]!r}" for column in wrong)
        if not wrong and earliest_at is not None and latest_at is not None and earliest_at > latest_at:
            yield f"summary {summary_id} begins at {earliest_at}, after its end at {latest_at}"


def unknown_words(connection: sqlite3.Connection, conversation: int | None) -> Iterator[str]:
    """Kind, level and confidence of summaries."""
    rows = connection.execute(
        "SELECT summary_id, kind, level, confidence FROM summaries WHERE ?1 IS NULL OR conversation_id = ?1",
        (conversation,),
    )
    for summary_id, kind, level, confidence in rows:
        if kind not in SUMMARY_KINDS:
            yield f"summary {summary_id} has the kind {kind!r}"
        if level not in LEVELS:
            yield f"summary {summary_id} has the level {level!r}"
        if not isinstance(confidence, int | float) or not 0 <= confidence <= 1:
            yield f"summary {summary_id} has the confidence {confidence!r}"


def no_file_ids(connection: sqlite3.Connection, conversation: int | None) -> Iterator[str]:
    for summary_id, ids in _file_ids(connection, conversation):
        if ids is None:
            yield f"summary {summary_id}: file_ids is no JSON list of texts"


def unknown_files(connection: sqlite3.Connection, conversation: int | None) -> Iterator[str]:
    """Ids are found in words by their form, so what names no file of the store may be a word that looks like one."""
    known = {file_id for (file_id,) in connection.execute("SELECT file_id FROM large_files")}
    for summary_id, ids in _file_ids(connection, conversation):
        for file_id in ids or ():
            if file_id not in known:
                yield f"summary {summary_id} names the unknown file {file_id}"


def _file_ids(connection: sqlite3.Connection, conversation: int | None) -> Iterator[tuple[str, list[str] | None]]:
    """The files that summaries name; None where the column cannot be read."""
    rows = connection.execute(
        """
        SELECT summary_id, file_ids FROM summaries
        WHERE file_ids IS NOT '[]' AND (?1 IS NULL OR conversation_id = ?1)
        """,
        (conversation,),
    )
    for summary_id, text in rows:
        try:
            ids = json.loads(text)
        except (RecursionError, TypeError, ValueError):
            ids = None
        is_list = isinstance(ids, list) and all(isinstance(one, str) for one in ids)
        yield summary_id, ids if is_list else None


def _is_instant(value: object) -> bool:
    """Whether it stands in the one form whose order as text is that of time."""
    try:
        return isinstance(value, str) and format_instant(parse_instant(value)) == value
    except ValueError:
        return False
