"""Who is made of whom: the summary DAG read upwards and downwards, without its words."""

import json
import sqlite3
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import datetime
from typing import Literal, NamedTuple

from lcm.clock import parse_instant
from lcm.records.conversation import LargeFile

Direction = Literal["sources", "derived"]


class SourceMessage(NamedTuple):
    """A message as recall reads it."""

    number: int
    message_id: str
    conversation: int
    role: str
    text: str
    """Its words, and what its parts say besides."""
    tokens: int
    """Of the text, as counted when it was stored; 0 where its parts say more than was counted."""
    created_at: datetime


class LineagePlace(NamedTuple):
    """A summary at its place in a walk over the summary DAG."""

    summary_id: str
    steps: int
    path: str
    """Four digits a step, joined by dots: the position among the sources of the condensed summary of that step."""
    next_ids: tuple[str, ...]
    """The summaries that follow it in the direction of the walk, in order; none where the walk ends."""


class StoredFile(NamedTuple):
    """A large file, and the message that holds its words."""

    file: LargeFile
    conversation: int
    message: int | None
    """The integer key of the message."""
    message_id: str | None
    created_at: datetime


def conversations_of(connection: sqlite3.Connection, summary_ids: Sequence[str]) -> dict[str, int]:
    """The integer keys of the conversations that summaries belong to; an unknown one is left out."""
    rows = connection.execute(
        "SELECT summary_id, conversation_id FROM json_each(?) k JOIN summaries s ON s.summary_id = k.value",
        (json.dumps(list(summary_ids)),),
    )
    return dict(rows.fetchall())


def derived_ids(connection: sqlite3.Connection, summary_id: str) -> list[str]:
    """The summaries that this one is a source of."""
    rows = connection.execute(
        "SELECT summary_id FROM summary_parents WHERE parent_summary_id = ? ORDER BY ordinal, summary_id", (summary_id,)
    )
    return [found for (found,) in rows]


def source_messages(connection: sqlite3.Connection, summary_id: str) -> list[SourceMessage]:
    """The messages that a leaf summary stands for, in order."""
    of = "summary_messages l JOIN messages m USING (message_id) WHERE l.summary_id = ? ORDER BY l.ordinal"
    return _source_messages(connection, of, summary_id)


def messages_by_number(connection: sqlite3.Connection, numbers: Sequence[int]) -> list[SourceMessage]:
    """Messages by their integer keys, in that order; an unknown one is left out."""
    of = "json_each(?) k CROSS JOIN messages m ON m.message_id = k.value ORDER BY k.key"
    return _source_messages(connection, of, json.dumps(list(numbers)))


def _source_messages(connection: sqlite3.Connection, of: str, value: str) -> list[SourceMessage]:
    rows = connection.execute(
        f"""
        SELECT m.message_id, m.message_key, m.conversation_id, m.role, m.full_text,
               iif(m.parts_text = '', m.token_count, 0), m.created_at
        FROM {of}
        """,  # noqa: S608 (our own constants)
        (value,),
    )
    return [SourceMessage._make((*row[:6], parse_instant(row[6]))) for row in rows]


def leaves_of(connection: sqlite3.Connection, numbers: Sequence[int]) -> dict[int, str]:
    """The leaf summaries that messages, named by their integer keys, went into; one that went into none is left out."""
    rows = connection.execute(
        """
        SELECT l.message_id, l.summary_id FROM json_each(?) k JOIN summary_messages l ON l.message_id = k.value
        ORDER BY l.summary_id DESC
        """,
        (json.dumps(list(numbers)),),
    )
    return dict(rows.fetchall())


def deepest(connection: sqlite3.Connection, conversations: Sequence[int] | None) -> int:
    """The greatest depth of a summary of the conversations; -1 where there is none."""
    found: tuple[int] = connection.execute(
        """
        SELECT coalesce(max(depth), -1) FROM summaries
        WHERE ?1 IS NULL OR conversation_id IN (SELECT value FROM json_each(?1))
        """,
        (None if conversations is None else json.dumps(list(conversations)),),
    ).fetchone()
    return found[0]


