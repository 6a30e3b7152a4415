"""A source as it is read: piece by piece, with what became of it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from eval.batch.parquet_part import ParquetPart
from eval.batch.sharding import TranscriptSource
from lcm.errors import TranscriptError
from lcm.faults import is_of_machine
from lcm.records.conversation import Transcript
from lcm.transcript.reader import TranscriptReader
from lcm.transcript.reading import PIECE_BYTES, PIECE_ITEMS, READERS, read_pieces, reader_of
from lcm.transcript.recorded_file import RecordedFile


@dataclass(slots=True)
class ReadConversation:
    """One conversation of a source, as far as it was read."""

    messages: int = 0
    events: int = 0
    seconds: float = 0.0
    """That its compaction took."""
    reason: str = ""
    """What compaction said of it last, where it made no summary."""
    failure: str = ""
    """Why it is not compacted to its end: a later run goes on with it."""


@dataclass(slots=True)
class SourceReader:
    """Reads one source of a shard piece by piece, and keeps what became of it."""

    source: TranscriptSource
    file: RecordedFile
    pieces: Iterator[Transcript]
    conversations: dict[str, ReadConversation] = field(default_factory=dict)
    is_read: bool = False
    refused: str | None = None

    @property
    def is_over(self) -> bool:
        return self.is_read or self.refused is not None

    def conversation(self, conversation_id: str) -> ReadConversation:
        return self.conversations.setdefault(conversation_id, ReadConversation())

    @property
    def failures(self) -> list[str]:
        """Why conversations are not compacted to their ends, one reason each."""
        return [one.failure for one in self.conversations.values() if one.failure]

    def refuse(self, reason: str) -> None:
        """Note why the source is not taken in, with its path, which a store does not know."""
        path = str(self.source.path)
        self.refused = reason if path in reason else f"{path}: {reason}"

    def take(self) -> list[Transcript]:
        """The next pieces: some `PIECE_ITEMS` messages, or `PIECE_BYTES`."""
        taken: list[Transcript] = []
        items, from_byte = 0, self.file.bytes_read
        try:
            while items < PIECE_ITEMS and self.file.bytes_read - from_byte < PIECE_BYTES:
                piece = next(self.pieces)
                taken.append(piece)
                items += len(piece.messages) + len(piece.events)
        except StopIteration:
            self.is_read = True
        except (OSError, TranscriptError) as error:
            if is_of_machine(error):
                raise
            self.refuse(str(error))
        return taken


def opened(source: TranscriptSource, name: str, readers: Sequence[TranscriptReader] = READERS) -> SourceReader:
    """Begin to read a source in the format of that name, "auto": as it looks."""
    file = RecordedFile(source.path, name=source.name)
    file.newer = tuple(one.path for one in source.newer)
    reading = SourceReader(source, file, iter(()))
    try:
        reader = ParquetPart(source.part, source.parts) if source.parts > 1 else reader_of(file, name, readers)
        reading.pieces = read_pieces(file, reader)
    except (OSError, TranscriptError) as error:
        if is_of_machine(error):
            raise
        reading.refuse(str(error))
    return reading
