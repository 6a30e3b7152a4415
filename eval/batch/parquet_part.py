"""The conversations of a Parquet file that one shard takes: each by the hash of its id, wherever its rows stand."""

from collections.abc import Iterator
from dataclasses import dataclass
from zlib import crc32

import pyarrow as pa  # type: ignore[import-untyped]

from lcm import given_parquet
from lcm.errors import TranscriptError
from lcm.given_parquet import json_value
from lcm.transcript.parquet import ParquetReader, recorded_row
from lcm.transcript.reader import RecordedItem
from lcm.transcript.recorded_file import RecordedFile


@dataclass(frozen=True, slots=True)
class ParquetPart:
    """Reads as `ParquetReader` does, one part of `parts`: the others' rows are passed over before they are decoded."""

    part: int
    parts: int
    name = "parquet"

    def __post_init__(self) -> None:
        if not 0 <= self.part < self.parts:
            raise ValueError(f"part must be from 0 to {self.parts - 1}, got {self.part}")

    def detects(self, file: RecordedFile) -> bool:
        return ParquetReader().detects(file)

    def read(self, file: RecordedFile) -> Iterator[RecordedItem]:
        before = 0
        try:
            for rows in given_parquet.rows(file.path, TranscriptError):
                ids = rows.columns.column("conversation_id").to_pylist()
                places = [place for place, conversation in enumerate(ids) if self._is_ours(conversation)]
                file.bytes_read += rows.n_bytes // self.parts
                ours = rows.columns.take(pa.array(places, pa.int64())).to_pylist()
                for place, row in zip(places, ours, strict=True):
                    number = before + place + 1
                    with file.record(number, f"row {number}: "):
                        yield recorded_row({key: json_value(value) for key, value in row.items()}, file.name)
                before += len(ids)
        except given_parquet.UNREADABLE as error:
            file.put_aside(
                before + 1, f"row {before + 1} and all after it: {' '.join(str(error).split())}", to_end=True
            )

    def _is_ours(self, conversation_id: object) -> bool:
        return crc32(str(conversation_id).encode("utf-8", "surrogatepass")) % self.parts == self.part
