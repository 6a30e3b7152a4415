"""lcm ingest PATH ... into=FILE [format=NAME] [strict=true] [copies=all] [GROUP=CHOICE]

Take recorded transcripts, files or whole folders, into a store (into=memory.db) or into one Parquet file of messages
(into=messages.parquet). Formats are recognised by content, or named: chat, chatgpt, claude_ai, claude_code, cline,
codex, cursor, gemini, goose, langchain, openclaw, opencode, openhands, parquet, sharegpt, swe_agent, tau_bench.

A store takes each file as one transaction: all of it that can be read, or nothing. A file that has grown adds what is
new; a conversation that is stored with other words is left out and told, with exit code 2. A line that cannot be read
is put aside with its number and the reason and listed in FILE.quarantine.jsonl; strict=true refuses the file instead.
A file of a folder that is empty, of a kind that is known but not read, or whole JSON of an unknown one is passed over.
A file that is read and gives doubt (no message, no words, no instant, more than a tenth put aside) is told. Exit code 2
if any other, or one that was named, was not taken in, or none was; 1 if nothing is said in what was taken in.
What a session resumed, forked or archived wrote again is taken in once, in the order of the files, and kept as an event
where it stands again; copies=all takes each. Into Parquet goes everything or nothing. token_estimator and assembly say
what a message costs in a store, session which sessions are left out (session.ignore_patterns) and from where on a text
counts as a large file. Where sessions recorded how many tokens a model answered with, one line says how far the
estimator is off; token_estimator=recorded takes these numbers.
format=package.module.Class names a reader of your own; say trust=[package] with it."""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, get_args

from eval.experiment.experiment import Progress
from eval.table import Column, Row, Table, counted
from lcm.encoding import to_json, well_formed
from lcm.errors import LcmError, StoreError, TranscriptError
from lcm.faults import is_of_machine
from lcm.memory.session import MessagePreparer
from lcm.records.conversation import ROLES, Transcript
from lcm.store.store import Store
from lcm.transcript import reading as formats
from lcm.transcript.branches import is_branch
from lcm.transcript.folders import is_passed_over, recorded_files
from lcm.transcript.message_tokens import Usage
from lcm.transcript.parquet import write_parquet
from lcm.transcript.parts import tool_calls
from lcm.transcript.reader import TranscriptReader
from lcm.transcript.reading import READERS, Copies, CopiesRule, Holders
from lcm.transcript.recorded_file import RecordedFile
from pipelines.config import building, command_line
from pipelines.config.arguments import CommandArguments
from pipelines.config.command_line import Command
from pipelines.config.overrides import group_of
from pipelines.config.trust import component
from pipelines.views.progress import progress
from pipelines.views.terminal import kept, say, show, warn, warn_in_part

FORMATS = ", ".join(sorted(reader.name for reader in READERS))

NOTHING_SAID = "nothing is said in what was read: no message has words"

_OURS = ("into", "format", "strict", "copies")
_GROUPS = ("token_estimator", "session", "assembly")
_ENDINGS = (".db", ".sqlite", ".sqlite3", ".parquet")
_SHOWN = 20
_MIB = 2**20
_LARGE_BYTES = 4 * _MIB
"""A file from which so much goes into a store at once that it is not first written to a log."""


@dataclass(slots=True)
class _Counts:
    """What was read of one conversation."""

    roles: Counter[str] = field(default_factory=Counter)
    """How many messages of each."""
    tool_calls: int = 0
    events: int = 0
    usage: Usage = field(default_factory=Usage)
    """Of the messages whose session recorded their tokens."""


