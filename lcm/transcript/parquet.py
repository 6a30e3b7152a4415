"""Transcripts as Parquet, in and out: a row is a message or an event.

Out, a message has its parts and its envelope as JSON text, so that reading it again gives the same; an event has its
kind and its record as JSON text, and stands where it stood between the messages.

In, a row is a conversation, its messages in a column `messages`, `conversations` or `conversation` (a list, or one as
JSON text; those of chat or of ShareGPT) or in `prompt` and `completion` (lists or texts), or a message. Of messages any
table with columns `role` and `content`, or the `parts` of Vercel's AI SDK, is read, the columns of `write_parquet` or
others: `conversation_id` (else all is one conversation named by the file), `session_id`, `title`, `message_id` or `id`,
`author` or `name`, `created_at` or `timestamp` (an instant, ISO 8601 text or an epoch number), `tool_calls` (a list, or
one as JSON text).
What is recorded of a row without `parts` and `envelope` is the row itself as an object; else columns unknown to us are
kept as `columns` of the envelope. Values that JSON lacks are text there: instants, dates and times in ISO 8601, bytes
in base64, decimals, durations and numbers that are not finite as Python writes them.

`workspace_id` is written for other readers; who reads the file here says which workspace it goes to.

Through PyArrow: it reads within a row group and writes on the caller's thread, so neither depends on the file's size.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from lcm import given_parquet
from lcm.encoding import mapping_json, optional_text, require_id, to_json, well_formed
from lcm.errors import TranscriptError
from lcm.files import written_whole
from lcm.given_parquet import UNREADABLE, json_value
from lcm.records.conversation import PART_TYPES, ROLES, Event, Message, Part, Transcript
from lcm.transcript.chat import chat_session, is_sharegpt, sharegpt_session
from lcm.transcript.fields import native_id, said_at
from lcm.transcript.parts import DecomposedMessage, decompose, is_ui_message, rebuild_record, with_ui_parts
from lcm.transcript.reader import ConversationIds, RecordedItem, session_of
from lcm.transcript.recorded_file import RecordedFile

_NAMES = ("workspace_id", "conversation_id", "title", "message_id", "session_id", "role", "author")
_WORDS = ("content", "parts", "envelope", "event_kind", "event")
SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in _NAMES),
        ("created_at", pa.timestamp("ms", "UTC")),
        *((name, pa.string()) for name in _WORDS),
    ]
)

_LISTS = ("messages", "conversations", "conversation")
"""Columns with the messages of a conversation."""
_SIDES = frozenset({"prompt", "completion"})
"""Columns with its two sides."""
_REPEATING = ["workspace_id", "conversation_id", "title", "session_id", "role", "author", "event_kind"]
_WRITTEN = frozenset(SCHEMA.names)
_MAGIC = b"PAR1"
_BATCH_ROWS, _BATCH_BYTES = 500, 4 * 2**20
_ROW_GROUP_BYTES = 16 * 2**20
_PART_FIELDS = frozenset(field.name for field in fields(Part))

_Json = TypeVar("_Json", list[Any], dict[str, Any])


class FileTotals(NamedTuple):
    """The conversations, messages and events of a transcript file, counted."""

    conversations: int
    messages: int
    events: int


@dataclass(frozen=True, slots=True)
class ParquetReader:
    """Reads the conversations that the rows name; a line of such a file is a row, from 1."""

    name = "parquet"

    def detects(self, file: RecordedFile) -> bool:
        return _missing(column_names(file) or []) is None

    def read(self, file: RecordedFile) -> Iterator[RecordedItem]:
        unnamed = ConversationIds()
        for number, columns, place in _places(file):
            with file.record(number, f"row {number}: "):
                row = _row(columns, place)
                if "role" in row:
                    yield recorded_row(row, file.name)
                else:
                    yield from _conversation_in(row, number, file, unnamed)


def column_names(file: RecordedFile) -> list[str] | None:
    """Name the columns; None where the file is no Parquet or is torn."""
    if file.magic != _MAGIC:
        return None
    try:
        return given_parquet.column_names(file.path)
    except UNREADABLE:
        return None


def write_parquet(pieces: Iterable[Transcript], path: Path) -> FileTotals:
    """Write transcripts, or their pieces in order, as rows; the file is whole or absent.

    Raises:
        StoreError: if UTF-8 cannot carry an id.
    """
    heard: Counter[tuple[str, str]] = Counter()
    rows = 0
    with (
        written_whole(path) as stream,
        pq.ParquetWriter(
            stream, SCHEMA, compression="zstd", use_dictionary=_REPEATING, write_page_checksum=True
        ) as writer,
    ):
        for row_group in _row_groups(transcript_rows(pieces, heard)):
            writer.write_table(row_group)
            rows += row_group.num_rows
    return FileTotals(len(heard), heard.total(), rows - heard.total())


def transcript_rows(
    pieces: Iterable[Transcript], heard: Counter[tuple[str, str]] | None = None
) -> Iterator[dict[str, Any]]:
    """The rows of transcripts, or of their pieces in order, each event between the messages where it stood.

    Args:
        pieces: of any conversations.
        heard: takes in how many messages each workspace and conversation has.
    """
    heard = Counter() if heard is None else heard
    for piece in pieces:
        conversation = (piece.workspace_id, piece.conversation_id)
        shared = {
            "workspace_id": require_id(piece.workspace_id, "workspace id"),
            "conversation_id": require_id(piece.conversation_id, "conversation id"),
            "title": optional_text(piece.title),
        }
        events = list(reversed(piece.events))
        for place, message in enumerate(piece.messages, start=heard[conversation]):
            while events and events[-1].after <= place:
                yield shared | _event_row(events.pop())
            yield shared | _message_row(message)
        yield from (shared | _event_row(event) for event in reversed(events))
        heard[conversation] += len(piece.messages)


def _row_groups(rows: Iterable[dict[str, Any]]) -> Iterator[pa.Table]:
    tables: list[pa.Table] = []
    chunk: list[dict[str, Any]] = []
    characters = 0
    for row in rows:
        chunk.append(row)
        characters += sum(len(value) for value in row.values() if isinstance(value, str))
        if len(chunk) == _BATCH_ROWS or characters >= _BATCH_BYTES:
            tables.append(pa.Table.from_pylist(chunk, SCHEMA))
            chunk, characters = [], 0
            if sum(table.nbytes for table in tables) >= _ROW_GROUP_BYTES:
                yield pa.concat_tables(tables)
                tables = []
    if chunk or tables:
        yield pa.concat_tables([*tables, pa.Table.from_pylist(chunk, SCHEMA)])


def _message_row(message: Message) -> dict[str, Any]:
    return {
        "message_id": require_id(message.message_id, "message id"),
        "session_id": require_id(message.session_id, "session id"),
        "role": message.role,
        "author": optional_text(message.author),
        "created_at": message.created_at,
        "content": well_formed(message.content),
        "parts": to_json(list(map(_part_object, message.parts))),
        "envelope": mapping_json(message.envelope),
    }


def _event_row(event: Event) -> dict[str, Any]:
    return {"event_kind": well_formed(event.kind), "event": to_json(event.native)}


def _part_object(part: Part) -> dict[str, Any]:
    values = {field.name: getattr(part, field.name) for field in fields(Part)}
    return {name: value for name, value in values.items() if value is not None and value != {}}


def _places(file: RecordedFile) -> Iterator[tuple[int, dict[str, pa.Array], int]]:
    """Each row's number, from 1, and where it stands in which columns; what cannot be read is put aside."""
    number = 0
    try:
        _require_columns(given_parquet.column_names(file.path))
        for rows in given_parquet.rows(file.path, TranscriptError):
            columns = dict(zip(rows.columns.schema.names, rows.columns.columns, strict=True))
            for place in range(rows.columns.num_rows):
                number += 1
                file.bytes_read += rows.n_bytes // rows.columns.num_rows
                yield number, columns, place
    except UNREADABLE as err:
        file.put_aside(number + 1, f"row {number + 1} and all after it: {_one_line(err)}", to_end=True)


