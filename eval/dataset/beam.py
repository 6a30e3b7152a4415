"""BEAM: long conversations of a user with an assistant, with probing questions of ten types.

It is published in three forms, each read conversation by conversation:

- Lines: one JSON object a conversation, `{conversation_id, size, topic, chat, probing_questions}`.
- Folders, as in the repository: `chats/<size>/<n>/chat.json` and `.../probing_questions/probing_questions.json`.
- Parquet, as on Hugging Face: a row a conversation. A batch is one flat list of messages, what a message lacks is null,
  and `probing_questions` is the text of a Python literal.

A conversation of 10M wraps its batches in plans, `{"plan-1": [...]}`; message ids may begin anew in each.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

from eval.dataset.card import Card, folder, read_card
from eval.dataset.dataset import Dataset, Draft, opaque_id, text_message
from eval.dataset.files import (
    FoundFile,
    PublishedFile,
    Record,
    files_of,
    head,
    json_records,
    json_value,
    parsed,
    unpacked_lines,
)
from lcm import given_parquet
from lcm.checks import check_choice
from lcm.errors import DatasetError
from lcm.given import is_given, is_within
from lcm.records.conversation import Role, Transcript
from lcm.records.query import Query

Size = Literal["100K", "500K", "1M", "10M"]
Chats = Literal["full", "truncated"]

SINGLE_SHOT = (
    "contradiction_resolution", "information_extraction", "knowledge_update", "multi_session_reasoning",
    "preference_following", "temporal_reasoning",
)  # fmt: skip
"""The types whose evidence one search can find. Without abstention (it has none), and without event_ordering,
instruction_following and summarization: their evidence is spread over the conversation, or shares no subject with the
question."""

ABSTENTION = "abstention"
LINES = json_records("lines", ("conversation_id",), ("size",))
_COLUMNS = ("conversation_id", "chat", "probing_questions")
_CHAT, _TRUNCATED = "chat.json", "chat_trunecated.json"  # as the repository spells it
_QUESTIONS = Path("probing_questions", "probing_questions.json")
_ROLES: Mapping[str, Role] = {"user": "user", "assistant": "assistant"}
_PLAN_MARKER = re.compile(r"\s*->->.*$")
_LINE = re.compile(rb'\s*\{\s*"conversation_id"\s*:\s*"([^"\\]+)"')
_SIZE = re.compile(r"\d+[KM](?![^\W_])")
_DAY = "a day as November-05-2023"  # BEAM names no hour, so its first instant
_PLAN = re.compile(r"plan-\d+")
_NOTES = (
    "chats are truncated, as the repository has them beside the full ones",
    "messages end with a mark of the generation plan, which is cut off",
    "evidence entries name no message and are left out",
)


class Recorded(NamedTuple):
    """A conversation in one of the forms, not yet read."""

    name: str
    """`beam-100K-13`."""
    files: tuple[Path, ...]
    read: Callable[[], tuple[Record, Record]]
    """The object with its `chat`, and its questions by type."""


@dataclass(frozen=True, slots=True)
class Beam(PublishedFile):
    """20, 35, 35 or 10 conversations as published, 12, 21 or 5 in the development part; twenty questions each.

    Times: a message has the day last named, as the first of each batch does; every question is asked at the last
    message. Judged unit: the message. `file` is the file, or the folder of a size.
    """

    size: Size = "100K"
    """About how many tokens a conversation has; only what is of this size is read."""
    chats: Chats = "full"
    """`truncated`: the shortened chat of a conversation that has one, as BEAM's own script prefers it."""

    card: ClassVar[Card] = read_card("beam")

    def __post_init__(self) -> None:
        PublishedFile.__post_init__(self)
        check_choice(self, size=Size, chats=Chats)

    def load(self) -> Dataset:
        place, recorded = self.recorded()
        names, found, draft = list[str](), dict[Path, FoundFile](), Draft()
        truncated, marked, unknown = _NOTES
        draft.counts.update(dict.fromkeys(_NOTES, 0))
        for one in recorded:
            names.append(one.name)
            if not self.takes(one.name):
                continue
            for path in one.files:
                if path not in found:
                    found[path] = self.identified(path)
            chat, questions = one.read()
            transcript, ids = _transcript(one.name, chat)
            draft.transcripts.append(transcript)
            draft.counts[marked] += sum(m.content != m.envelope["native"]["content"] for m in transcript.messages)
            asked_at = max(message.created_at for message in transcript.messages if message.created_at)
            for category, index, question in _questions(questions):
                query_id = f"{one.name}/{category}/{index}"
                text = question.get("question", str)
                draft.queries.append(Query(query_id, text, asked_at, one.name, category))
                evidence = list(_flat(question.fields.get("source_chat_ids")))
                draft.counts[unknown] += sum(number not in ids for number in evidence)
                draft.judge(query_id, (ids[number] for number in dict.fromkeys(evidence) if number in ids))
                answer = question.find_words("answer") or question.find_words("ideal_answer")
                if category == ABSTENTION:
                    draft.unanswerable.add(query_id)
                elif answer is not None:
                    draft.answers.append((query_id, answer))
                if (summary := question.find("ideal_summary", str)) is not None:
                    draft.references.append((transcript.conversation_id, query_id, summary))
        self.check_part(names, place)
        draft.counts[truncated] = sum(path.name == _TRUNCATED for path in found)
        of_chats = "" if self.chats == "full" else f" chats={self.chats}"
        protocol = f"size={self.size} unit=message{of_chats}"
        return self.dataset(draft, protocol, [*found.values()], groups={"single-shot": SINGLE_SHOT})

    def recorded(self) -> tuple[Path, Iterator[Recorded]]:
        """The conversations of the size, in the one form in which they are there, and where that is; none, or several
        forms of which `file` names none, are refused."""
        path = None if self.file is None else Path(self.file).expanduser()
        is_absolute = path is not None and path.is_absolute()
        place = Path(path or "") if is_absolute else folder(self.card, self.directory) / (path or "")
        if not place.exists():
            raise DatasetError(f"dataset.file={self.file} means {place}, which is not there")
        is_named = path is not None or place.name == self.size
        below = (one for one in place.glob(f"**/{self.size}") if one.is_dir() and is_within(one, place))
        candidates = [place] if is_named else [*files_of(place), *below]
        tables = [one for one in candidates if one.suffix == ".parquet" and self._is_of(one, path is not None)]
        found = [(tables[0], _of_tables(tables, self.size))] if tables else []
        for one in candidates:
            if one.is_dir() and self._is_of(one, True) and next(one.glob(f"*/{_CHAT}"), None):
                found.append((one, self._of_folders(one)))
            elif one.is_file() and LINES.is_held_by(one) and re.search(rf'"size"\s*:\s*"{self.size}"', head(one)):
                found.append((one, _of_lines(one)))
        if not found:
            raise DatasetError(
                f"{place} holds no conversations of {self.size}: expected chats/{self.size}/<n>/{_CHAT}, "
                f"{self.size}-*.parquet, or JSON lines of that size; `lcm datasets beam` tells how to get them"
            )
        if len(found) > 1:
            names = ", ".join(str(one) for one, _ in found)
            raise DatasetError(
                f"{place} holds the conversations of {self.size} {len(found)} times: name one, dataset.file=... "
                f"({names})"
            )
        if self.chats == "truncated" and not found[0][0].is_dir():
            raise DatasetError(
                f"dataset.chats=truncated: {found[0][0]} holds no truncated chats, the repository's folders do"
            )
        return found[0]

    def _of_folders(self, place: Path) -> Iterator[Recorded]:
        def read(chat: Path, questions: Path) -> tuple[Record, Record]:
            asked = Record(str(questions), {"probing_questions": json_value(questions)})
            told = Record(str(chat), {"chat": json_value(chat)})
            return told, Record(str(questions), asked.get("probing_questions", dict))

        chats = [chat for chat in place.glob(f"*/{_CHAT}") if chat.parent.name.isdigit() and is_given(chat, place)]
        for chat in sorted(chats, key=lambda one: int(one.parent.name)):
            name, questions = f"beam-{self.size}-{int(chat.parent.name)}", chat.parent / _QUESTIONS
            if self.takes(name) and not is_given(questions, place):
                raise DatasetError(f"{questions} is missing; get the conversation again")
            truncated = chat.with_name(_TRUNCATED)
            told = truncated if self.chats == "truncated" and is_given(truncated, place) else chat
            yield Recorded(name, (told, questions), partial(read, told, questions))

    def _is_of(self, path: Path, is_named: bool) -> bool:
        """Whether the name says this size; of what was asked for by name, whether it says no other."""
        said = _SIZE.match(path.name)
        return is_named if said is None else said[0] == self.size


