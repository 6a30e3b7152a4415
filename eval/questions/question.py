"""A question with what answers it, and one line of a questions file: its keys, checked, as a question."""

import difflib
import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any

from lcm.clock import END_OF_CLOCKS, EPOCH, format_instant, parse_instant
from lcm.encoding import is_well_formed

ENDINGS = (".jsonl", ".csv", ".parquet")
UNANSWERABLE = "unanswerable"
"""The category of questions that nothing answers."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """One thing that answers a question: where it stands is worked out against the transcripts."""

    text: str = ""
    """As a person wrote it: the id of a message, `file:line`, or a quotation. Empty: the fields below say which."""
    quote: str = ""
    message_ids: tuple[str, ...] = ()
    """Messages that are known to be evidence; with a quotation each of them holds it."""

    def entry(self) -> str | dict[str, Any]:
        """As it stands in a questions file."""
        if self.text:
            return self.text
        quote = {"quote": self.quote} if self.quote else {}
        return quote | ({"message_ids": list(self.message_ids)} if self.message_ids else {})


@dataclass(frozen=True, slots=True)
class Question:
    """A question about recorded sessions."""

    question_id: str
    question: str
    evidence: tuple[Evidence, ...]
    """Empty: nothing answers the question."""
    asked_at: datetime | None = None
    """None = when the last message of its workspace has been said."""
    category: str = "all"
    answer: str = ""
    workspace: str | None = None
    """None = where its evidence lies."""
    generated: str | None = None
    """The way of making that made it; None = a person asked."""
    source: str | None = None
    """The file that holds its evidence, by the end of its path; None = any."""
    conversations: tuple[str, ...] = ()
    """Those that hold its evidence; () = any."""
    line: int = field(default=0, compare=False)
    """Where it stands in its file, from 1; of Parquet the row."""

    @property
    def is_unanswerable(self) -> bool:
        return not self.evidence

    def record(self) -> dict[str, Any]:
        """As it stands in a questions file: the keys that say something."""
        told = {
            "unanswerable": self.is_unanswerable,
            "asked_at": None if self.asked_at is None else format_instant(self.asked_at),
            "category": None if self.category == "all" else self.category,
            "answer": self.answer,
            "workspace": self.workspace,
            "generated": self.generated,
            "source": self.source,
            "conversation": list(self.conversations),
        }
        always = {"question_id": self.question_id, "question": self.question}
        evidence = [one.entry() for one in self.evidence]
        return {**always, "evidence": evidence, **{key: value for key, value in told.items() if value}}


KEYS = (
    *("question_id", "question", "evidence", "asked_at", "category", "answer", "workspace", "generated"),
    *("unanswerable", "source", "conversation", "message_ids"),
)
LISTS = ("evidence", "conversation", "message_ids")

_OTHER_NAMES = {"query_id": "question_id", "text": "question", "query": "question", "id": "question_id"}
"""What other question sets call the same."""
_MOST_CHARACTERS = {"question": 10_000, "question_id": 200, "workspace": 1_000, "category": 200}
_LONGEST = 100_000
_OF_EVIDENCE = ("quote", "message_id", "message_ids")
_FORMS = 'an id, file:line or a quotation, or {"quote": ...}, {"message_id": ...}'


class LineError(ValueError):
    """A line of a questions file is no question."""


def is_question(keys: Collection[str]) -> bool:
    """Whether these are the keys of a question, rather than of a message."""
    names = {_OTHER_NAMES.get(key, key) for key in keys}
    return "question" in names and bool(names & {"evidence", "unanswerable", "message_ids"})


def asks(keys: Collection[str]) -> bool:
    """Whether one of the keys is that of a question's words."""
    return any(_OTHER_NAMES.get(key, key) == "question" for key in keys)


def question_of(record: object, line: int) -> tuple[Question, list[str]]:
    """The question that a line holds, and the keys of it that say nothing to lcm; LineError names the wrong key."""
    if not isinstance(record, Mapping):
        raise LineError(f"a line holds an object with question and evidence, got {_shown(record)}")
    named, unused = _named(record)
    question = _text(named, "question")
    if not question:
        raise LineError("question is missing or empty")
    evidence = _evidence(named)
    category = _text(named, "category")
    is_unanswerable = _flag(named, "unanswerable")
    if evidence and is_unanswerable:
        raise LineError("unanswerable is true, but there is evidence; leave one out")
    if evidence and category == UNANSWERABLE:
        raise LineError(f"category is {UNANSWERABLE}, but there is evidence; leave it out or name another category")
    if not evidence and not is_unanswerable and category != UNANSWERABLE:
        raise LineError(
            f'evidence is missing or empty; write where the answer stands ({_FORMS}), or "unanswerable": true '
            "where nothing answers"
        )
    asked_at = _instant(named)
    workspace = _text(named, "workspace") or None
    found = Question(
        question_id=_text(named, "question_id") or _made_id(question, workspace, asked_at),
        question=question,
        evidence=evidence,
        asked_at=asked_at,
        category=category or ("all" if evidence else UNANSWERABLE),
        answer=_text(named, "answer"),
        workspace=workspace,
        generated=_text(named, "generated") or None,
        source=_text(named, "source") or None,
        conversations=_texts(named, "conversation"),
        line=line,
    )
    return found, unused


