"""Recorded transcripts of any format: something to ingest and compact, with nothing to judge it by."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import polars as pl

from eval.dataset.card import Card
from eval.dataset.dataset import QRELS_SCHEMA, Dataset
from lcm.encoding import well_formed
from lcm.errors import DatasetError, TranscriptError
from lcm.records.conversation import Transcript
from lcm.transcript.folders import is_passed_over, recorded_files
from lcm.transcript.reading import joined, read_pieces, reader_of

_SHOWN = 5  # lines that were put aside, and files passed over, told one by one


@dataclass(frozen=True, slots=True)
class Transcripts:
    """The files that are named, in one workspace. There are no queries and no judgements."""

    paths: Sequence[str] = ()
    """Files, and folders in which every transcript is read."""
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
        digests, aside, passed_over = list[str](), list[str](), list[str]()
        named = [Path(path).expanduser() for path in self.paths]
        for file in recorded_files(named, strict=self.strict):
            try:
                reader = reader_of(file, self.format)
            except TranscriptError as error:
                if not is_passed_over(file, named):
                    raise
                passed_over.append(str(error))
                continue
            read = joined(read_pieces(file, reader, self.card.name))
            if not read and is_passed_over(file, named):
                passed_over.append(f"{file.path}: holds nothing that can be read")
                continue
            for transcript in read:
                other = conversations.setdefault(transcript.conversation_id, file.path)
                if other != file.path:
                    raise DatasetError(
                        f"{file.path}: conversation {transcript.conversation_id!r} is also in {other}; leave one out"
                    )
                transcripts.append(transcript)
            aside += map(str, file.quarantine)
            for path in (file.path, *file.read_along):
                with path.open("rb") as content:
                    digests.append(hashlib.file_digest(content, "sha256").hexdigest())
        protocol = f"format={self.format}"
        return Dataset(
            name=self.card.name,
            protocol=protocol,
            digest=hashlib.sha256("\n".join([*digests, protocol]).encode()).hexdigest(),
            transcripts=tuple(transcripts),
            queries=(),
            qrels=pl.DataFrame(schema=QRELS_SCHEMA),
            notes=(*_notes("put aside", aside), *_notes("passed over", passed_over)),
        )


def _notes(what: str, each: Sequence[str]) -> list[str]:
    more = [f"{what}: {len(each) - _SHOWN} more"] if len(each) > _SHOWN else []
    return [well_formed(f"{what}: {one}") for one in each[:_SHOWN]] + more