def _of_lines(path: Path) -> Iterator[Recorded]:
    def read(line: bytes, place: str) -> tuple[Record, Record]:
        record = Record(place, parsed(line, place))
        return record, record.inner("probing_questions")

    for number, line in enumerate(unpacked_lines(path), start=1):
        if (begun := _LINE.match(line)) is None:
            raise DatasetError(f"{path}: record {number}: must begin with a conversation_id")
        yield Recorded(begun[1].decode(errors="replace"), (path,), partial(read, line, f"{path.name}: record {number}"))


def _of_tables(paths: Sequence[Path], size: str) -> Iterator[Recorded]:
    def read(row: Any, place: str) -> tuple[Record, Record]:
        (fields,) = row.to_pylist()
        record = Record(place, _without_nulls(fields))
        questions = record.literal("probing_questions", "literal")
        return record, Record(place, {"probing_questions": questions}).inner("probing_questions")

    for path in paths:
        for number, row in enumerate(_rows(path), start=1):
            name = f"beam-{size}-{row['conversation_id'][0].as_py()}"
            yield Recorded(name, (path,), partial(read, row, f"{path}: record {number}"))


def _rows(path: Path) -> Iterator[Any]:
    """The rows of a table, one at a time."""
    try:
        there = given_parquet.column_names(path)
        if missing := [column for column in _COLUMNS if column not in there]:
            raise DatasetError(f"{path}: has no column {missing[0]!r}; the file is of another form")
        for some in given_parquet.rows(path, DatasetError, _COLUMNS):
            yield from (some.columns.slice(number, 1) for number in range(some.columns.num_rows))
    except given_parquet.UNREADABLE as err:
        raise DatasetError(f"{path}: is not Parquet ({err}); get the file again") from err