@dataclass(slots=True)
class _FileReport:
    """What became of one file."""

    file: RecordedFile
    format: str = ""
    conversations: dict[str, _Counts] = field(default_factory=dict)
    new: int = 0
    left_out: list[str] = field(default_factory=list)
    """Conversations that are stored with other words; each line names the file."""
    is_read: bool = False
    """To its end, or as far as it can be."""
    refused: str | None = None
    is_passed_over: bool = False
    """It was refused, and is nothing to miss."""

    def leave_out(self, conversation_id: str, reason: str) -> None:
        """Count nothing of a conversation that was read; a file of which nothing else was is refused."""
        del self.conversations[conversation_id]
        self.left_out.append(reason)
        if not self.conversations:
            self.refused = self.left_out.pop()

    def numbers(self, *, has_new: bool) -> dict[str, int]:
        """How much of everything it holds."""
        told = self.conversations.values()
        roles = sum((one.roles for one in told), Counter[str]())
        found: dict[str, int] = {
            "conversations": len(told),
            "messages": roles.total(),
            **{role: roles[role] for role in ROLES},
            "tool calls": sum(one.tool_calls for one in told),
            "events": sum(one.events for one in told),
            "copies": self.file.copies,
            "put aside": len(self.file.quarantine),
        }
        return {**found, "new": self.new} if has_new else found


@dataclass(frozen=True, slots=True)
class _Reading:
    """How each file is read."""

    format: str
    readers: Sequence[TranscriptReader]
    copies: Copies | None
    """The messages that were read so far; None = a copy is a message."""
    preparer: MessagePreparer

    def pieces(self, one: _FileReport, step: Callable[[], None]) -> Iterator[Transcript]:
        """What a file holds, counted in its report; nothing where no reader takes it."""
        try:
            reader = formats.reader_of(one.file, self.format, self.readers)
        except TranscriptError as error:
            one.refused = str(error)
            return
        one.format = reader.name
        for piece in formats.read_pieces(one.file, reader, copies=self.copies):
            counts = one.conversations.setdefault(piece.conversation_id, _Counts())
            used = self.preparer.usage(piece.messages, piece.events, counts.roles.total())
            counts.usage = counts.usage.plus(used)
            counts.roles.update(message.role for message in piece.messages)
            counts.tool_calls += sum(map(tool_calls, piece.messages))
            counts.events += len(piece.events)
            step()
            yield piece
        one.is_read = True
        if not one.conversations:
            one.refused = formats.nothing_in(one.file.path)


def main(arguments: Sequence[str]) -> int:
    """`lcm ingest PATH ... into=FILE [KEY=VALUE ...]`."""
    command = command_line.read(arguments, own=_OURS)
    paths = [Path(word) for word in command.words]
    into, name, strict, copies = _settings(command)
    name, readers = _readers(name)
    listing = into.with_name(f"{into.name}.quarantine.jsonl")
    written = [into.with_name(into.name + ending) for ending in ("", "-wal", "-shm", "-journal")]
    ours = {path.resolve() for path in (listing, *written)}
    files = [file for file in recorded_files(paths, strict=strict) if file.path.resolve() not in ours]
    if not files:
        raise LcmError("no file to take in: name transcripts, or folders that hold some")
    config = command.config
    rules, tokens = building.build(config, "session"), building.build(config, "token_estimator")
    preparer = MessagePreparer(rules, tokens, building.build(config, "assembly").rendered)
    reading = _Reading(name, readers, copies, preparer)
    is_new, is_store, earlier = not into.exists(), into.suffix != ".parquet", list[dict[str, Any]]()
    if is_store and not is_new and listing.exists():
        earlier = [entry for _, entry in RecordedFile(listing, strict=True).values()]
    with progress() as show:
        taken = (_to_store if is_store else _to_parquet)(files, reading, into, show)
    for one in taken:
        one.is_passed_over = one.refused is not None and is_passed_over(one.file, paths)
    read = [one for one in taken if one.refused is None]
    if read:
        _show(read, has_new=is_store)
    _tell_usage([told.usage for one in read for told in one.conversations.values()])
    _list([one for one in taken if one.is_read and not one.is_passed_over], earlier, listing)
    warn_in_part("doubtful", formats.in_few_lines([doubt for one in taken if one.is_read for doubt in one.file.doubts]))
    warn_in_part("left out", [reason for one in taken for reason in one.left_out])
    passed_over = [one.refused for one in taken if one.refused and one.is_passed_over]
    warn_in_part("passed over", list(map(formats.without_formats, passed_over)))
    for one in taken:
        if one.refused and not one.is_passed_over:
            warn(f"not taken in: {one.refused}")
    if all(one.refused for one in taken):
        if is_new:
            for path in written:
                path.unlink(missing_ok=True)
        raise LcmError(f"nothing was taken in; lcm reads: {FORMATS}")
    kept(into)
    if all(one.refused or one.file.is_silent for one in taken):
        warn(NOTHING_SAID)
        return 1
    return 2 if any(one.left_out or (one.refused and not one.is_passed_over) for one in taken) else 0