def is_id_made(question: Question) -> bool:
    """Whether its id was made from what it asks, for its line gave none."""
    return question.question_id == _made_id(question.question, question.workspace, question.asked_at)


def _made_id(question: str, workspace: str | None, asked_at: datetime | None) -> str:
    told = (question, workspace or "", "" if asked_at is None else format_instant(asked_at))
    return hashlib.sha256("\x00".join(told).encode()).hexdigest()[:16]


def _named(record: Mapping[Any, Any]) -> tuple[dict[str, Any], list[str]]:
    """The known keys that say something, by the names used here; and the keys that are not known."""
    named: dict[str, Any] = {}
    unused: list[str] = []
    for key, value in record.items():
        name = _OTHER_NAMES.get(key, key)
        if name in named:
            raise LineError(f"{key!r} says {name} a second time; leave one out")
        if name in KEYS:
            if value is not None:
                named[name] = value
        elif near := difflib.get_close_matches(str(key).strip().lower(), KEYS, n=1, cutoff=0.8):
            raise LineError(f"no such key: {key!r:.80}; did you mean {near[0]}?")
        else:
            unused.append(str(key))
    return named, unused


def _evidence(named: Mapping[str, Any]) -> tuple[Evidence, ...]:
    value = named.get("evidence", [])
    entries = value if isinstance(value, list) else [value]
    found = [_one(entry, number) for number, entry in enumerate(entries, 1)]
    judged = set(_texts(named, "message_ids"))
    if more := judged.difference(*(one.message_ids for one in found)):
        ids = tuple(one for one in _texts(named, "message_ids") if one in more)
        found.append(Evidence(message_ids=ids))
    return tuple(dict.fromkeys(found))


def _one(entry: object, number: int) -> Evidence:
    where = f"evidence {number}"
    if isinstance(entry, str):
        text = _checked(entry, where)
        if not text:
            raise LineError(f"{where} is empty; write {_FORMS}")
        return Evidence(text)
    if not isinstance(entry, Mapping):
        raise LineError(f"{where} must be {_FORMS}, got {_shown(entry)}")
    said = {key: value for key, value in entry.items() if value is not None}
    if unknown := [key for key in said if key not in _OF_EVIDENCE]:
        raise LineError(f"{where} has no key {unknown[0]!r:.80}; choose from: {', '.join(_OF_EVIDENCE)}")
    ids = (*_texts(said, "message_id", where), *_texts(said, "message_ids", where))
    found = Evidence(quote=_text(said, "quote", where), message_ids=tuple(dict.fromkeys(ids)))
    if not found.quote and not found.message_ids:
        raise LineError(f"{where} is empty; write {_FORMS}")
    return found


def _instant(named: Mapping[str, Any]) -> datetime | None:
    value = named.get("asked_at")
    if value is None or value == "":
        return None
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day, tzinfo=UTC)
    if isinstance(value, datetime):
        value = value.isoformat()
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise LineError(f"asked_at must be an ISO 8601 instant, got {_shown(value)}")
    try:
        instant = parse_instant(value)
    except ValueError as error:
        raise LineError(f"asked_at must be an ISO 8601 instant, got {_shown(value)}") from error
    if not EPOCH <= instant < END_OF_CLOCKS:
        raise LineError(f"asked_at must lie between 1970 and 2100, got {format_instant(instant)}")
    return instant


def _flag(named: Mapping[str, Any], key: str) -> bool:
    value = named.get(key, False)
    if isinstance(value, str):
        value = {"true": True, "false": False, "": False}.get(value.strip().lower(), value)
    if not isinstance(value, bool):
        raise LineError(f"{key} must be true or false, got {_shown(value)}")
    return value


def _texts(named: Mapping[str, Any], key: str, where: str = "") -> tuple[str, ...]:
    """A text, or a list of them."""
    value = named.get(key, [])
    each = value if isinstance(value, list) else [value]
    found = tuple(_text({key: one}, key, where) for one in each)
    if "" in found and isinstance(value, list):
        raise LineError(f"{f'{where}: ' if where else ''}{key} holds an empty text")
    return tuple(one for one in found if one)


def _text(named: Mapping[str, Any], key: str, where: str = "") -> str:
    value = named.get(key, "")
    told = f"{where}: {key}" if where else key
    if key in ("question_id", "message_id") and isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        raise LineError(f"{told} must be text, got {_shown(value)}")
    return _checked(value, told, _MOST_CHARACTERS.get(key, _LONGEST))


def _checked(text: str, what: str, most: int = _LONGEST) -> str:
    if "\0" in text:
        raise LineError(f"{what} holds a NUL character; remove it")
    if not is_well_formed(text):
        raise LineError(f"{what} holds half of a surrogate pair; write whole characters")
    if len(text) > most:
        raise LineError(f"{what} has {len(text):,} characters; {most:,} are the most")
    return text.strip()


def _shown(value: object) -> str:
    kinds: Sequence[tuple[type, str]] = ((bool, "a flag"), (Mapping, "an object"), (list, "a list"), (str, "text"))
    kind = next((name for type_, name in kinds if isinstance(value, type_)), type(value).__name__)
    return f"{kind} {value!r:.60}"
