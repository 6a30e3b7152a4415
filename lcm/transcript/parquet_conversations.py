"""Rows of Parquet that each hold a whole conversation, as data sets for training have them."""

import json
from collections.abc import Collection, Iterator
from typing import Any

from lcm.errors import TranscriptError
from lcm.transcript.chat import chat_session
from lcm.transcript.reader import RecordedItem
from lcm.transcript.recorded_file import RecordedFile
from lcm.transcript.sessions import ConversationIds, session_of
from lcm.transcript.sharegpt import is_sharegpt, sharegpt_session

_LISTS = ("messages", "conversations", "conversation")
"""Columns with the messages of a conversation."""
_SIDES = frozenset({"prompt", "completion"})
"""Columns with its two sides."""


def are_conversations(columns: Collection[str]) -> bool:
    """Say whether a table has columns of conversations."""
    return any(name in columns for name in _LISTS) or _SIDES.issubset(columns)


def conversation_in(
    row: dict[str, Any], number: int, file: RecordedFile, unnamed: ConversationIds
) -> Iterator[RecordedItem]:
    """The conversation of a row, from 1, its values as `json_value` gives them.

    Raises:
        TranscriptError: if a column of messages holds something else, and the row has no others.
    """
    lists = {name: _list_in(row[name]) for name in _LISTS if row.get(name) is not None}
    wrong = next((name for name, held in lists.items() if held is None), None)
    if wrong is not None and not any(lists.values()) and not _SIDES.issubset(row):
        raise TranscriptError(
            f"the column {wrong!r} holds {row[wrong]!r:.80}, which is no list of messages: write a list of "
            '{"role": ..., "content": ...} or {"from": ..., "value": ...} a row, or such a list as JSON text'
        )
    row = row | {name: held for name, held in lists.items() if held is not None}
    yield from (sharegpt_session if is_sharegpt(row) else chat_session)(session_of(number, row), file, unnamed)


def _list_in(value: Any) -> list[Any] | None:
    """The list that a cell is, or whose JSON text it is; None where it is neither."""
    try:
        held = json.loads(value) if isinstance(value, str) else value
    except (RecursionError, ValueError):
        return None
    return held if isinstance(held, list) else None
