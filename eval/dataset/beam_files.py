"""The forms in which BEAM is published, read conversation by conversation.

- Lines: one JSON object a conversation, `{conversation_id, size, topic, chat, probing_questions}`.
- Folders, as in the repository: `chats/<size>/<n>/chat.json` and `.../probing_questions/probing_questions.json`.
- Parquet, as on Hugging Face: a row a conversation. A batch is one flat list of messages, what a message lacks is null,
  and `probing_questions` is the text of a Python literal.

A conversation of 10M wraps its batches in plans, `{"plan-1": [...]}`; message ids may begin anew in each.
"""

import ast
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from eval.dataset.card import Card, folder
from eval.dataset.fields import Record, json_value, parsed
from eval.dataset.published import files_of, head, json_records, unpacked_lines
from lcm import given_parquet
from lcm.errors import DatasetError
from lcm.given import is_given, is_within

COLUMNS = ("conversation_id", "chat", "probing_questions")
TRUNCATED = "chat_trunecated.json"  # as the repository spells it
_QUESTIONS = Path("probing_questions", "probing_questions.json")
LINES = json_records("lines", ("conversation_id",), ("size",))
_LINE = re.compile(rb'\s*\{\s*"conversation_id"\s*:\s*"([^"\\]+)"')
_SIZE = re.compile(r"\d+[KM](?![^\W_])")
_PLAN = re.compile(r"plan-\d+")


class Said(NamedTuple):
    """A message of a conversation."""

    session: str
    """The batch that holds it, `batch 3`, and of a conversation of several plans also the plan: `plan-2 batch 3`."""
    number: int
    """What evidence names: unique in the conversation."""
    record: Record
    """The message as recorded."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """One recorded conversation with its questions."""

    name: str
    """`beam-100K-13`."""
    said: Sequence[Said]
    questions: Record
    """Question type -> list of questions."""


class Form(Protocol):
    """Conversations in one of the published forms."""

    @property
    def path(self) -> Path:
        """The file, or the folder, that holds them."""
        ...

    def names(self) -> list[str]:
        """Of all conversations, in order."""
        ...

    def files(self, names: Collection[str]) -> list[Path]:
        """What is read for these conversations."""
        ...

    def conversations(self, names: Collection[str]) -> Iterator[Conversation]:
        """These conversations, in order, one at a time."""
        ...


@dataclass(frozen=True, slots=True)
class Lines:
    """A file of JSON lines, plain or compressed by gzip."""

    path: Path

    def names(self) -> list[str]:
        return [name for name, _ in self._lines()]

    def files(self, names: Collection[str]) -> list[Path]:
        return [self.path]

    def conversations(self, names: Collection[str]) -> Iterator[Conversation]:
        for number, (name, line) in enumerate(self._lines(), start=1):
            if name in names:
                place = f"{self.path.name}: record {number}"
                record = Record(place, parsed(line, place))
                chat, questions = record.get("chat", list), record.get("probing_questions", dict)
                yield _conversation(name, chat, Record(f"{record.place}: probing_questions", questions), record.place)

    def _lines(self) -> Iterator[tuple[str, bytes]]:
        for number, line in enumerate(unpacked_lines(self.path), start=1):
            begun = _LINE.match(line)
            if begun is None:
                raise DatasetError(f"{self.path}: record {number}: must begin with a conversation_id")
            yield begun[1].decode(errors="replace"), line


@dataclass(frozen=True, slots=True)
class Folders:
    """The folder of a size, with one a conversation below it."""

    path: Path
    size: str
    is_truncated: bool = False
    """Whether a conversation's truncated chat is read where it has one."""

    def names(self) -> list[str]:
        numbers = sorted(
            int(chat.parent.name)
            for chat in self.path.glob("*/chat.json")
            if chat.parent.name.isdigit() and self._is_given(chat)
        )
        return [f"beam-{self.size}-{number}" for number in numbers]

    def files(self, names: Collection[str]) -> list[Path]:
        paths = [path for name in names for path in (self.chat(name), self._folder(name) / _QUESTIONS)]
        missing = [path for path in paths if not self._is_given(path)]
        if missing:
            raise DatasetError(f"{missing[0]} is missing; get the conversation again")
        return paths

    def chat(self, name: str) -> Path:
        """The file that holds the chat of a conversation."""
        truncated = self._folder(name) / TRUNCATED
        return truncated if self.is_truncated and self._is_given(truncated) else self._folder(name) / "chat.json"

    def conversations(self, names: Collection[str]) -> Iterator[Conversation]:
        for name in (one for one in self.names() if one in names):
            chat, questions = self.files([name])
            asked = Record(str(questions), {"probing_questions": json_value(questions)})
            told = Record(str(chat), {"chat": json_value(chat)})
            record = Record(str(questions), asked.get("probing_questions", dict))
            yield _conversation(name, told.get("chat", list), record, str(chat))

    def _is_given(self, path: Path) -> bool:
        return is_given(path, self.path)

    def _folder(self, name: str) -> Path:
        return self.path / name.rpartition("-")[2]