def _settings(command: Command) -> tuple[Path, str, bool, Copies | None]:
    """The command's own; what is left belongs to the components."""
    own = {"into": "", "format": "auto", "copies": "once", **command.own}
    into, name, copies = (own[key] for key in ("into", "format", "copies"))
    for override in command.overrides:
        if group_of(override) not in _GROUPS:
            key = override.partition("=")[0]
            raise LcmError(f"no such key: {key!r}; choose from: {', '.join((*_OURS, *_GROUPS))}")
    if not into:
        raise LcmError("into=FILE is missing: a store (into=memory.db) or a Parquet file (into=messages.parquet)")
    if Path(into).suffix not in _ENDINGS:
        raise LcmError(f"into must end in one of {', '.join(_ENDINGS)}, got {into!r}")
    if Path(into).suffix == ".parquet" and Path(into).exists():
        raise LcmError(f"into={into} exists, and a Parquet file cannot grow: name another, or remove it first")
    is_strict = CommandArguments((), dict(command.own), ()).flag("strict")
    if copies not in get_args(CopiesRule):
        raise LcmError(f"copies must be one of {', '.join(get_args(CopiesRule))}, got {copies!r}")
    return Path(into), name, is_strict, Copies() if copies == "once" else None


def _readers(name: str) -> tuple[str, Sequence[TranscriptReader]]:
    """The format's name and the readers to choose from: the known ones, or the one whose class is named."""
    if name not in ("auto", *FORMATS.split(", ")) and "." not in name:
        raise LcmError(f"lcm does not read the transcript format {name!r}; choose one of: auto, {FORMATS}")
    if "." not in name:
        return name, READERS
    made = component(name)
    try:
        reader: TranscriptReader = made()
    except TypeError as error:
        raise LcmError(f"format={name}: a reader is made without arguments: {error}") from error
    if lacking := [part for part in ("name", "detects", "read") if not hasattr(reader, part)]:
        raise LcmError(f"format={name} is no TranscriptReader: it lacks {', '.join(lacking)}")
    return reader.name, (reader,)


def _to_store(files: Sequence[RecordedFile], reading: _Reading, into: Path, show: Progress) -> list[_FileReport]:
    taken = []
    holders = Holders()
    with Store(into) as store:
        for one, step in _each(files, show):
            taken.append(one)
            try:
                pieces = _prepared(reading.pieces(one, step), reading.preparer)
                changed: dict[str, str] = {}
                with store.bulk() if one.file.path.stat().st_size > _LARGE_BYTES else nullcontext():
                    tokens, rendered = reading.preparer.token_estimator, reading.preparer.rendered
                    one.new = store.ingest_pieces(pieces, tokens, rendered, changed)
            except (StoreError, TranscriptError) as error:
                if is_of_machine(error):
                    raise
                one.refused = str(error) if str(one.file.path) in str(error) else f"{one.file.path}: {error}"
                continue
            path = one.file.path
            first = {name: holders.is_first(name, path) for name in one.conversations}
            for name, reason in changed.items():  # it is stored with other words, of another file or of this one before
                one.leave_out(name, f"{path}: {reason}" if first[name] else holders.second(name, path))
    return taken


