"""Recorded sessions, read from files and folders into workspaces."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from eval.mirror import local
from lcm.derived import sum_of
from lcm.encoding import well_formed
from lcm.errors import DatasetError, TranscriptError
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
from lcm.transcript.recorded_file import without_ending

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

    @property
    def conversations(self) -> list[str]:
        return [one.conversation_id for one in self.transcripts]


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
    rule: WorkspaceRule,
    whole: str,
    copies: CopiesRule = "once",
) -> Sessions:
    """Read files, and every transcript in folders, into workspaces.

    Args:
        strict: refuse a file with a line that cannot be read, instead of putting the line aside.
        whole: the one workspace of all files, where the rule says so.
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
    workspaces = _workspaces([file.path for file in recorded], rule, whole)
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
        digests += map(sum_of, (file.path, *file.read_along))
    told = {"put aside": aside, "passed over": passed_over, "left out": left_out}
    told |= {"doubtful": in_few_lines(doubts), "copies": again}
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


def _workspaces(paths: Sequence[Path], rule: WorkspaceRule, whole: str) -> Mapping[Path, str]:
    """File -> its workspace, named by the shortest end of paths that tells it from the others."""
    if rule == "all":
        return dict.fromkeys(paths, whole)
    folders = {path: path.parent.resolve() for path in paths}
    named = folders if rule == "folder" else {path: folders[path] / without_ending(path) for path in paths}
    places = set(named.values())
    for length in range(1, max((len(one.parts) for one in places), default=1) + 1):
        ends = {place: well_formed("/".join(place.parts[-length:])) for place in places}
        if len(set(ends.values())) == len(places):
            return {path: ends[place] for path, place in named.items()}
    raise AssertionError("whole paths tell places apart")


def _notes(what: str, each: Sequence[str]) -> list[str]:
    more = [f"{what}: {len(each) - _SHOWN} more"] if len(each) > _SHOWN else []
    return [well_formed(f"{what}: {one}") for one in each[:_SHOWN]] + more
