"""Records of files, each with its place: what is missing or of a wrong kind is told by file, record and key."""

import csv
import json
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

from lcm.encoding import well_formed
from lcm.errors import DatasetError
from lcm.given import opened, read_whole

Value = TypeVar("Value")

_NAMES: Mapping[type, str] = {
    str: "text",
    int: "a whole number",
    list: "a list",
    dict: "an object",
}
_DIGITS = 18
_SHOWN = 60  # characters of a wrong value


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

    def each(self, key: str) -> Iterator["Record"]:
        """The objects that a list holds."""
        for index, value in enumerate(self.get(key, list)):
            yield Record(f"{self.place}: {key}[{index}]", self.checked(f"{key}[{index}]", value, dict))

    def texts(self, key: str) -> list[str]:
        """The texts that a list holds."""
        return [self.checked(f"{key}[{n}]", value, str) for n, value in enumerate(self.get(key, list))]

    def checked(self, key: str, value: object, kind: type[Value]) -> Value:
        """The value, if it is of that kind; a truth value is no number, and half a surrogate pair becomes U+FFFD."""
        if isinstance(value, kind) and not isinstance(value, bool):
            return cast(Value, well_formed(value)) if isinstance(value, str) else value
        raise self.wrong(key, f"must be {_NAMES[kind]}, got {_shown(value)}")

    def wrong(self, key: str, what: str) -> DatasetError:
        return DatasetError(f"{self.place}: {key!r} {what}; the file is damaged, or of another form")


def unreadable(path: Path, error: Exception) -> DatasetError:
    """What is said of a file that cannot be read."""
    return DatasetError(f"{path}: cannot be read ({error}); get the file again")


def parsed(content: bytes, path: str) -> Any:
    """A file that is one JSON value.

    Raises:
        DatasetError: if it is none.
    """
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as err:
        raise DatasetError(f"{path}: is not JSON ({err}); the file is damaged, or of another form") from err


def json_value(path: Path) -> Any:
    """What a file holds that is one JSON value, plain or packed by gzip.

    Raises:
        DatasetError: if it is none, or cannot be read.
    """
    try:
        content = read_whole(path, DatasetError)
    except OSError as err:
        raise unreadable(path, err) from err
    return parsed(content, str(path))


def json_array(path: Path) -> Iterator[Record]:
    """The objects of a file that is one JSON array, plain or packed by gzip.

    Raises:
        DatasetError: if it is none, holds something else, or nothing.
    """
    values = json_value(path)
    if not isinstance(values, list) or not values:
        raise DatasetError(f"{path}: must be an array of records, got {_shown(values)}; the file is of another form")
    for number, value in enumerate(values, start=1):
        place = f"{path.name}: record {number}"
        if not isinstance(value, dict):
            raise DatasetError(f"{place}: must be an object, got {_shown(value)}; the file is of another form")
        yield Record(place, value)


def json_array_stream(path: Path) -> Iterator[Record]:
    """The objects of a file that is one JSON array, one at a time, however long it is.

    Raises:
        DatasetError: if it is none, ends early, holds something else, or nothing.
    """
    import ijson  # needed by files that are too long to be read at once, and by nothing else

    number = 0
    with opened(path, DatasetError) as file:
        if file.peek(len(BOM_UTF8)).startswith(BOM_UTF8):
            file.read(len(BOM_UTF8))
        try:
            for number, value in enumerate(ijson.items(file, "item", use_float=True), start=1):
                place = f"{path.name}: record {number}"
                if not isinstance(value, dict):
                    raise DatasetError(f"{place}: must be an object, got {_shown(value)}; the file is of another form")
                yield Record(place, value)
        except (ijson.JSONError, UnicodeDecodeError) as err:
            told = str(err).splitlines()[0]
            raise DatasetError(
                f"{path.name}: is not JSON after record {number} ({told}); the file is damaged, or was cut off"
            ) from err
    if not number:
        raise DatasetError(f"{path.name}: holds no record; get the file again")


def json_lines(lines: Iterable[bytes], path: str) -> Iterator[Record]:
    """The objects of a file of JSON lines; blank lines are passed over.

    Raises:
        DatasetError: if a line is no object, or there is none.
    """
    number = 0
    for number, line in enumerate((line for line in lines if line.strip()), start=1):
        place = f"{path}: record {number}"
        value = parsed(line, place)
        if not isinstance(value, dict):
            raise DatasetError(f"{place}: must be an object, got {_shown(value)}; the file is of another form")
        yield Record(place, value)
    if not number:
        raise DatasetError(f"{path}: holds no record; get the file again")


def csv_rows(lines: Iterable[str], path: str, columns: Sequence[str]) -> Iterator[Record]:
    """The rows of a CSV file with a header that has at least these columns.

    Raises:
        DatasetError: if a column is missing, a row is of another length than the header, or there is no row.
    """
    rows = csv.DictReader(lines, strict=True)
    number = 0
    try:
        missing = [column for column in columns if column not in (rows.fieldnames or ())]
        if missing:
            raise DatasetError(f"{path}: has no column {missing[0]!r}; the file is empty, or of another form")
        for number, row in enumerate(rows, start=1):
            record = Record(f"{path}: record {number}", row)
            short = [column for column in columns if row[column] is None]
            if short or None in row:
                raise record.wrong(short[0] if short else "a column", "is missing" if short else "is one too many")
            yield record
    except csv.Error as err:
        raise DatasetError(f"{path}: record {number + 1}: is not CSV ({err}); the file is damaged") from err
    if not number:
        raise DatasetError(f"{path}: holds no record; get the file again")


def whole_number(text: str) -> int | None:
    """The number that digits spell; None where it is something else, or has more digits than anything counts."""
    return int(text) if len(text) <= _DIGITS and text.isdecimal() else None


def _shown(value: object) -> str:
    text = "null" if value is None else repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
