"""Take recorded transcripts into a store, or into a Parquet file of messages."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.markup import escape
from rich.table import Table

from eval.experiment import Progress
from lcm.errors import LcmError, StoreError, TranscriptError
from lcm.protocols import TokenEstimator, TranscriptReader
from lcm.records import ROLES, Transcript
from lcm.store.store import Store
from lcm.transcript.parquet import write_parquet
from lcm.transcript.reading import READERS, read_pieces, reader_of, recorded_files
from lcm.transcript.recorded_file import RecordedFile
from pipelines import configuration
from pipelines.terminal import console, progress, warn

FORMATS = ", ".join(sorted(reader.name for reader in READERS))
HELP = f"""lcm ingest PATH ... into=FILE [format=NAME] [strict=true] [token_estimator=CHOICE]

Take recorded transcripts, files or whole folders, into a store (into=memory.db) or into one Parquet file of messages
(into=messages.parquet). Formats are recognised by content, or named: {FORMATS}.

A store takes each file as one transaction: all of it that can be read, or nothing. A file that has grown adds what is
new. A line that cannot be read is put aside with its number and the reason and listed in FILE.quarantine.jsonl;
strict=true refuses the file instead. A file of a folder that is no transcript is passed over. Exit code 2 if a
transcript was not taken in."""

_SHOWN = 20
_MIB = 2**20


@dataclass(slots=True)
class _Taken:
    """What became of one file."""

    file: RecordedFile
    format: str = ""
    conversations: set[str] = field(default_factory=set)
    roles: Counter[str] = field(default_factory=Counter)
    tool_calls: int = 0
    events: int = 0
    new: int = 0
    refused: str | None = None
    is_foreign: bool = False
    """No transcript of a format that is read."""

    def counted(self, pieces: Iterator[Transcript], step: Callable[[], None]) -> Iterator[Transcript]:
        """The pieces, counted as they pass."""
        for piece in pieces:
            self.conversations.add(piece.conversation_id)
            self.events += len(piece.events)
            for message in piece.messages:
                self.roles[message.role] += 1
                self.tool_calls += sum(
                    part.part_type == "tool" and part.tool_input is not None for part in message.parts
                )
            step()
            yield piece


def main(arguments: Sequence[str]) -> int:
    """`lcm ingest PATH ... into=FILE [KEY=VALUE ...]`."""
    if not arguments or {"-h", "--help"} & set(arguments):
        console().print(HELP, highlight=False, markup=False)
        return 0
    settings = dict(argument.split("=", 1) for argument in arguments if "=" in argument and not Path(argument).exists())
    paths = [Path(argument) for argument in arguments if "=" not in argument or Path(argument).exists()]
    into, name, strict = _settings(settings)
    files = recorded_files(paths, strict=strict)
    if not files:
        raise LcmError("no file to take in: name transcripts, or folders that hold some")
    overrides = [f"{key}={value}" for key, value in settings.items()]
    tokens: TokenEstimator = configuration.build(configuration.composed(overrides), "token_estimator")
    with progress() as show:
        if into.suffix == ".parquet":
            taken = _to_parquet(files, name, into, show)
        else:
            taken = _to_store(files, name, into, tokens, show)
    _show(taken, into)
    return 2 if any(one.refused and not (one.is_foreign and one.file.path not in paths) for one in taken) else 0


def _settings(settings: dict[str, str]) -> tuple[Path, str, bool]:
    """Take ours out of the settings; what is left belongs to the token estimator."""
    into, name, strict = settings.pop("into", ""), settings.pop("format", "auto"), settings.pop("strict", "false")
    if not into:
        raise LcmError("into=FILE is missing: a store (into=memory.db) or a Parquet file (into=messages.parquet)")
    if strict not in ("true", "false"):
        raise LcmError(f"strict must be true or false, got {strict!r}")
    for key in settings:
        if key.partition(".")[0] != "token_estimator":
            raise LcmError(f"no such key: {key!r}; choose from: into, format, strict, token_estimator")
    if name not in ("auto", *FORMATS.split(", ")):
        raise LcmError(f"lcm does not read the transcript format {name!r}; choose one of: auto, {FORMATS}")
    return Path(into), name, strict == "true"


def _to_store(
    files: Sequence[RecordedFile], name: str, into: Path, tokens: TokenEstimator, show: Progress
) -> list[_Taken]:
    taken = []
    with Store(into) as store:
        for one, step in _each(files, show):
            taken.append(one)
            if reader := _reader(one, name):
                try:
                    one.new = store.ingest_pieces(one.counted(read_pieces(one.file, reader), step), tokens)
                except (StoreError, TranscriptError) as error:
                    one.refused = str(error)
    return taken


def _to_parquet(files: Sequence[RecordedFile], name: str, into: Path, show: Progress) -> list[_Taken]:
    taken: list[_Taken] = []
    conversations: dict[str, Path] = {}

    def pieces() -> Iterator[Transcript]:
        for one, step in _each(files, show):
            taken.append(one)
            if reader := _reader(one, name):
                for piece in one.counted(read_pieces(one.file, reader), step):
                    other = conversations.setdefault(piece.conversation_id, one.file.path)
                    if other != one.file.path:
                        raise TranscriptError(
                            f"{one.file.path}: conversation {piece.conversation_id!r} is also in {other}; leave one out"
                        )
                    yield piece

    write_parquet(pieces(), into)
    return taken


def _reader(one: _Taken, name: str) -> TranscriptReader | None:
    try:
        reader = reader_of(one.file, name)
    except TranscriptError as error:
        one.refused, one.is_foreign = str(error), True
        return None
    one.format = reader.name
    return reader


def _each(files: Sequence[RecordedFile], show: Progress) -> Iterator[tuple[_Taken, Callable[[], None]]]:
    """Each file with what tells its progress, in MiB of all files."""
    sizes = [file.path.stat().st_size for file in files]
    total = max(1, sum(sizes) // _MIB)
    for number, file in enumerate(files):

        def step(file: RecordedFile = file, number: int = number) -> None:
            show("reading, MiB", (sum(sizes[:number]) + min(file.bytes_read, sizes[number])) // _MIB, total)

        yield _Taken(file), step
    show("reading, MiB", total, total)


def _show(taken: Sequence[_Taken], into: Path) -> None:
    out = console()
    table = Table("file", "format")
    for heading in ("conversations", "messages", *ROLES, "tool calls", "events", "put aside", "new"):
        table.add_column(heading, justify="right")
    for one in taken:
        if one.refused is None:
            numbers = [len(one.conversations), one.roles.total(), *(one.roles[role] for role in ROLES)]
            numbers += [one.tool_calls, one.events, len(one.file.quarantine), one.new]
            table.add_row(escape(str(one.file.path)), one.format, *map(str, numbers))
    if table.row_count:
        out.print(table, highlight=False)
    aside = [line for one in taken for line in one.file.quarantine if one.refused is None]
    for line in aside[:_SHOWN]:
        warn(f"put aside: {line}")
    listing = into.with_name(f"{into.name}.quarantine.jsonl")
    listing.unlink(missing_ok=True)
    if aside:
        listing.write_text(
            "".join(json.dumps({**line._asdict(), "path": str(line.path)}, ensure_ascii=False) + "\n" for line in aside)
        )
        warn(f"{len(aside)} put aside in all: {listing}")
    for one in taken:
        if one.refused is not None:
            warn(f"{'passed over' if one.is_foreign else 'not taken in'}: {one.refused}")
    out.print(f"Kept: {into}", highlight=False, markup=False)