@dataclass(frozen=True, slots=True)
class Parquet:
    """The files of a size."""

    paths: tuple[Path, ...]
    size: str

    @property
    def path(self) -> Path:
        return self.paths[0]

    def names(self) -> list[str]:
        return [name for path in self.paths for name in self._names(path)]

    def files(self, names: Collection[str]) -> list[Path]:
        return [path for path in self.paths if set(self._names(path)) & set(names)]

    def conversations(self, names: Collection[str]) -> Iterator[Conversation]:
        for path in self.files(names):
            for number, row in enumerate(_rows(path, COLUMNS), start=1):
                name = self._name(row["conversation_id"][0].as_py())
                if name in names:
                    (fields,) = row.to_pylist()
                    record = Record(f"{path}: record {number}", _without_nulls(fields))
                    yield _conversation(name, record.get("chat", list), _literal(record), record.place)

    def _names(self, path: Path) -> list[str]:
        return [self._name(row["conversation_id"][0].as_py()) for row in _rows(path, ["conversation_id"])]

    def _name(self, conversation_id: object) -> str:
        return f"beam-{self.size}-{conversation_id}"


def find_form(
    card: Card, size: str, directory: str | None = None, file: str | None = None, *, is_truncated: bool = False
) -> Form:
    """The conversations of a size, in the one form in which they are there.

    Args:
        card: BEAM's.
        size: `100K`; the folder, the name of a Parquet file and the records of a file of lines name it.
        directory: as in `folder`.
        file: the file or the folder to read, below that folder or absolute; None: what is there of that size.
        is_truncated: take the truncated chats where there are some.
    Raises:
        DatasetError: if there is none, or there are several and `file` names none of them.
    """
    path = None if file is None else Path(file).expanduser()
    place = path if path is not None and path.is_absolute() else folder(card, directory) / (path or "")
    if not place.exists():
        raise DatasetError(f"dataset.file={file} means {place}, which is not there")
    candidates = [place] if path is not None or place.name == size else [*files_of(place), *_sizes(place, size)]
    tables = tuple(one for one in candidates if one.suffix == ".parquet" and _is_of(one, size, path is not None))
    found: list[Form] = [Parquet(tables, size)] if tables else []
    for one in candidates:
        if one.is_dir() and _is_of(one, size, True) and next(one.glob("*/chat.json"), None):
            found.append(Folders(one, size, is_truncated))
        elif one.is_file() and LINES.is_held_by(one) and re.search(rf'"size"\s*:\s*"{size}"', head(one)):
            found.append(Lines(one))
    if not found:
        raise DatasetError(
            f"{place} holds no conversations of {size}: expected chats/{size}/<n>/chat.json, "
            f"{size}-*.parquet, or JSON lines of that size; `lcm datasets {card.name}` tells how to get them"
        )
    if len(found) > 1:
        names = ", ".join(str(form.path) for form in found)
        raise DatasetError(
            f"{place} holds the conversations of {size} {len(found)} times: name one, dataset.file=... ({names})"
        )
    if is_truncated and not isinstance(found[0], Folders):
        raise DatasetError(
            f"dataset.chats=truncated: {found[0].path} holds no truncated chats, the repository's folders do"
        )
    return found[0]