def _without_nulls(value: Any) -> Any:
    """A struct of a column has every key that any row has; those that a record lacks are null."""
    if isinstance(value, dict):
        return {key: _without_nulls(one) for key, one in value.items() if one is not None}
    return [_without_nulls(one) for one in value] if isinstance(value, list) else value


def _transcript(name: str, chat: Record) -> tuple[Transcript, dict[int, str]]:
    """The transcript, and message number -> message id."""
    day: datetime | None = None
    messages, ids = [], {}
    for session, number, said in _said(chat.get("chat", list), chat.place):
        anchor = said.find("time_anchor", str)
        day = day if anchor is None else said.instant("time_anchor", anchor, "%B-%d-%Y", _DAY)
        if day is None:
            raise said.wrong("time_anchor", "is missing: the first message must name its day")
        role, content = said.get("role", str), said.get("content", str)
        if role not in _ROLES:
            raise said.wrong("role", f"must be user or assistant, got {role!r}")
        content = _PLAN_MARKER.sub("", content) if role == "user" else content
        ids[number], session_id = opaque_id("beam", name, str(number)), opaque_id("beam", name, session)
        told = text_message(ids[number], session_id, content, said.fields, role=_ROLES[role], created_at=day)
        messages.append(told)
    if not messages:
        raise DatasetError(f"{chat.place}: holds no message; the file is damaged, or of another form")
    return Transcript(opaque_id("beam", name), tuple(messages), workspace_id=name), ids


def _said(chat: list[Any], place: str) -> Iterator[tuple[str, int, Record]]:
    """The messages in order: the session that holds each, `batch 3` or `plan-2 batch 3`, its number, unique in the
    conversation, and its record. A plan whose ids begin anew goes on after the last id of the plan before it."""
    last = -1
    for plan, batches in _plans(chat, place):
        said = dict[int, tuple[str, Record]]()
        for batch, messages in _batches(batches, f"{place}: {plan}".rstrip(": ")):
            for record in messages:
                number = record.get("id", int)
                if number in said:
                    raise record.wrong("id", f"{number} stands twice in the conversation")
                said[number] = f"{plan}batch {batch}", record
        offset = last + 1 if said and min(said) <= last else 0
        for number, (session, record) in said.items():
            yield session, number + offset, record
        last = max([last, *(number + offset for number in said)])


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


def _questions(questions: Record) -> Iterator[tuple[str, int, Record]]:
    """Type, index within the type, question."""
    for category in questions.fields:
        for index, question in enumerate(questions.each(category)):
            yield category, index, question


def _flat(evidence: Any) -> Iterator[int]:
    """The message numbers of a list, a list of lists or an object of lists; None holds none."""
    match evidence:
        case None:
            return
        case Mapping():
            yield from _flat(list(evidence.values()))
        case list():
            for entry in evidence:
                yield from _flat(entry)
        case number:
            yield number
