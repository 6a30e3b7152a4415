"""The one door for recorded sessions: any format that a reader knows, recognised by content."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from lcm.errors import TranscriptError
from lcm.protocols import TranscriptReader
from lcm.records import Transcript
from lcm.transcript.chat import ChatReader
from lcm.transcript.openclaw import OpenClawReader

READERS: tuple[TranscriptReader, ...] = (OpenClawReader(), ChatReader())
"""Asked in this order; the first that recognises a file reads it."""


def read_transcripts(
    path: Path,
    format: str = "auto",  # noqa: A002  # the word that callers use
    workspace_id: str = "default",
    readers: Sequence[TranscriptReader] = READERS,
) -> list[Transcript]:
    """Read every conversation of a file, plain or gzip.

    Args:
        path: the file.
        format: the name of a reader; "auto" asks each of them.
        workspace_id: the haystack that the conversations belong to.
        readers: the formats that can be read.

    Raises:
        TranscriptError: if no reader has that name or recognises the file, or a line is not what its format says.
    """
    reader = _reader(path, format, readers)
    return [replace(transcript, workspace_id=workspace_id) for transcript in reader.read(path)]


def _reader(path: Path, name: str, readers: Sequence[TranscriptReader]) -> TranscriptReader:
    names = ", ".join(sorted(reader.name for reader in readers))
    if name == "auto":
        found = next((reader for reader in readers if reader.detects(path)), None)
        if found is None:
            raise TranscriptError(f"{path}: not a known transcript format; known are: {names}")
        return found
    found = next((reader for reader in readers if reader.name == name), None)
    if found is None:
        raise TranscriptError(f"unknown transcript format {name!r}; choose one of: auto, {names}")
    return found
