"""PersonaMem: sessions of a persona with an assistant, and multiple-choice questions about what the persona is like.

PersonaMem v1 is published in two forms:

- As on Hugging Face: `questions_32k.csv` beside `shared_contexts_32k.jsonl`. A question names how many messages of its
  context it comes after (`end_index_in_shared_context`), and its options are the text of a Python list.
- Repackaged, as the development part: `..._queries_....jsonl` beside `..._documents_....jsonl`, a document a session.
  Where in its context a question is asked is lost.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

from eval.dataset.card import Card, read_card
from eval.dataset.dataset import Dataset, Draft, opaque_id, text_message
from eval.dataset.files import (
    PublishedFile,
    Record,
    any_of,
    csv_rows,
    csv_table,
    json_lines,
    json_records,
    whole_number,
)
from lcm.clock import EPOCH
from lcm.errors import DatasetError
from lcm.given import is_given
from lcm.records.conversation import Role, Transcript
from lcm.records.query import Query

ASKED_AT = EPOCH + timedelta(days=1)
"""Where a file does not say after which message a question is asked, the day after all of them."""
BETWEEN_MESSAGES = timedelta(seconds=1)
"""No session has a time. Where a file says after which message a question is asked, messages are so far apart."""

_COLUMNS = (
    *("question_id", "question_type", "user_question_or_message", "correct_answer", "all_options"),
    *("shared_context_id", "end_index_in_shared_context"),
)
TABLE = csv_table(*_COLUMNS)
LINES = json_records("lines", ("id",), ("gold_answers",))
QUESTIONS = any_of(TABLE, LINES)

_ROLES: Mapping[str, Role] = {"SYSTEM": "system", "USER": "user", "ASSISTANT": "assistant"}
_MARKER = re.compile(r"(?:\A|\n\n)\[(SYSTEM|USER|ASSISTANT)\] ")
_OPTION = re.compile(r"\(([a-z])\) (.*)", re.DOTALL)
_LETTER = re.compile(r"\(([a-z])\)")


@dataclass(frozen=True, slots=True)
class _Turn:
    """A message of a context."""

    role: Role
    text: str
    session: str
    """`<context>_<n>`, the n-th session."""
    index: int
    native: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Question:
    """A question with its options."""

    question_id: str
    text: str
    category: str
    context: str
    options: tuple[tuple[str, str, bool], ...]
    """Letter, words, whether it is the correct one."""
    end: int | None
    """It comes after so many messages of its context; None: the file does not say."""
    place: Record


@dataclass(frozen=True, slots=True)
class Personamem(PublishedFile):
    """20 personas in 37 contexts with 589 questions as published (32k), 12 in 22 with 365 in the development part.

    Times: none recorded. A published question is asked after the message that it names, and hears no more of its
    context; the development part has lost that, and its questions hear all. No judgements. `file` is that of the
    questions, beside which the contexts lie; `only` names contexts by id.
    """

    card: ClassVar[Card] = read_card("personamem")

    def load(self) -> Dataset:
        asked = self.find(QUESTIONS)
        beside = self.identified(_contexts_beside(asked.path))
        contexts = _contexts(asked.path, beside.path)
        self.check_part(contexts, beside.path.name)
        is_dated, draft, known = TABLE.is_held_by(asked.path), Draft(), set[str]()
        doubled = "wrong options say word for word what the correct one says"
        beyond = "questions are asked after more messages than their context has"
        draft.counts.update({doubled: 0, beyond: 0})
        rows = map(_published, csv_rows(asked.path, _COLUMNS)) if is_dated else map(_repackaged, json_lines(asked.path))
        for question in rows:
            if question.context not in contexts:
                raise question.place.wrong("shared_context_id", f"{question.context!r} is no context")
            if question.question_id in known:
                raise question.place.wrong("question_id", f"{question.question_id!r} stands twice")
            known.add(question.question_id)
            if self.takes(question.context):
                heard = len(contexts[question.context])
                end, place = question.end, question.context
                asked_at = ASKED_AT if end is None else EPOCH + (min(end, heard) - 1) * BETWEEN_MESSAGES
                draft.queries.append(Query(question.question_id, question.text, asked_at, place, question.category))
                draft.options += [(question.question_id, *option) for option in question.options]
                (correct,) = (words for _, words, is_correct in question.options if is_correct)
                draft.counts[doubled] += [words for _, words, _ in question.options].count(correct) - 1
                draft.counts[beyond] += (question.end or 0) > heard
        draft.transcripts += [
            _transcript(context, turns, is_dated) for context, turns in contexts.items() if self.takes(context)
        ]
        protocol = f"options=4 context={'until_asked' if is_dated else 'whole'}"
        return self.dataset(draft, protocol, [asked, beside], pins=[beside.pin, asked.pin])


def _transcript(context: str, turns: Sequence[_Turn], is_dated: bool) -> Transcript:
    """One conversation a context; dated where questions come between its messages."""
    messages = tuple(
        text_message(
            opaque_id("personamem", turn.session, str(turn.index)),
            opaque_id("personamem", turn.session),
            turn.text.removeprefix(f"{turn.role.capitalize()}: "),
            turn.native,
            role=turn.role,
            text=turn.text,
            created_at=EPOCH + place * BETWEEN_MESSAGES if is_dated else None,
        )
        for place, turn in enumerate(turns)
    )
    return Transcript(opaque_id("personamem", context), messages, workspace_id=context)


def _contexts_beside(questions: Path) -> Path:
    """The file of contexts that lies beside a file of questions."""
    name = questions.name
    if TABLE.is_held_by(questions):
        path = questions.with_name(name.replace("questions", "shared_contexts").replace(".csv", ".jsonl"))
    else:
        path = questions.with_name(name.replace("queries", "documents"))
    if path == questions or not is_given(path, questions.parent):
        told = "as questions_32k.csv beside shared_contexts_32k.jsonl"
        raise DatasetError(f"{path} is missing: the contexts lie beside their questions, {told}")
    return path


def _contexts(questions: Path, contexts: Path) -> dict[str, list[_Turn]]:
    """Context -> its messages, in order."""
    is_published, found = TABLE.is_held_by(questions), dict[str, list[_Turn]]()
    for record in json_lines(contexts):
        if is_published:
            for context in record.fields:
                if context in found:
                    raise record.wrong(context, "stands twice")
                found[context] = list(_turns(context, record))
        else:
            found.setdefault(record.get("user_id", str), []).extend(_document(record))
    return found


def _turns(context: str, record: Record) -> Iterator[_Turn]:
    """A turn of the system begins a session."""
    number, index = -1, 0
    for turn in record.each(context):
        role = turn.get("role", str)
        if role.upper() not in _ROLES:
            raise turn.wrong("role", f"must be one of system, user, assistant, got {role!r}")
        if role == "system" or number < 0:
            number, index = number + 1, 0
        yield _Turn(_ROLES[role.upper()], turn.get("content", str), f"{context}_{number}", index, turn.fields)
        index += 1


def _document(record: Record) -> Iterator[_Turn]:
    """A marker stands at the beginning or after a blank line, and what it holds may have some."""
    _, *pieces = _MARKER.split(record.get("content", str))
    for index, (marker, text) in enumerate(zip(pieces[::2], pieces[1::2], strict=True)):
        yield _Turn(_ROLES[marker], text, record.get("id", str), index, {"role": marker, "text": text})


def _published(row: Record) -> _Question:
    written = Record(row.place, {"all_options": row.literal("all_options", "list")}).texts("all_options")
    correct = _LETTER.fullmatch(row.get("correct_answer", str).strip())
    if correct is None:
        raise row.wrong("correct_answer", f"must be a letter as (c), got {row.fields['correct_answer']!r}")
    end = whole_number(row.get("end_index_in_shared_context", str))
    if not end:
        found = row.fields["end_index_in_shared_context"]
        raise row.wrong("end_index_in_shared_context", f"must be a whole number >= 1, got {found!r:.60}")
    return _Question(
        question_id=row.get("question_id", str),
        text=row.get("user_question_or_message", str),
        category=row.get("question_type", str),
        context=row.get("shared_context_id", str),
        options=_options(written, correct[1], row, "all_options"),
        end=end,
        place=row,
    )


def _repackaged(entry: Record) -> _Question:
    """After the question stand four lines `(a) words`; the gold answer ends with its letter."""
    meta = entry.inner("meta")
    text, gold = meta.get("retrieval_query", str), entry.texts("gold_answers")
    offered = entry.get("query", str).removeprefix(text).strip("\n").split("\n")
    return _Question(
        question_id=entry.get("id", str),
        text=text,
        category=meta.get("question_type", str),
        context=entry.get("user_id", str),
        options=_options(offered, gold[-1] if gold else "", entry, "query"),
        end=None,
        place=entry,
    )


def _options(offered: list[str], correct: str, record: Record, key: str) -> tuple[tuple[str, str, bool], ...]:
    read = [_OPTION.fullmatch(line) for line in offered]
    options = tuple((one[1], one[2], one[1] == correct) for one in read if one is not None)
    letters = [letter for letter, _, _ in options]
    if None in read or len(set(letters)) < len(letters):
        raise record.wrong(key, f"must hold options as '(a) words', each letter once, got {offered!r:.80}")
    if correct not in letters:
        raise record.wrong(key, f"must hold the correct option ({correct}), got the letters {', '.join(letters)}")
    return options