def _require_columns(names: list[str]) -> None:
    if missing := _missing(names):
        raise ValueError(f"there is no column {missing}; a table of messages has role and content")
    repeated = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if repeated:
        raise ValueError(f"there are {names.count(repeated[0])} columns {repeated[0]!r}; give each a name of its own")


def _missing(names: Collection[str]) -> str | None:
    """The column that a table lacks, of messages or of conversations; None where it lacks none."""
    if "role" in names:
        return None if "content" in names or "parts" in names else "content"
    has_conversations = any(name in names for name in _LISTS) or _SIDES.issubset(names)
    return None if has_conversations else "role"


def _row(columns: Mapping[str, pa.Array], place: int) -> dict[str, Any]:
    """One row as JSON."""
    try:
        return {name: json_value(column[place].as_py()) for name, column in columns.items()}
    except UNREADABLE as err:
        raise TranscriptError(_one_line(err)) from err


def _conversation_in(
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


def recorded_row(row: dict[str, Any], file_name: str) -> RecordedItem:
    """Read a row, its values as `json_value` gives them.

    Raises:
        TranscriptError: if it is neither a message nor an event.
    """
    conversation_id = _id(row, "conversation_id") or file_name
    title = row.get("title")
    title = title if isinstance(title, str) else None
    if row.get("event_kind") is not None:
        if not isinstance(row["event_kind"], str):
            raise TranscriptError(f"event_kind must be text, got {row['event_kind']!r:.80}")
        return RecordedItem(conversation_id, Event(row["event_kind"], _native(row.get("event"))), title)
    if not isinstance(row["role"], str):
        raise TranscriptError(f"role must be text, got {row['role']!r:.80}")
    has_original = row.get("envelope") is not None or (row.get("parts") is not None and not _has_ui_parts(row))
    said = _written(row) if has_original else _foreign(row)
    author = row.get("name") if row.get("author") is None and said.role != "tool" else row.get("author")
    message = said.message(
        # Reading puts the conversation before the id, as it did when the message was first read.
        (_id(row, "message_id") or _id(row, "id")).removeprefix(f"{conversation_id}:"),
        _id(row, "session_id") or conversation_id,
        said_at(row),
        author if isinstance(author, str) else None,
    )
    if has_original and "native" in message.envelope:
        _check_whole(message)
    return RecordedItem(conversation_id, message, title)


def _check_whole(message: Message) -> None:
    """Refuse a message of which nobody could say any more what was recorded."""
    try:
        rebuild_record(message)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise TranscriptError(f"its parts and envelope do not make up a recorded message: {error!r:.80}") from error


def _id(row: Mapping[str, Any], name: str) -> str:
    """A recorded id as text; a column of whole numbers with gaps is often one of floats."""
    value = row.get(name)
    if isinstance(value, float):
        value = int(value) if value.is_integer() else str(value)
    return native_id(value)


def _written(row: Mapping[str, Any]) -> DecomposedMessage:
    """A message with its parts and envelope, as `write_parquet` leaves it."""
    role, content = row["role"], "" if row.get("content") is None else row["content"]
    if role not in ROLES:
        raise TranscriptError(f"role must be one of {', '.join(ROLES)} beside parts or an envelope, got {role!r:.80}")
    if not isinstance(content, str):
        raise TranscriptError(f"content must be text beside parts or an envelope, got {content!r:.80}")
    parts = tuple(map(_part, _parsed(row, "parts", [])))
    others = {name: value for name, value in row.items() if name not in _WRITTEN}
    envelope = _parsed(row, "envelope", {})
    return DecomposedMessage(role, content, parts, envelope | {"columns": others} if others else envelope)


def _has_ui_parts(row: Mapping[str, Any]) -> bool:
    """Say whether a row has the parts of the AI SDK, each of which names its `type`."""
    try:
        return is_ui_message({"parts": _parsed(row, "parts", [])})
    except TranscriptError:
        return False


def _foreign(row: dict[str, Any]) -> DecomposedMessage:
    if _has_ui_parts(row):
        native = row | {"parts": _parsed(row, "parts", [])}
        return with_ui_parts(native, decompose(native))
    calls = row.get("tool_calls")
    if not isinstance(calls, str):
        return decompose(row)
    try:
        listed = json.loads(calls)
    except (RecursionError, ValueError):
        return decompose(row)
    said = decompose({**row, "tool_calls": listed})
    slots = {slot: shape for slot, shape in said.envelope["slots"].items() if slot != "tool_calls"}
    return said._replace(envelope={"native": {**said.envelope["native"], "tool_calls": calls}, "slots": slots})


def _native(text: Any) -> Any:
    """The record of an event; a value that is not JSON text is itself the record."""
    try:
        return json.loads(text)
    except (RecursionError, TypeError, ValueError):
        return text


def _parsed(row: Mapping[str, Any], name: str, default: _Json) -> _Json:
    """The JSON text of a column; the default where it is null."""
    text = row.get(name)
    if text is None:
        return default
    kind = type(default)
    try:
        value = json.loads(text) if isinstance(text, str) else text
    except (RecursionError, ValueError) as err:
        raise TranscriptError(f"{name} must be JSON text: {_one_line(err)}") from err
    if not isinstance(value, kind):
        raise TranscriptError(f"{name} must be JSON text of a {kind.__name__}, got {text!r:.80}")
    return value


def _part(value: Any) -> Part:
    """One entry of `parts`.

    Raises:
        TranscriptError: if it is not what `write_parquet` leaves.
    """
    if (
        not isinstance(value, dict)
        or value.get("part_type") not in PART_TYPES
        or not all(isinstance(held, dict if name == "metadata" else str) for name, held in value.items())
        or not _PART_FIELDS.issuperset(value)
    ):
        raise TranscriptError(f"an entry of parts must be as write_parquet leaves it, got {value!r:.80}")
    return Part(**value)


def _one_line(err: Exception) -> str:
    return " ".join(str(err).split())
