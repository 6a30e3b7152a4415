"""A recorded file as a stream of JSON values. What cannot be read is put aside with its line and the reason."""

import codecs
import io
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

from lcm.encoding import well_formed
from lcm.errors import TranscriptError
from lcm.files import is_below
from lcm.given import PACKED_ENDINGS, opened, opened_as_is, packed_bytes_taken
from lcm.transcript.json_scanner import JsonError, Member, members, parse

MAX_LINE_BYTES = 16 * 2**20
"""A longer line of JSONL is put aside."""

_HEAD_LINES, _HEAD_ELEMENTS = 50, 3
_HEAD_BYTES = 2**20
_CHUNK_BYTES = 2**18

Shape = Literal["lines", "document"]
_Item = TypeVar("_Item")


class QuarantinedLines(NamedTuple):
    """Lines of a file that were not taken in; the file still holds them."""

    path: Path
    line: int
    last_line: int | None
    """None = to the end of the file."""
    reason: str

    def __str__(self) -> str:
        until = "" if self.last_line == self.line else f"-{self.last_line or 'end'}"
        return well_formed(f"{self.path}:{self.line}{until}: {self.reason}")


class RecordedFile:
    """One file, plain or packed by gzip or zstd, read from the beginning as often as asked and never whole.

    It is either JSONL (`lines`: a value a line) or one JSON value over several lines (`document`).
    """

    def __init__(self, path: Path, *, strict: bool = False, name: str | None = None) -> None:
        """Open nothing yet.

        Args:
            path: the file.
            strict: raise at what cannot be read instead of putting it aside.
            name: what names a conversation whose record does not; None = the file's name without its ending.
        """
        self.path = path
        self.strict = strict
        self.name = well_formed(name or without_ending(path))
        self.quarantine: list[QuarantinedLines] = []
        self.doubts: list[str] = []
        """Why it may not be what it was read as; each names the file."""
        self.copies = 0
        """Messages that stand in what was read before."""
        self.is_silent = False
        """Nothing is said in it."""
        self.is_long = False
        """One of its first values is too long to be read, so that nothing may be known of its format."""
        self.read_along: list[Path] = []
        """Other files that its reader read with it."""
        self.newer: tuple[Path, ...] = ()
        """Newer states of the session in it, in files of their own: what they hold is not read again."""
        self.refusal: str | None = None
        """Why it is passed over though it can be read, naming the file: newer states hold all that is said in it."""
        self.origins: Mapping[str, Path] = {}
        """The sessions that the one in it was forked from, each with its file: what they say is told again at its
        beginning."""
        self.place: tuple[Path, int] | None = None
        """File and line of the record that is being read."""
        self.bytes_read = 0
        """By all readings of the file so far, unpacked."""
        self._stream: io.BufferedReader | None = None

    @property
    def size_read(self) -> int:
        """So much of the file's size as was read, as far as that is known: no more than its size."""
        taken = None if self._stream is None else packed_bytes_taken(self._stream)
        return min(self.bytes_read if taken is None else taken, self.path.stat().st_size)

    def put_aside(self, line: int, reason: str, *, to_end: bool = False) -> None:
        """Keep account of a line that cannot be read, or of all from it on.

        Raises:
            TranscriptError: naming file and line, if the file is read strictly.
        """
        quarantined = QuarantinedLines(self.path, line, None if to_end else line, reason)
        if self.strict:
            raise TranscriptError(str(quarantined))
        self.quarantine.append(quarantined)

    def mentions(self, text: bytes) -> bool:
        """Whether a line of JSONL holds the text, as it is spelt in the file."""
        return any(text in line for _, line in RecordedFile(self.path).lines())

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Each line of JSONL as it stands, with its number; a line that cannot be read is put aside."""
        number = 0
        with self._reading(), self._opened() as stream:
            while True:
                number += 1
                try:
                    line = stream.readline(MAX_LINE_BYTES)
                    is_cut = len(line) == MAX_LINE_BYTES and not line.endswith(b"\n")
                    rest = line
                    while is_cut and rest and not rest.endswith(b"\n"):
                        rest = stream.readline(MAX_LINE_BYTES)
                except OSError as error:
                    self.put_aside(number, f"cannot be read: {error}", to_end=True)
                    return
                if not line:
                    return
                self.bytes_read += len(line)
                if is_cut:
                    self.put_aside(number, f"a line of more than {MAX_LINE_BYTES // 2**20} MiB")
                else:
                    yield number, line

    def along(self, path: Path) -> "RecordedFile":
        """Another file that is read with this one: what cannot be read of it is put aside here."""
        other = RecordedFile(path, strict=self.strict)
        other.quarantine, other.read_along = self.quarantine, self.read_along
        self.read_along.append(path)
        return other

    def reading_along(
        self, paths: Iterable[Path], read: "Callable[[RecordedFile], Iterable[_Item]]"
    ) -> Iterator[_Item]:
        """What is read of files beside this one, which counts their bytes and stands where they stand meanwhile."""
        for path in paths:
            other, counted = self.along(path), 0
            for item in read(other):
                self.bytes_read += other.bytes_read - counted  # who reads in pieces watches this file alone
                counted, self.place = other.bytes_read, other.place
                yield item

    @contextmanager
    def record(self, line: int, what: str = "") -> Iterator[None]:
        """Put the line aside if a value is wrong in the body; `what` names the part of the line that is meant."""
        self.place = (self.path, line)
        try:
            yield
        except (TranscriptError, ValueError) as error:
            self.put_aside(line, f"{what}{error}")

    def values(self) -> Iterator[tuple[int, Any]]:
        """Each value with its line: those of JSONL, the elements of a JSON array, or the one other value."""
        if self.shape == "lines":
            yield from self._line_values()
            return
        whole: dict[str, Any] = {}
        for member in self.members():
            if member.key is None:
                yield member.line, member.value
            else:
                _put(whole, member)
        if whole:
            yield 1, whole

    def members(self) -> Iterator[Member]:
        """The outermost values of a document, in order; from where it stops being JSON it is put aside."""
        line = 1
        try:
            for member in members(self._text()):
                line = member.line
                if member.problem:
                    self.put_aside(line, member.problem)
                else:
                    yield member
        except (JsonError, UnicodeDecodeError, OSError) as error:
            told = f"not UTF-8 text: {error.reason}" if isinstance(error, UnicodeDecodeError) else error
            self.put_aside(line, f"after the last value that could be read: {told}", to_end=True)

    @cached_property
    def first(self) -> list[Any] | dict[str, Any]:
        """What formats are recognised by.

        Of JSONL and of an array the first values that can be read; of an object its members, long lists cut after
        a few elements.
        """
        if self.shape == "lines":
            return [value for value in map(_parsed, self._head_lines) if value is not None]
        found = self._first_members()
        return found or ({} if self._begins == b"{" else [])

    @property
    def heads(self) -> list[Any]:
        """The first values as a list: an object over many lines is the only one."""
        return [self.first] if isinstance(self.first, dict) else self.first

    @cached_property
    def shape(self) -> Shape:
        lines = self._head_lines
        if self._begins not in (b"[", b"{"):
            return "lines"
        first, others = _parsed(lines[0]), [_parsed(line) for line in lines[1:]]
        if first is not None:
            return "document" if isinstance(first, list) else "lines"
        # A line that was damaged has whole ones after it; the lines of a document are pieces.
        return "lines" if 2 * sum(isinstance(value, dict) for value in others) > len(others) else "document"

    @cached_property
    def magic(self) -> bytes:
        """The first four bytes of the file."""
        with self._reading(), opened_as_is(self.path) as stream:
            return stream.read(4)

    @cached_property
    def _begins(self) -> bytes:
        """The first byte that is not white space."""
        return self._head_lines[0].lstrip(b"\xef\xbb\xbf \t\r")[:1] if self._head_lines else b""

    @cached_property
    def _head_lines(self) -> list[bytes]:
        """The first lines that are not blank, as many as are soon read."""
        lines: list[bytes] = []
        with self._reading(), opened(self.path, TranscriptError) as stream:
            while len(lines) < _HEAD_LINES and sum(map(len, lines)) < _HEAD_BYTES:
                try:
                    line = stream.readline(MAX_LINE_BYTES)
                except OSError:
                    if not lines:
                        raise
                    break  # a torn file is read as far as it goes
                if not line:
                    break
                if line.strip():
                    lines.append(line)
        return lines

    def _line_values(self) -> Iterator[tuple[int, Any]]:
        for number, line in self.lines():
            if not line.strip():
                continue
            try:
                value = parse(line.decode("utf-8-sig" if number == 1 else "utf-8"))
            except JsonError as error:
                self.put_aside(number, str(error))
            except UnicodeDecodeError as error:
                self.put_aside(number, f"not UTF-8 text: {error.reason} (byte {error.start + 1})")
            else:
                yield number, value

    def _first_members(self) -> list[Any] | dict[str, Any]:
        """A few elements of an array; of an object its members, lists cut short. The value being read is read whole."""
        found: dict[str, Any] = {}
        elements: list[Any] = []
        begun_at = self.bytes_read
        try:
            for member in members(self._text()):
                if member.problem:
                    self.is_long = True
                    begun_at = self.bytes_read
                elif member.key is None:
                    elements.append(member.value)
                else:
                    _put(found, member, _HEAD_ELEMENTS)
                if len(elements) == _HEAD_ELEMENTS or self.bytes_read - begun_at > _HEAD_BYTES:
                    break
        except (JsonError, UnicodeDecodeError, OSError):
            pass  # what is wrong is told when the file is read
        return found or elements

    def _text(self) -> Iterator[str]:
        decoder = codecs.getincrementaldecoder("utf-8-sig")()
        with self._opened() as stream:
            while chunk := stream.read1(_CHUNK_BYTES):  # what was unpacked before a tear comes before the error
                self.bytes_read += len(chunk)
                try:
                    yield decoder.decode(chunk)
                except UnicodeDecodeError as error:
                    yield error.object[: error.start].decode()
                    raise
        yield decoder.decode(b"", final=True)

    def _opened(self) -> io.BufferedReader:
        self._stream = opened(self.path, TranscriptError)
        return self._stream

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except OSError as err:
            raise TranscriptError(f"{self.path}: cannot be read: {err}") from err


def without_ending(path: Path) -> str:
    """The file's name without its ending, that of what packed it apart."""
    return path.with_suffix("").stem if path.suffix in PACKED_ENDINGS else path.stem


def _parsed(line: bytes) -> Any:
    """The line's value; None where it is not JSON."""
    try:
        return parse(line.decode("utf-8-sig"))
    except (JsonError, UnicodeDecodeError):
        return None


def _put(found: dict[str, Any], member: Member, most: int = sys.maxsize) -> None:
    """Take in a member of an object: an element of a list, of which so many are kept, or the value under a key."""
    if not member.is_element:
        found[str(member.key)] = member.value
        return
    held = found.get(str(member.key))
    if not isinstance(held, list):  # the key may have had another value before
        held = found[str(member.key)] = []
    if len(held) < most:
        held.append(member.value)


def files_within(folder: Path, paths: Iterable[Path]) -> list[Path]:
    """Those that are files, and that no link leads out of the folder."""
    return [path for path in paths if path.is_file() and is_below(path.resolve(), [folder.resolve()])]
