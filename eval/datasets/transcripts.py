"""Recorded transcripts of any format: something to ingest and compact, with nothing to judge it by."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import polars as pl

from eval.datasets.card import Card
from eval.datasets.dataset import QRELS_SCHEMA, Dataset
from lcm.errors import DatasetError
from lcm.records import Transcript
from lcm.transcript.reading import joined, read_pieces, reader_of, recorded_files

_SHOWN = 5  # lines that were put aside, told one by one


@dataclass(frozen=True, slots=True)
class Transcripts:
    """The files that are named, in one workspace. There are no queries and no judgements."""

    paths: Sequence[str] = ()
    """Files, and folders in which every file is read."""
    format: str = "auto"
    """`auto`, or the name of a transcript format."""
    strict: bool = False
    """Refuse a file with a line that cannot be read, instead of putting the line aside."""

    card: ClassVar[Card] = Card(
        name="transcripts",
        title="recorded transcripts of any format that lcm reads; no queries, no judgements",
        licence="that of the files",
        origin="the files that dataset.paths names",
        how_to_get="record them",
        files=(),
    )

    def load(self) -> Dataset:
        if not self.paths:
            raise DatasetError(
                "dataset.paths names no file: set it to files or folders, dataset.paths=[a.jsonl,sessions]"
            )
        conversations: dict[str, Path] = {}
        transcripts: list[Transcript] = []
        digests, notes = [], []
        for file in recorded_files([Path(path).expanduser() for path in self.paths], strict=self.strict):
            for transcript in joined(read_pieces(file, reader_of(file, self.format), self.card.name)):
                other = conversations.setdefault(transcript.conversation_id, file.path)
                if other != file.path:
                    raise DatasetError(
                        f"{file.path}: conversation {transcript.conversation_id!r} is also in {other}; leave one out"
                    )
                transcripts.append(transcript)
            notes += [f"put aside: {quarantined}" for quarantined in file.quarantine]
            with file.path.open("rb") as content:
                digests.append(hashlib.file_digest(content, "sha256").hexdigest())
        protocol = f"format={self.format}"
        return Dataset(
            name=self.card.name,
            protocol=protocol,
            digest=hashlib.sha256("\n".join([*digests, protocol]).encode()).hexdigest(),
            transcripts=tuple(transcripts),
            queries=(),
            qrels=pl.DataFrame(schema=QRELS_SCHEMA),
            notes=(*notes[:_SHOWN], *([f"put aside: {len(notes) - _SHOWN} more"] if len(notes) > _SHOWN else [])),
        )