def walk(
    connection: sqlite3.Connection,
    summary_ids: Sequence[str],
    direction: Direction = "sources",
    kept: Callable[[list[str]], Collection[str]] = list,
    depth: int | None = None,
) -> list[LineagePlace]:
    """Summaries and what lies in one direction of them, by steps and path; each once, at its first place.

    It is the one way in which the edges between summaries are followed.

    Args:
        connection: where they are stored.
        summary_ids: where to begin.
        direction: to what they were made of, or to what was made of them.
        kept: those of some summaries to go on with.
        depth: how many steps to go; None = to the ends.
    """
    near, far = ("summary_id", "parent_summary_id") if direction == "sources" else ("parent_summary_id", "summary_id")
    paths = dict.fromkeys(summary_ids, "")
    level, found, steps = list(paths), [], 0
    while level:
        edges: dict[str, dict[str, int]] = {one: {} for one in level}
        if depth is None or steps < depth:
            read = connection.execute(
                f"""
                SELECT {near}, {far}, ordinal FROM json_each(?) k JOIN summary_parents p ON p.{near} = k.value
                ORDER BY ordinal, {far}
                """,  # noqa: S608 (our own constants)
                (json.dumps(level),),
            ).fetchall()
            allowed = set(kept([other for _, other, _ in read]))
            for one, other, ordinal in read:
                if other in allowed:
                    edges[one][other] = ordinal
        found += [LineagePlace(one, steps, paths[one], tuple(edges[one])) for one in level]
        next_level = []
        for one in level:
            for other, ordinal in edges[one].items():
                if other not in paths:
                    paths[other] = f"{paths[one]}.{ordinal:04d}" if paths[one] else f"{ordinal:04d}"
                    next_level.append(other)
        level, steps = sorted(next_level, key=paths.__getitem__), steps + 1
    return found


def beneath(connection: sqlite3.Connection, summary_ids: Sequence[str]) -> set[str]:
    """Summaries and all summaries that they were made of."""
    return {place.summary_id for place in walk(connection, summary_ids)}


def depth_first(
    start: str, sources: Callable[[str], Sequence[str]], depth: int | None = None
) -> Iterator[tuple[str, int]]:
    """Something and what it was made of, each followed by its own sources, with the steps down to it.

    What two were made of comes twice. Nothing comes beneath itself, so that it ends even where lineage is no DAG.

    Args:
        start: comes first, 0 steps down.
        sources: of one, in order.
        depth: how many steps to go down; None = to the ends.
    """
    waiting = [(start, frozenset[str]())]
    while waiting:
        one, above = waiting.pop()
        yield one, len(above)
        if depth is None or len(above) < depth:
            here = above | {one}
            waiting += [(source, here) for source in reversed(sources(one)) if source not in here]


def messages_beneath(connection: sqlite3.Connection, summary_ids: Sequence[str]) -> list[str]:
    """The ids of the messages that summaries stand for, each once, in the order of their sources."""
    sources = {place.summary_id: place.next_ids for place in walk(connection, summary_ids)}
    ordered = [one for root in summary_ids for one, _ in depth_first(root, sources.__getitem__)]
    rows = connection.execute(
        """
        SELECT m.message_key FROM json_each(?) k JOIN summary_messages l ON l.summary_id = k.value
        JOIN messages m USING (message_id) ORDER BY k.key, l.ordinal
        """,
        (json.dumps(ordered),),
    )
    return list(dict.fromkeys(message_id for (message_id,) in rows))


def stored_files(connection: sqlite3.Connection, file_ids: Sequence[str]) -> dict[str, StoredFile]:
    """Large files by their ids; an unknown one is left out."""
    rows = connection.execute(
        """
        SELECT f.file_id, f.ordinal, f.position, f.file_name, f.mime_type, f.byte_size, f.exploration_summary,
               f.conversation_id, f.message_id, m.message_key, f.created_at
        FROM json_each(?) k JOIN large_files f ON f.file_id = k.value LEFT JOIN messages m USING (message_id)
        """,
        (json.dumps(list(file_ids)),),
    )
    found = {}
    for file_id, ordinal, position, name, mime_type, size, exploration, *of, at in rows:
        file = LargeFile(file_id, ordinal, position, name, mime_type, size or 0, exploration or "")
        found[file_id] = StoredFile._make((file, *of, parse_instant(at)))
    return found


def files_of(connection: sqlite3.Connection, number: int) -> tuple[str, ...]:
    """The ids of the large files that a message, named by its integer key, holds."""
    rows = connection.execute(
        "SELECT file_id FROM large_files WHERE message_id = ? ORDER BY ordinal, position", (number,)
    )
    return tuple(file_id for (file_id,) in rows)
