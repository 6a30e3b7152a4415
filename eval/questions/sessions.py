"""Recorded sessions, read from files and folders into workspaces."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from eval.mirror import local
from lcm.encoding import well_formed
from lcm.errors import DatasetError, TranscriptError
from lcm.given import opened_as_is
from lcm.records.conversation import Transcript
from lcm.transcript.folders import is_passed_over, recorded_files
from lcm.transcript.reading import (
    Copies,
    CopiesRule,
    Holders,
    in_few_lines,
    joined,
    nothing_in,
    read_pieces,
    reader_of,
    without_formats,
)
from lcm.transcript.recorded_file import RecordedFile, without_ending

WorkspaceRule = Literal["all", "folder", "file"]
"""What shares a workspace: all files, those of a folder, or the conversations of a file alone."""

_SHOWN = 5  # lines that were put aside, and files passed over, told one by one


@dataclass(frozen=True, slots=True)
class SessionFile:
    """A file of sessions as it was read."""

    path: Path
    name: str
    """What names its conversations where their records do not."""
    format: str
    workspace_id: str
    transcripts: tuple[Transcript, ...]
    read_along: tuple[Path, ...]
    """Other files that were read with it."""


@dataclass(frozen=True, slots=True)
class Sessions:
    """Recorded sessions in their workspaces; message ids are unique among them."""

    files: tuple[SessionFile, ...]
    sha256s: tuple[str, ...]
    """Of every file, in the order of reading."""
    notes: tuple[str, ...]
    """Lines that were put aside, files that were passed over, and what gives doubt of those that were read."""
    copies: Mapping[str, str] = field(default_factory=dict)
    """What would be a copy's message id, and its recorded id, by which the original is found."""

    @property
    def transcripts(self) -> tuple[Transcript, ...]:
        return tuple(transcript for file in self.files for transcript in file.transcripts)

    def protocol(self, rule: CopiesRule) -> str:
        """What a protocol says of copies, where there are some or all are kept."""
        return f" copies={rule}" if self.copies or rule == "all" else ""


def read_sessions(
    paths: Sequence[str],
    format: str,  # noqa: A002  # the word of the configuration
    strict: bool,
    workspace_id: Callable[[RecordedFile], str],
    copies: CopiesRule = "once",
) -> Sessions:
    """Read files, and every transcript in folders, into workspaces.

    Args:
        paths: of files and folders.
        format: `auto`, or the name of a transcript format.
        strict: refuse a file with a line that cannot be read, instead of putting the line aside.
        workspace_id: the workspace of each file.
        copies: `once` = of messages that stand again in a workspace the first is one, the others are events; `all`.

    Raises:
        DatasetError: if none is named, or none holds a transcript.
        TranscriptError: if a file that was named is no transcript.
    """
    if not paths:
        raise DatasetError("dataset.paths names no file: set it to files or folders, dataset.paths=[a.jsonl,sessions]")
    holders = Holders()
    files: list[SessionFile] = []
    digests, aside, passed_over, doubts = list[str](), list[str](), list[str](), list[str]()
    again, left_out = list[str](), list[str]()
    seen: dict[str, Copies] = {}
    named = [local(path) for path in paths]
    recorded = recorded_files(named, strict=strict)
    workspaces = {file.path: workspace_id(file) for file in recorded}
    for file in recorded:
        workspace = workspaces[file.path]
        file.origins = {name: path for name, path in file.origins.items() if workspaces[path] == workspace}
        try:
            reader = reader_of(file, format)
        except TranscriptError as error:
            if not is_passed_over(file, named):
                raise
            passed_over.append(without_formats(str(error)))
            continue
        known = seen.setdefault(workspace, Copies()) if copies == "once" else None
        read = joined(read_pieces(file, reader, workspace, known))
        if not read and is_passed_over(file, named):
            passed_over.append(nothing_in(file.path))
            continue
        kept = tuple(one for one in read if holders.is_first(one.conversation_id, file.path))
        left_out += [holders.second(one.conversation_id, file.path) for one in read if one not in kept]
        files.append(SessionFile(file.path, file.name, reader.name, workspace, kept, tuple(file.read_along)))
        aside += map(str, file.quarantine)
        doubts += file.doubts
        if file.copies:
            again.append(f"{file.path}: {file.copies:,} messages stand before it too (dataset.copies=all keeps them)")
        for path in (file.path, *file.read_along):
            with opened_as_is(path) as content:
                digests.append(hashlib.file_digest(content, "sha256").hexdigest())
    told = {
        "put aside": aside,
        "passed over": passed_over,
        "left out": left_out,
        "doubtful": in_few_lines(doubts),
        "copies": again,
    }
    notes = tuple(note for what, each in told.items() for note in _notes(what, each))
    if not any(transcript.messages for file in files for transcript in file.transcripts):
        holds = f"{paths[0]} holds" if len(paths) == 1 else f"{', '.join(paths):.300} hold"
        first = f" ({notes[0]:.300})" if notes else ""
        raise DatasetError(
            f"{holds} no transcript that lcm reads{first}; name recorded sessions, or folders that hold them "
            "(docs/transcripts.md lists the formats)"
        )
    copied = {copy: recorded for known in seen.values() for copy, recorded in known.ids.items()}
    return Sessions(tuple(files), tuple(digests), notes, copied)


def read_workspaces(
    paths: Sequence[str],
    format: str,  # noqa: A002  # the word of the configuration
    strict: bool,
    rule: WorkspaceRule,
    whole: str,
    copies: CopiesRule = "once",
) -> Sessions:
    """Read files and folders that something is asked about, as `read_sessions` does, into workspaces by a rule.

    Raises:
        DatasetError: as `read_sessions`.
    """
    return read_sessions(paths, format, strict, _workspace_names(paths, rule, whole), copies)


def _workspace_names(paths: Sequence[str], rule: WorkspaceRule, whole: str) -> Callable[[RecordedFile], str]:
    """How files are told to workspaces: by the shortest ends of their paths that tell them apart.

    Args:
        paths: of files and folders.
        rule: what shares a workspace.
        whole: the one workspace of all files.
    """
    if rule == "all":
        return lambda file: whole

    def place(path: Path) -> Path:
        return path.parent.resolve() if rule == "folder" else path.parent.resolve() / without_ending(path)

    places = {place(file.path) for file in recorded_files([local(path) for path in paths])}
    deepest = max((len(one.parts) for one in places), default=1)
    ends = (dict(_ends(places, length)) for length in range(1, deepest + 1))
    names = next((found for found in ends if len(set(found.values())) == len(places)), {})
    return lambda file: names[place(file.path)]


def _ends(places: set[Path], length: int) -> Iterator[tuple[Path, str]]:
    yield from ((place, well_formed("/".join(place.parts[-length:]))) for place in places)


def _notes(what: str, each: Sequence[str]) -> list[str]:
    more = [f"{what}: {len(each) - _SHOWN} more"] if len(each) > _SHOWN else []
    return [well_formed(f"{what}: {one}") for one in each[:_SHOWN]] + more
