"""Questions files: JSONL, CSV and Parquet, read line by line and written whole.

What is wrong with a line is told with its place; a file with a wrong line gives no questions.
"""

import csv
import hashlib
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from eval.questions.question import ENDINGS, LISTS, LineError, Question, asks, is_id_made, is_question, question_of
from lcm import given_parquet
from lcm.encoding import to_json, well_formed
from lcm.errors import DatasetError
from lcm.files import written_whole
from lcm.given import opened_as_is, read_whole

MAX_LINE_BYTES = 2**20
"""A longer line holds no question."""

_HEAD_LINES = 50
_DELIMITERS = ",;\t"


class Problem(NamedTuple):
    """What is wrong with a line of a questions file."""

    path: Path
    line: int
    text: str

    def __str__(self) -> str:
        return well_formed(f"{self.path}:{self.line}: {self.text}")


@dataclass(frozen=True, slots=True)
class QuestionsFile:
    """A questions file as it was read."""

    path: Path
    sha256: str
    questions: tuple[Question, ...]
    problems: tuple[Problem, ...]
    """Lines that are no questions."""
    unused: tuple[str, ...]
    """Keys that say nothing to lcm."""


def looks_like_questions(path: Path) -> bool:
    """Whether a file holds questions rather than sessions, by its ending and its first lines."""
    if path.suffix not in ENDINGS or not path.is_file():
        return False
    if path.suffix == ".csv":
        return True  # no session is recorded so
    if path.suffix == ".parquet":
        try:
            return is_question(given_parquet.column_names(path))
        except given_parquet.UNREADABLE:
            return False
    with opened_as_is(path) as stream:
        head = stream.read(MAX_LINE_BYTES).splitlines()[:_HEAD_LINES]
    return any(is_question(record) for _, record in _of_jsonl(path, b"\n".join(head)) if isinstance(record, Mapping))


def refuse(problems: Sequence[Problem], *, has_nearest: bool = False) -> None:
    """Raise the first problem, and say how many there are, and whether a check shows messages that may be meant."""
    if problems:
        more = " (`lcm questions check` shows the nearest messages)" if has_nearest else ""
        if len(problems) > 1:
            more = f" (and {len(problems) - 1} more: `lcm questions check` shows them)"
        raise DatasetError(f"{problems[0]}{more}")


def read_file(path: Path) -> QuestionsFile:
    """Read a questions file, with all that is wrong in it; DatasetError where it cannot be read at all."""
    if path.suffix not in ENDINGS:
        raise DatasetError(f"{path}: a questions file ends in one of {', '.join(ENDINGS)}")
    try:
        content = read_whole(path, DatasetError)
    except OSError as error:
        raise DatasetError(f"{path}: cannot be read: {error.strerror}") from error
    read = {".jsonl": _of_jsonl, ".csv": _of_csv, ".parquet": _of_parquet}[path.suffix]
    questions: dict[str, Question] = {}
    problems: list[Problem] = []
    unused: dict[str, None] = {}
    for line, record in read(path, content):
        try:
            question, keys = _question(record, line, questions)
        except LineError as error:
            problems.append(Problem(path, line, str(error)))
        else:
            questions[question.question_id] = question
            unused |= dict.fromkeys(keys)
    if not questions and not problems:
        raise DatasetError(f"{path}: holds no question; write one a line, with question and evidence")
    sha256 = hashlib.sha256(content).hexdigest()
    return QuestionsFile(path, sha256, tuple(questions.values()), tuple(problems), tuple(unused))


def _question(record: object, line: int, others: Mapping[str, Question]) -> tuple[Question, list[str]]:
    if isinstance(record, LineError):
        raise record
    question, unused = question_of(record, line)
    if other := others.get(question.question_id):
        if is_id_made(question):
            again = f"the same question as line {other.line}"
            raise LineError(f"{again}; give one a question_id of its own, or leave it out")
        raise LineError(f"question_id {question.question_id!r} is also that of line {other.line}; rename one")
    return question, unused


