"""Transcripts as a Polars frame, in and out: the rows that `parquet` writes and reads."""

from collections.abc import Iterable, Iterator

import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]

from lcm.errors import TranscriptError
from lcm.given_parquet import json_value
from lcm.records.conversation import Transcript
from lcm.transcript.parquet import SCHEMA, recorded_row, transcript_rows
from lcm.transcript.reader import RecordedItem
from lcm.transcript.reading import in_pieces, joined

FRAME_SCHEMA: dict[str, pl.DataType] = dict(pl.DataFrame(pa.Table.from_pylist([], SCHEMA)).schema)
"""The columns of `transcript_frame`: a row is a message or, where `event_kind` is not null, an event."""


def transcript_frame(transcripts: Iterable[Transcript]) -> pl.DataFrame:
    """Lay out transcripts as rows of `FRAME_SCHEMA`, each event between the messages where it stood."""
    return pl.DataFrame(pa.Table.from_pylist(list(transcript_rows(transcripts)), SCHEMA))


def read_frame(frame: pl.DataFrame, name: str = "frame", workspace_id: str = "default") -> list[Transcript]:
    """Read the conversations of a frame: one of `transcript_frame`, or any with columns role and content.

    Args:
        frame: as `ParquetReader` reads its file.
        name: of the conversation of rows that name none.
        workspace_id: the haystack that the conversations belong to.

    Raises:
        TranscriptError: naming the row, from 1, that is neither a message nor an event.
    """
    missing = [column for column in ("role", "content") if column not in frame.columns]
    if missing:
        raise TranscriptError(f"there is no column {missing[0]}; a frame of messages has role and content")
    return joined(in_pieces(_recorded(frame, name), lambda: 0, workspace_id))


def _recorded(frame: pl.DataFrame, name: str) -> Iterator[RecordedItem]:
    for number, row in enumerate(frame.iter_rows(named=True), start=1):
        try:
            yield recorded_row({column: json_value(value) for column, value in row.items()}, name)
        except (TranscriptError, ValueError) as err:
            raise TranscriptError(f"row {number}: {err}") from err