def _sizes(place: Path, size: str) -> Iterator[Path]:
    """The folders of a size."""
    return (path for path in place.glob(f"**/{size}") if path.is_dir() and is_within(path, place))


def _is_of(path: Path, size: str, is_named: bool) -> bool:
    """Whether the name says this size; of what was asked for by name, whether it says no other."""
    said = _SIZE.match(path.name)
    return is_named if said is None else said[0] == size


def _rows(path: Path, columns: Sequence[str]) -> Iterator[Any]:
    """The rows of a table, one at a time."""
    try:
        there = given_parquet.column_names(path)
        missing = [column for column in COLUMNS if column not in there]
        if missing:
            raise DatasetError(f"{path}: has no column {missing[0]!r}; the file is of another form")
        for some in given_parquet.rows(path, DatasetError, columns):
            yield from (some.columns.slice(number, 1) for number in range(some.columns.num_rows))
    except given_parquet.UNREADABLE as err:
        raise DatasetError(f"{path}: is not Parquet ({err}); get the file again") from err


def _without_nulls(value: Any) -> Any:
    """A struct of a column has every key that any row has; those that a record lacks are null."""
    if isinstance(value, dict):
        return {key: _without_nulls(one) for key, one in value.items() if one is not None}
    return [_without_nulls(one) for one in value] if isinstance(value, list) else value


def _literal(record: Record) -> Record:
    """The questions of a row, written as a Python literal."""
    text = record.get("probing_questions", str)
    try:
        questions = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError) as err:
        raise record.wrong("probing_questions", f"is no Python literal ({err})") from err
    return Record(f"{record.place}: probing_questions", record.checked("probing_questions", questions, dict))


def _conversation(name: str, chat: list[Any], questions: Record, place: str) -> Conversation:
    said = list(_said(chat, place))
    if not said:
        raise DatasetError(f"{place}: holds no message; the file is damaged, or of another form")
    return Conversation(name, said, questions)


def _said(chat: list[Any], place: str) -> Iterator[Said]:
    """The messages in order. A plan whose ids begin anew goes on after the last id of the plan before it."""
    last = -1
    for plan, batches in _plans(chat, place):
        said = [
            Said(f"{plan}batch {number}", record.get("id", int), record)
            for number, messages in _batches(batches, f"{place}: {plan}".rstrip(": "))
            for record in messages
        ]
        numbers = set[int]()
        for one in said:
            if one.number in numbers:
                raise one.record.wrong("id", f"{one.number} stands twice in the conversation")
            numbers.add(one.number)
        offset = last + 1 if numbers and min(numbers) <= last else 0
        for one in said:
            yield one._replace(number=one.number + offset)
        last = max([last, *(number + offset for number in numbers)])


def _plans(chat: list[Any], place: str) -> Iterator[tuple[str, list[Any]]]:
    """The batches of each plan, with how its sessions are named; a chat without plans is one that has no name."""
    if not all(isinstance(one, dict) and one and all(map(_PLAN.fullmatch, one)) for one in chat):
        yield "", chat
        return
    for index, plans in enumerate(chat):
        record = Record(f"{place}: chat[{index}]", plans)
        for name in plans:
            batches = record.find(name, list)
            if batches is not None:
                yield f"{name} ", batches


def _batches(batches: list[Any], place: str) -> Iterator[tuple[int, list[Record]]]:
    """Number and messages; a batch is a flat list, or an object with groups of messages."""
    for index, batch in enumerate(batches):
        where = f"{place}: batch {index + 1}"
        if isinstance(batch, list):
            yield index + 1, list(Record(where, {"messages": batch}).each("messages"))
            continue
        record = Record(where, batch if isinstance(batch, Mapping) else {})
        messages = []
        for number, group in enumerate(record.get("turns", list)):
            messages += list(Record(where, {f"turns[{number}]": group}).each(f"turns[{number}]"))
        yield record.get("batch_number", int), messages