def _prepared(pieces: Iterable[Transcript], preparer: MessagePreparer) -> Iterator[Transcript]:
    """The pieces of sessions that are stored, their large texts noted."""
    for piece in pieces:
        if preparer.rules.writes(piece.conversation_id, piece.conversation_id):
            yield replace(piece, messages=tuple(map(preparer.prepared, piece.messages)))


def _to_parquet(files: Sequence[RecordedFile], reading: _Reading, into: Path, show: Progress) -> list[_FileReport]:
    taken: list[_FileReport] = []
    holders = Holders()

    def pieces() -> Iterator[Transcript]:
        for one, step in _each(files, show):
            taken.append(one)
            for piece in reading.pieces(one, step):
                if not holders.is_first(piece.conversation_id, one.file.path):
                    raise TranscriptError(holders.second(piece.conversation_id, one.file.path))
                yield piece

    write_parquet(pieces(), into)
    return taken


def _each(files: Sequence[RecordedFile], show: Progress) -> Iterator[tuple[_FileReport, Callable[[], None]]]:
    """Each file with what tells its progress, in MiB of all files."""
    sizes = [file.path.stat().st_size for file in files]
    total = max(1, sum(sizes) // _MIB)
    for number, file in enumerate(files):

        def step(file: RecordedFile = file, number: int = number) -> None:
            show("reading, MiB", (sum(sizes[:number]) + file.size_read) // _MIB, total)

        yield _FileReport(file), step
    show("reading, MiB", total, total)


def _show(rows: Sequence[_FileReport], *, has_new: bool) -> None:
    """What went in."""
    folder = Path(os.path.commonpath([one.file.path.absolute().parent for one in rows]))
    numbers = [one.numbers(has_new=has_new) for one in rows]
    titles = [title for title in numbers[0] if title != "copies" or any(row[title] for row in numbers)]
    names = [well_formed(str(one.file.path.absolute().relative_to(folder))) for one in rows]
    told: list[Row] = [
        (name, one.format, *(row[title] for title in titles))
        for name, one, row in zip(names, rows, numbers, strict=True)
    ]
    if len(rows) > 1:
        told.append((f"{len(rows)} files", "", *(sum(row[title] for row in numbers) for title in titles)))
    columns = (Column("format", "label"), *(Column(title, "number") for title in titles))
    caption = f"below {folder}:" if len(rows) > 1 else ""
    lacks = (ROLES, (*ROLES, "events", "conversations"))
    show(Table((Column("file", "label"), *columns), told, caption, lacks=lacks, lines=(len(rows),)))
    left = [
        told.roles.total()
        for one in rows
        for name, told in one.conversations.items()
        if is_branch(name, one.conversations)
    ]
    if left:
        say(f"branches that were left: {len(left):,}, with {counted(sum(left), 'message')}")


def _tell_usage(usages: Sequence[Usage]) -> None:
    """How far the estimator is off, where sessions recorded what they used."""
    messages, recorded, estimated = (sum(column) for column in zip(Usage(), *usages, strict=True))
    if messages:
        both = f"{recorded:,}; estimated: {estimated:,} ({estimated / recorded - 1:+.0%})"
        say(f"output tokens as recorded, of {messages:,} of the messages: {both}")


def _list(read: Sequence[_FileReport], earlier: Sequence[dict[str, Any]], listing: Path) -> None:
    """Tell what was put aside, and list it in place of what was put aside of the same files before."""
    aside = [line for one in read for line in one.file.quarantine]
    for line in aside[:_SHOWN]:
        warn(f"put aside: {line}")
    again = {str(path.resolve()) for one in read for path in (one.file.path, *one.file.read_along)}
    entries = [entry for entry in earlier if entry["path"] not in again]
    entries += [{**line._asdict(), "path": str(line.path.resolve())} for line in aside]
    if entries:
        listing.write_text("".join(f"{to_json(entry)}\n" for entry in entries), encoding="utf-8")
    else:
        listing.unlink(missing_ok=True)
    if aside:
        warn(f"{len(aside)} put aside in all: {listing}")
