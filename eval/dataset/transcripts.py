"""Recorded transcripts of any format: something to ingest and compact, with nothing to judge it by."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from eval.dataset.card import Card, read_card, text_digest
from eval.dataset.dataset import Dataset, Draft
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

    card: ClassVar[Card] = read_card("transcripts")

    def __post_init__(self) -> None:
        check_choice(self, copies=CopiesRule)

    def load(self) -> Dataset:
        sessions = read_sessions(self.paths, self.format, self.strict, lambda file: self.card.name, self.copies)
        protocol = f"format={self.format}{sessions.protocol(self.copies)}"
        digest = text_digest(*sessions.sha256s, protocol)
        return Draft(list(sessions.transcripts)).dataset(self.card.name, protocol, digest, sessions.notes)