def write_questions(questions: Sequence[Question], path: Path) -> None:
    """Write a questions file of the kind that its name ends in; reading it gives the questions back."""
    if path.suffix not in ENDINGS:
        raise DatasetError(f"{path}: a questions file ends in one of {', '.join(ENDINGS)}")
    records = [question.record() for question in questions]
    with written_whole(path) as stream:
        if path.suffix == ".jsonl":
            stream.write("".join(f"{to_json(record)}\n" for record in records).encode())
            return
        cells = [
            {key: value if isinstance(value, str) else to_json(value) for key, value in record.items()}
            for record in records
        ]
        names = list(dict.fromkeys(name for row in cells for name in row))
        if path.suffix == ".csv":
            text = io.StringIO(newline="")
            writer = csv.DictWriter(text, names)
            writer.writeheader()
            writer.writerows(cells)
            stream.write(text.getvalue().encode())
        else:
            pl.DataFrame(cells, schema=dict.fromkeys(names, pl.String)).write_parquet(stream)


def _of_jsonl(path: Path, content: bytes) -> Iterator[tuple[int, Any]]:
    for number, line in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            yield number, _parsed(line)
        except LineError as error:
            yield number, error


def _parsed(line: bytes) -> Any:
    if len(line) > MAX_LINE_BYTES:
        raise LineError(f"a line of {len(line) / 2**20:.1f} MiB; a question is at most {MAX_LINE_BYTES // 2**20} MiB")
    try:
        return json.loads(_text(line), object_pairs_hook=_without_repetition)
    except json.JSONDecodeError as error:
        raise LineError(f"not JSON: {error.msg} (character {error.pos + 1})") from error
    except RecursionError as error:
        raise LineError("JSON that is nested too deeply") from error
    except ValueError as error:
        raise LineError(f"JSON that cannot be read: {error}") from error


def _text(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise LineError(f"not UTF-8 text: {error.reason} (byte {error.start + 1}); save the file as UTF-8") from error


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        keys = [key for key, _ in pairs]
        raise LineError(f"the key {next(key for key in keys if keys.count(key) > 1)!r} stands twice")
    return record


def _of_csv(path: Path, content: bytes) -> Iterator[tuple[int, Any]]:
    line = 1
    try:
        text = _text(content.removeprefix(b"\xef\xbb\xbf"))
        delimiter = max(_DELIMITERS, key=text.partition("\n")[0].count)
        rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        names = _header(next(rows, []))
        line = rows.line_num + 1
        for row in rows:
            if any(map(str.strip, row)):
                yield line, _row(names, row)
            line = rows.line_num + 1
    except LineError as error:
        if isinstance(error.__cause__, UnicodeDecodeError):
            line = content.count(b"\n", 0, error.__cause__.start) + 1
        yield line, error
    except csv.Error as error:
        yield line, LineError(f"not CSV from here on: {error}")


def _header(names: Sequence[str]) -> list[str]:
    stripped = [name.strip() for name in names]
    if repeated := [name for name in stripped if stripped.count(name) > 1]:
        raise LineError(f"the column {repeated[0]!r} stands twice")
    if any(stripped) and not asks(stripped):
        raise LineError(
            "line 1 must be the header, which names the columns (question, evidence, ...); no column of it is "
            f"question: {', '.join(stripped):.100}"
        )
    return stripped


def _row(names: Sequence[str], row: Sequence[str]) -> Any:
    if len(row) != len(names):
        return LineError(f"{len(row)} fields where the header has {len(names)}; quote text that holds a delimiter")
    return {name: _of_cell(name, cell) for name, cell in zip(names, row, strict=True) if cell.strip()}


def _of_cell(name: str, cell: str) -> Any:
    """A list is written as JSON; all else is text."""
    stripped = cell.strip()
    if name in LISTS and stripped[:1] + stripped[-1:] == "[]":
        try:
            return json.loads(stripped, object_pairs_hook=_without_repetition)
        except (ValueError, RecursionError):
            return cell  # words in brackets
    return cell


def _of_parquet(path: Path, content: bytes) -> Iterator[tuple[int, Any]]:
    try:
        rows = [row for some in given_parquet.rows(path, DatasetError) for row in some.columns.to_pylist()]
    except given_parquet.UNREADABLE as error:
        told = " ".join(str(error).split())
        raise DatasetError(f"{path}: cannot be read as Parquet: {told:.200}") from error
    for line, row in enumerate(rows, 1):
        said = ((key, value) for key, value in row.items() if value not in (None, ""))
        yield line, {key: _of_cell(key, value) if isinstance(value, str) else value for key, value in said}
