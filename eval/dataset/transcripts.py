"""Recorded transcripts of any format: something to ingest and compact, with nothing to judge it by."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import polars as pl

from eval.dataset.card import Card
from eval.dataset.dataset import QRELS_SCHEMA, Dataset
from eval.questions.sessions import read_sessions
from lcm.checks import check_choice
from lcm.transcript.reading import CopiesRule


@dataclass(frozen=True, slots=True)
class Transcripts:
    """The files that are named, in one workspace. There are no queries and no judgements."""

    paths: Sequence[str] = ()
    """Files, and folders in which every transcript is read."""
    format: str = "auto"
    """`auto`, or the name of a transcript format."""
    strict: bool = False
    """Refuse a file with a line that cannot be read, instead of putting the line aside."""
    copies: CopiesRule = "once"
    """Whether a message that was written again, by a session resumed or forked, is one message or as many."""

    card: ClassVar[Card] = Card(
        name="transcripts",
        title="recorded transcripts of any format that lcm reads; no queries, no judgements",
        licence="that of the files",
        origin="the files that dataset.paths names",
        how_to_get="record them",
        files=(),
    )

    def __post_init__(self) -> None:
        check_choice(self, copies=CopiesRule)

    def load(self) -> Dataset:
        sessions = read_sessions(self.paths, self.format, self.strict, lambda file: self.card.name, self.copies)
        protocol = f"format={self.format}{sessions.protocol(self.copies)}"
        return Dataset(
            name=self.card.name,
            protocol=protocol,
            digest=hashlib.sha256("\n".join([*sessions.sha256s, protocol]).encode()).hexdigest(),
            transcripts=sessions.transcripts,
            queries=(),
            qrels=pl.DataFrame(schema=QRELS_SCHEMA),
            notes=sessions.notes,
        )
