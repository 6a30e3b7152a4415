"""Recordings to write, and what a reader makes of them."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from lcm.records.conversation import Event, Message, Transcript
from lcm.store.store import Store
from lcm.transcript.parts import rebuild_record
from lcm.transcript.reader import TranscriptReader
from lcm.transcript.reading import joined, read_pieces
from lcm.transcript.recorded_file import RecordedFile
from tests.lcm.store.contents import TOKENS


def write(path: Path, *values: Any, indent: int | None = None) -> Path:
    """Write one value below the other: a text as it stands, anything else as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    texts = (value if isinstance(value, str) else json.dumps(value, indent=indent) for value in values)
    path.write_text("\n".join(texts) + "\n")
    return path


def read(path: Path, reader: TranscriptReader) -> tuple[list[Transcript], list[str]]:
    """Return the transcripts of a file, and `line: reason` of what was put aside."""
    file = RecordedFile(path)
    transcripts = joined(read_pieces(file, reader))
    return transcripts, [f"{found.line}: {found.reason}" for found in file.quarantine]


def read_one(path: Path, reader: TranscriptReader) -> Transcript:
    """Return the one transcript of a file of which nothing is put aside."""
    ((transcript,), aside) = read(path, reader)
    assert aside == []
    return transcript


def read_message(path: Path, reader: TranscriptReader, native: Any) -> Message:
    """Return the one message of a file, which comes back exactly as it was recorded."""
    (message,) = read_one(path, reader).messages
    assert json.dumps(rebuild_record(message)) == json.dumps(native)
    return message


def rebuilt(transcript: Transcript) -> list[str]:
    """Return the records of the messages as JSON, to the order of their keys."""
    return [json.dumps(rebuild_record(message)) for message in transcript.messages]


def natives(items: Iterable[Message | Event]) -> list[Any]:
    """Return the records of messages and events; the two halves of a step are one."""
    found: list[Any] = []
    for item in items:
        if isinstance(item, Event):
            found.append(item.native)
        elif item.envelope.get("slots") == {"observation": "value"}:
            found[-1] = found[-1] | rebuild_record(item)
        else:
            found.append(rebuild_record(item))
    return found


def heard(transcripts: Iterable[Transcript]) -> dict[str, list[str]]:
    """Return the recorded ids of the messages of each conversation."""
    return {one.conversation_id: [m.message_id.split(":")[1] for m in one.messages] for one in transcripts}


def columns(message: Message) -> list[tuple[str | None, ...]]:
    return [(p.part_type, p.text, p.tool_call_id, p.tool_name, p.tool_input, p.tool_output) for p in message.parts]


def taken(file: RecordedFile, reader: TranscriptReader) -> list[Transcript]:
    """Return what is read, once it has gone into a store whole."""
    pieces = list(read_pieces(file, reader))
    with Store() as store:
        store.ingest_pieces(pieces, TOKENS)
        stored = sum(len(store.messages(key)) for key in {piece.conversation_id for piece in pieces})
        assert stored == sum(len(piece.messages) for piece in pieces)
    return pieces


def items(pieces: Iterable[Transcript]) -> int:
    return sum(len(piece.messages) + len(piece.events) for piece in pieces)
