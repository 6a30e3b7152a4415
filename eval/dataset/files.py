"""Files of a dataset as people download them: found by their shape, told apart by their digest, read as records.

A loader asks for a file of a shape, `self.find(SHAPE)`. What it finds is a file of a release that the card names, or
an unknown one, which is taken too and told in the notes of the run. Each record has its place: what is missing or of a
wrong kind is told by file, record and key.
"""

import ast
import csv
import json
import re
from codecs import BOM_UTF8
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from io import BufferedReader
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar, cast

from eval.dataset.card import Card, PinnedFile, Release, dataset_digest, folder
from eval.dataset.dataset import Dataset, Draft
from eval.download import PARTIAL
from lcm.derived import sum_of
from lcm.encoding import well_formed
from lcm.errors import DatasetError
from lcm.given import files_below, opened, read_whole

Value = TypeVar("Value")

_KINDS: Mapping[type, str] = {str: "text", int: "a whole number", list: "a list", dict: "an object"}
_DIGITS = 18
_SHOWN = 60  # characters of a wrong value
_HEAD = 1 << 16
_NAMED = 12  # known names in a message
_ARRAY = re.compile(r'\s*\[\s*\{\s*"((?:[^"\\]|\\.)*)"')
_LINES = re.compile(r'\s*\{\s*"((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True, slots=True)
class Shape:
    """What a file must look like; enough to tell it from others without reading it whole."""

    words: str
    """After "expected": "a JSON array of objects that begin with question_id"."""
    is_held_by: Callable[[Path], bool]


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file of a dataset, and what it is."""

    path: Path
    pin: PinnedFile
    """The release's own; of an unknown file its name and its digest."""
    release: Release | None
    """None: its digest is of no release that the card names."""


@dataclass(frozen=True, slots=True)
class Published:
    """The settings of every loader of published files: where these are, what they may be, what is taken of them."""

    directory: str | None = None
    """None: the dataset's folder in `LCM_DATASETS_DIR`."""
    pinned: bool = False
    """Refuse a file of no known release, instead of taking it and saying so."""
    only: Sequence[str] | None = None
    """The workspaces that are taken, by name; None: all."""

    card: ClassVar[Card]

    def __post_init__(self) -> None:
        is_list = isinstance(self.only, Sequence) and not isinstance(self.only, str)
        if self.only is not None and not (is_list and self.only and all(isinstance(name, str) for name in self.only)):
            raise ValueError(f"only must be null or a list of names, got {self.only!r}")

    def identified(self, path: Path) -> FoundFile:
        return identified(self.card, path, pinned=self.pinned)

    def takes(self, name: str) -> bool:
        """Whether `only` leaves this workspace in."""
        return self.only is None or name in self.only

    def check_part(self, known: Collection[str], where: object) -> None:
        """Refuse names of `only` that are not among those that there are, in order, at a place for the message."""
        if unknown := [name for name in self.only or () if name not in known]:
            names = list(known)
            more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
            raise DatasetError(
                f"dataset.only names {unknown[0]!r}, which {where} does not hold; "
                f"it holds {', '.join(names[:_NAMED])}{more}"
            )

    def dataset(
        self, draft: Draft, protocol: str, found: Sequence[FoundFile], pins: Sequence[PinnedFile] = (), **told: Any
    ) -> Dataset:
        """The dataset that a draft of some files comes to; its protocol tells of the part, its notes of the files.

        Args:
            pins: the files that are digested, if they are not those that the notes name.
            told: further notes, and other fields of the dataset.
        """
        protocol += "" if self.only is None else f" only={','.join(sorted(self.only))}"
        digest = dataset_digest(pins or [file.pin for file in found], protocol)
        notes = (*notes_of(*found), *told.pop("notes", ()))
        return draft.dataset(self.card.name, protocol, digest, notes, **told)


@dataclass(frozen=True, slots=True)
class PublishedFile(Published):
    """The settings of a loader of one published file."""

    file: str | None = None
    """Its path below the folder, or an absolute one; None: the only file of the dataset there."""

    def find(self, shape: Shape) -> FoundFile:
        return find_file(self.card, shape, self.directory, self.file, pinned=self.pinned)


def json_records(container: Literal["array", "lines"], first_keys: Collection[str], any_key: Collection[str]) -> Shape:
    """Records of JSON, plain or packed by gzip: one array of objects, or an object a line.

    The first object begins with one of `first_keys`; one of `any_key`, if there are any, stands near the beginning of
    the file at any depth.
    """
    pattern = _ARRAY if container == "array" else _LINES
    inner = re.compile(f'"(?:{"|".join(map(re.escape, any_key))})"\\s*:')

    def is_held_by(path: Path) -> bool:
        text = head(path)
        begun = pattern.match(text)
        return begun is not None and begun[1] in first_keys and (not any_key or inner.search(text) is not None)

    kind = "a JSON array of objects" if container == "array" else "JSON lines, each an object"
    more = f", with {' or '.join(any_key)} in them" if any_key else ""
    return Shape(f"{kind} that begin with {' or '.join(first_keys)}{more}", is_held_by)


def csv_table(*columns: str) -> Shape:
    """A CSV file, plain or compressed by gzip, with a header that has at least these columns."""

    def is_held_by(path: Path) -> bool:
        header = head(path).partition("\n")[0].rstrip("\r").split(",")
        return set(columns) <= {name.strip('"') for name in header}

    return Shape(f"CSV with the columns {', '.join(columns)}", is_held_by)


def any_of(*shapes: Shape) -> Shape:
    """A file of one of the shapes."""
    words = ", or ".join(shape.words for shape in shapes)
    return Shape(words, lambda path: any(shape.is_held_by(path) for shape in shapes))


def head(path: Path) -> str:
    """How a text file begins, unpacked where it is compressed by gzip; what is no text is told by replacement marks."""
    try:
        with opened(path, DatasetError) as file:
            begun = file.read(_HEAD)
    except OSError:
        return ""
    return begun.decode("utf-8-sig", errors="replace")


def files_of(directory: Path) -> Iterator[Path]:
    """All files below a folder by path, hidden ones and unfinished downloads left out."""
    for path in files_below(directory):
        is_hidden = any(name.startswith(".") for name in path.relative_to(directory).parts)
        if not is_hidden and path.suffix != PARTIAL:
            yield path


def find_file(
    card: Card, shape: Shape, directory: str | None = None, file: str | None = None, *, pinned: bool = False
) -> FoundFile:
    """The one file of a shape in a dataset's `folder`, or the one that is named, identified.

    Raises:
        DatasetError: if there is none, there are several and `file` names none of them, or it is refused.
    """
    if file is not None:
        path = Path(file).expanduser()
        path = path if path.is_absolute() else folder(card, directory) / path
        if not path.is_file():
            raise DatasetError(f"dataset.file={file} means {path}, which is no file; name one that is there")
        if not shape.is_held_by(path):
            raise DatasetError(f"{path} is not of the shape of {card.name}: expected {shape.words}")
        return identified(card, path, pinned=pinned)
    place = folder(card, directory)
    found = [path for path in files_of(place) if shape.is_held_by(path)]
    if not found:
        raise DatasetError(
            f"{place} holds no file of {card.name}: expected {shape.words}; `lcm datasets {card.name}` tells how to "
            "get one"
        )
    if len(found) > 1:
        names = ", ".join(str(path.relative_to(place)) for path in found)
        raise DatasetError(
            f"{place} holds {len(found)} files of {card.name}: name one, dataset.file={found[0].relative_to(place)} "
            f"(there are {names})"
        )
    return identified(card, found[0], pinned=pinned)


def identified(card: Card, path: Path, *, pinned: bool = False) -> FoundFile:
    """Tell the release of a file by its digest alone, for people rename what they download.

    Raises:
        DatasetError: with all digests, where it is of no known release and `pinned` asks for one.
    """
    digest = sum_of(path)
    known = [(release, pin) for release in card.releases for pin in release.files]
    for release, pin in known:
        if pin.sha256 == digest:
            return FoundFile(path, pin, release)
    if pinned:
        named = [(release, pin) for release, pin in known if Path(pin.path).name == path.name] or known
        expected = ", ".join(f"{pin.sha256} ({release.name})" for release, pin in named[:_NAMED])
        raise DatasetError(
            f"{path} is not the pinned file: sha256 is {digest}, expected {expected}; get the file again, or take it "
            "as it is with dataset.pinned=false"
        )
    return FoundFile(path, PinnedFile(path.name, digest, path.stat().st_size), None)


def notes_of(*found: FoundFile) -> tuple[str, ...]:
    """What a run must say of files that are read together."""
    unknown = [file for file in found if file.release is None]
    known = dict.fromkeys(file.release for file in found if file.release is not None and file.release.is_told)
    if len(found) == 1:
        name = found[0].path.name
        taken = [f"{name} is no known release, taken as it is (sha256 {file.pin.sha256})" for file in unknown]
        return (*(f"{name} is release {release.name}: {release.title}" for release in known), *taken)
    n_files = f"{len(unknown)} of {len(found)} files are of no known release"
    taken = [f"{n_files}, taken as they are (the first is {file.path})" for file in unknown[:1]]
    return (*(f"the files are of release {release.name}: {release.title}" for release in known), *taken)


@dataclass(frozen=True, slots=True)
class Record:
    """An object of a file."""

    place: str
    """Where it stands: `val.jsonl: record 3`, `chat.json: record 1: turns[4]`."""
    fields: Mapping[str, Any]

    def get(self, key: str, kind: type[Value]) -> Value:
        """The value of a key that must be there, as `str`, `int`, `list` or `dict`."""
        if key not in self.fields:
            raise self.wrong(key, "is missing")
        return self.checked(key, self.fields[key], kind)

    def find(self, key: str, kind: type[Value]) -> Value | None:
        """The value of a key, or None where the key is missing or null."""
        value = self.fields.get(key)
        return None if value is None else self.checked(key, value, kind)

    def find_words(self, key: str) -> str | None:
        """A text, or a whole number as it is written; None where the key is missing or null."""
        value = self.fields.get(key)
        return None if value is None else self._words(key, value)

    def each_words(self, key: str) -> list[str]:
        """The texts and whole numbers that a list holds, or the one that stands alone; none where the key is missing or
        null."""
        value = self.fields.get(key)
        if isinstance(value, list):
            return [self._words(f"{key}[{n}]", one) for n, one in enumerate(value)]
        return [] if value is None else [self._words(key, value)]

    def _words(self, key: str, value: object) -> str:
        is_number = isinstance(value, int) and not isinstance(value, bool)
        return str(value) if is_number else self.checked(key, value, str)

    def inner(self, key: str) -> "Record":
        """The object that stands under a key that must be there."""
        return Record(f"{self.place}: {key}", self.get(key, dict))

    def each(self, key: str) -> Iterator["Record"]:
        """The objects that a list holds."""
        for index, value in enumerate(self.get(key, list)):
            yield Record(f"{self.place}: {key}[{index}]", self.checked(f"{key}[{index}]", value, dict))

    def texts(self, key: str) -> list[str]:
        """The texts that a list holds."""
        return [self.checked(f"{key}[{n}]", value, str) for n, value in enumerate(self.get(key, list))]

    def instant(self, key: str, text: str, form: str, such: str) -> datetime:
        """The time that a text of a key names; no published dataset names a zone, so in UTC.

        Args:
            form: as of `strptime`.
            such: what it must be, for the message.
        """
        try:
            return datetime.strptime(text, form).replace(tzinfo=UTC)
        except ValueError as error:
            raise self.wrong(key, f"must be {such}, got {text!r}") from error

    def literal(self, key: str, kind: str) -> Any:
        """The value that a text spells in Python, of a kind for the message."""
        try:
            return ast.literal_eval(self.get(key, str))
        except (ValueError, SyntaxError, MemoryError, RecursionError) as error:
            raise self.wrong(key, f"is no Python {kind} ({error})") from error

    def checked(self, key: str, value: object, kind: type[Value]) -> Value:
        """The value, if it is of that kind; a truth value is no number, and half a surrogate pair becomes U+FFFD."""
        if isinstance(value, kind) and not isinstance(value, bool):
            return cast(Value, well_formed(value)) if isinstance(value, str) else value
        raise self.wrong(key, f"must be {_KINDS[kind]}, got {_shown(value)}")

    def wrong(self, key: str, what: str) -> DatasetError:
        """What is said of a value that cannot be taken."""
        return DatasetError(f"{self.place}: {key!r} {what}; the file is damaged, or of another form")


def json_array(path: Path) -> Iterator[Record]:
    """The objects of a file that is one JSON array, plain or packed by gzip, read at once; else DatasetError."""
    values = json_value(path)
    if not isinstance(values, list):
        raise DatasetError(f"{path}: must be an array of records, got {_shown(values)}; the file is of another form")
    return _records(values, path.name)


def json_array_stream(path: Path) -> Iterator[Record]:
    """The objects of a file that is one JSON array, one at a time, however long it is; DatasetError as `json_array`."""
    import ijson  # needed by files that are too long to be read at once, and by nothing else

    with _reading(path) as file:
        if file.peek(len(BOM_UTF8)).startswith(BOM_UTF8):
            file.read(len(BOM_UTF8))
        values = ijson.items(file, "item", use_float=True)
        yield from _records(values, path.name, "JSON", (ijson.JSONError, UnicodeDecodeError))


def json_lines(path: Path, name: str | None = None) -> Iterator[Record]:
    """The objects of a file of JSON lines, which records call by a name; blank lines are passed over."""
    name = name or path.name
    lines = enumerate((line for line in unpacked_lines(path) if line.strip()), start=1)
    return _records((parsed(line, f"{name}: record {number}") for number, line in lines), name)


def csv_rows(path: Path, columns: Sequence[str]) -> Iterator[Record]:
    """The rows of a CSV file with a header that has at least these columns; DatasetError where a row has other ones."""

    def rows() -> Iterator[dict[str, str]]:
        found = csv.DictReader(text_lines(path), strict=True)
        if missing := [column for column in columns if column not in (found.fieldnames or ())]:
            raise DatasetError(f"{path.name}: has no column {missing[0]!r}; the file is empty, or of another form")
        yield from found

    for record in _records(rows(), path.name, "CSV", (csv.Error,)):
        short = [column for column in columns if record.fields[column] is None]
        if short or None in record.fields:
            raise record.wrong(short[0] if short else "a column", "is missing" if short else "is one too many")
        yield record


def _records(
    values: Iterable[Any], name: str, kind: str = "JSON", damage: tuple[type[Exception], ...] = ()
) -> Iterator[Record]:
    """Records of values, each with its place; `damage` is what reading them raises where a file is none of its kind."""
    number = 0
    try:
        for number, value in enumerate(values, start=1):
            place = f"{name}: record {number}"
            if not isinstance(value, dict):
                raise DatasetError(f"{place}: must be an object, got {_shown(value)}; the file is of another form")
            yield Record(place, value)
    except damage as err:
        told = str(err).splitlines()[0]
        raise DatasetError(
            f"{name}: is not {kind} after record {number} ({told}); the file is damaged, or was cut off"
        ) from err
    if not number:
        raise DatasetError(f"{name}: holds no record; get the file again")


def json_value(path: Path) -> Any:
    """What a file holds that is one JSON value, plain or packed by gzip."""
    try:
        content = read_whole(path, DatasetError)
    except OSError as err:
        raise _unreadable(path, err) from err
    return parsed(content, str(path))


def parsed(content: bytes, path: str) -> Any:
    """The one JSON value that some content is; DatasetError where it is none."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as err:
        raise DatasetError(f"{path}: is not JSON ({err}); the file is damaged, or of another form") from err


def unpacked_lines(path: Path) -> Iterator[bytes]:
    """The lines of a file, one at a time, unpacked where it is compressed by gzip; DatasetError if it is damaged."""
    with _reading(path) as file:
        yield from file


def text_lines(path: Path) -> Iterator[str]:
    """The lines of a text file in UTF-8, as `unpacked_lines`."""
    for number, line in enumerate(unpacked_lines(path), start=1):
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as err:
            raise DatasetError(f"{path}: line {number}: is not UTF-8 ({err}); write the file in UTF-8") from err


@contextmanager
def _reading(path: Path) -> Iterator[BufferedReader]:
    try:
        with opened(path, DatasetError) as file:
            yield file
    except OSError as err:
        raise _unreadable(path, err) from err


def _unreadable(path: Path, error: Exception) -> DatasetError:
    return DatasetError(f"{path}: cannot be read ({error}); get the file again")


def whole_number(text: str) -> int | None:
    """The number that digits spell; None where it is something else, or has more digits than anything counts."""
    return int(text) if len(text) <= _DIGITS and text.isdecimal() else None


def _shown(value: object) -> str:
    text = "null" if value is None else repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
