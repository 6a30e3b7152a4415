"""The forms in which PersonaMem v1 is published: questions, and the contexts that they are asked of.

- As on Hugging Face: `questions_32k.csv` beside `shared_contexts_32k.jsonl`. A question names how many messages of its
  context it comes after (`end_index_in_shared_context`), and its options are the text of a Python list.
- Repackaged, as the development part: `..._queries_....jsonl` beside `..._documents_....jsonl`, a document a session.
  Where in its context a question is asked is lost.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eval.dataset.fields import Record, csv_rows, json_lines, whole_number
from eval.dataset.published import any_of, csv_table, json_records, text_lines, unpacked_lines
from lcm.errors import DatasetError
from lcm.given import is_given
from lcm.records.conversation import Role

COLUMNS = (
    *("question_id", "question_type", "user_question_or_message", "correct_answer", "all_options"),
    *("shared_context_id", "end_index_in_shared_context"),
)
TABLE = csv_table(*COLUMNS)
LINES = json_records("lines", ("id",), ("gold_answers",))
QUESTIONS = any_of(TABLE, LINES)

ROLES: Mapping[str, Role] = {"SYSTEM": "system", "USER": "user", "ASSISTANT": "assistant"}
_MARKER = re.compile(r"(?:\A|\n\n)\[(SYSTEM|USER|ASSISTANT)\] ")
_OPTION = re.compile(r"\(([a-z])\) (.*)", re.DOTALL)
_LETTER = re.compile(r"\(([a-z])\)")


@dataclass(frozen=True, slots=True)
class Turn:
    """A message of a context."""

    role: Role
    text: str
    session: str
    """`<context>_<n>`, the n-th session."""
    index: int
    """Within its session."""
    native: Mapping[str, Any]
    """As recorded."""


@dataclass(frozen=True, slots=True)
class Question:
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


def contexts_beside(questions: Path) -> Path:
    """The file of contexts that lies beside a file of questions.

    Raises:
        DatasetError: if it does not.
    """
    name = questions.name
    if TABLE.is_held_by(questions):
        path = questions.with_name(name.replace("questions", "shared_contexts").replace(".csv", ".jsonl"))
    else:
        path = questions.with_name(name.replace("queries", "documents"))
    if path == questions or not is_given(path, questions.parent):
        told = "as questions_32k.csv beside shared_contexts_32k.jsonl"
        raise DatasetError(f"{path} is missing: the contexts lie beside their questions, {told}")
    return path


def read_contexts(questions: Path, contexts: Path) -> dict[str, list[Turn]]:
    """Context -> its messages, in order."""
    is_published, found = TABLE.is_held_by(questions), dict[str, list[Turn]]()
    for record in json_lines(unpacked_lines(contexts), contexts.name):
        if is_published:
            for context in record.fields:
                if context in found:
                    raise record.wrong(context, "stands twice")
                found[context] = list(_turns(context, record))
        else:
            found.setdefault(record.get("user_id", str), []).extend(_document(record))
    return found


def read_questions(path: Path) -> Iterator[Question]:
    """The questions in order."""
    if TABLE.is_held_by(path):
        yield from map(_published, csv_rows(text_lines(path), path.name, COLUMNS))
    else:
        yield from map(_repackaged, json_lines(unpacked_lines(path), path.name))


def _turns(context: str, record: Record) -> Iterator[Turn]:
    """A turn of the system begins a session."""
    number, index = -1, 0
    for turn in record.each(context):
        role = turn.get("role", str)
        if role.upper() not in ROLES:
            raise turn.wrong("role", f"must be one of system, user, assistant, got {role!r}")
        if role == "system" or number < 0:
            number, index = number + 1, 0
        yield Turn(ROLES[role.upper()], turn.get("content", str), f"{context}_{number}", index, turn.fields)
        index += 1


def _document(record: Record) -> Iterator[Turn]:
    """A marker stands at the beginning or after a blank line, and what it holds may have some."""
    _, *pieces = _MARKER.split(record.get("content", str))
    for index, (marker, text) in enumerate(zip(pieces[::2], pieces[1::2], strict=True)):
        yield Turn(ROLES[marker], text, record.get("id", str), index, {"role": marker, "text": text})


def _published(row: Record) -> Question:
    text = row.get("all_options", str)
    try:
        offered = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError) as err:
        raise row.wrong("all_options", f"is no Python list ({err})") from err
    written = Record(row.place, {"all_options": offered}).texts("all_options")
    correct = _LETTER.fullmatch(row.get("correct_answer", str).strip())
    if correct is None:
        raise row.wrong("correct_answer", f"must be a letter as (c), got {row.fields['correct_answer']!r}")
    end = whole_number(row.get("end_index_in_shared_context", str))
    if not end:
        found = row.fields["end_index_in_shared_context"]
        raise row.wrong("end_index_in_shared_context", f"must be a whole number >= 1, got {found!r:.60}")
    return Question(
        question_id=row.get("question_id", str),
        text=row.get("user_question_or_message", str),
        category=row.get("question_type", str),
        context=row.get("shared_context_id", str),
        options=_options(written, correct[1], row, "all_options"),
        end=end,
        place=row,
    )


def _repackaged(entry: Record) -> Question:
    """After the question stand four lines `(a) words`; the gold answer ends with its letter."""
    meta = Record(f"{entry.place}: meta", entry.get("meta", dict))
    text, gold = meta.get("retrieval_query", str), entry.texts("gold_answers")
    offered = entry.get("query", str).removeprefix(text).strip("\n").split("\n")
    return Question(
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
