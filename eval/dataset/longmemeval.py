"""LongMemEval: months of sessions of one user with an assistant, with a question about a few of them.

The files as they were published (S, M, oracle), the development part and LongMemEval-V2 are read as haystacks. V2 holds
what web agents did, and questions of which nobody says what answers them, in three files: `questions.jsonl`,
`trajectories.jsonl`, and which trajectories each question is asked of, by its id: `haystacks/lme_v2_small.json` or
`lme_v2_medium.json`.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple, get_args

from eval.dataset.card import Card, read_card
from eval.dataset.dataset import Dataset, Draft, opaque_id, text_message
from eval.dataset.files import (
    PublishedFile,
    Record,
    Shape,
    any_of,
    head,
    json_array_stream,
    json_lines,
    json_records,
    json_value,
)
from lcm.checks import check_choice
from lcm.clock import EPOCH
from lcm.errors import DatasetError
from lcm.records.conversation import Message, Role, Transcript
from lcm.records.query import Query

Protocol = Literal["official", "all"]

HAYSTACKS = json_records("lines", ("haystack_id",), ())
QUESTIONS = json_records("array", ("question_id",), ("haystack_dates", "haystack_session_ids"))
ASKED_AT = EPOCH + timedelta(days=1)
"""When the questions of V2 are asked, after all that happened: nothing there is dated."""
_BEGUN = re.compile(r'\s*\{\s*"(?:[^"\\]|\\.)*"\s*:\s*\[\s*"')
HAYSTACKS_V2 = Shape(
    "a JSON object that holds a list of trajectories a question (haystacks/lme_v2_small.json)",
    lambda path: _BEGUN.match(head(path)) is not None,
)
_QUESTIONS_V2, _TRAJECTORIES = "questions.jsonl", "trajectories.jsonl"

_ABSTENTION = "abstention"
"""The category of questions whose haystack does not hold the answer: their ids end with `_abs`."""
_EVIDENCE_ONLY = "gpt4_2655b836"  # 3 sessions, all of them evidence: nothing is left to find them among
_ROLES: dict[str, Role] = {role: role for role in get_args(Role)}
_UP_TO_ITS_END = timedelta(days=1) - timedelta(milliseconds=1)
_NOTES = _LEFT_OUT, _UNJUDGED, _DOUBLED, _UNFOUND, _EARLY, _PICTURE = (
    "abstention questions are left out, as LongMemEval's script leaves them out",
    "questions without evidence in a user's turn are left out",
    "sessions have an id that stands in their haystack before; their place tells them apart",
    "evidence sessions are not in their haystack",
    "questions are dated before the last session of their haystack, and asked at that",
    "questions are asked of a picture, which is not read",
)


class _Session(NamedTuple):
    """A session of a haystack."""

    key: str
    """Its id; with its place where the haystack lists that id before."""
    said_at: datetime | None
    turns: tuple[Record, ...]


class _Asked(NamedTuple):
    """A question about a haystack."""

    query: Query
    answer: str | None
    evidence: tuple[str, ...] = ()
    is_own: bool = True
    """Whether LongMemEval asks it, so that marks on turns are about it."""


class _Haystack(NamedTuple):
    """The sessions that questions are asked of, by date, whatever order they are recorded in."""

    name: str
    sessions: tuple[_Session, ...]
    asked: tuple[_Asked, ...]
    counts: Mapping[str, int] = {}

    def opaque(self, *names: object) -> str:
        """An id of it, of one of its sessions or of a turn; recorded ids of evidence sessions begin with `answer`."""
        return opaque_id("longmemeval", self.name, *map(str, names))


@dataclass(frozen=True, slots=True)
class LongMemEval(PublishedFile):
    """S, M and oracle as published, 500 questions each with a haystack of its own; or the development part's three; or
    the 451 questions of LongMemEval-V2, of which nobody says what answers them.

    Times: a turn has its session's; a question is asked when it was, or at the last session where that is later, and in
    the development part at the end of its day; V2 has none. Judged units: turn and session. `only` names haystacks
    by question id; what is not taken is not kept in memory.
    """

    protocol: Protocol = "official"
    """`official`: as LongMemEval's own script: the user's turns alone, no abstention questions, and no question without
    evidence in one of those turns. `all`: every turn and every question; where no turn of an evidence session is
    marked, the session is judged."""
    added_questions: bool = True
    """Whether questions of the development part that are not LongMemEval's are taken too: a mirror's author asked them
    of distractor sessions. No turn is marked for them, so `official` leaves them out in any case."""

    card: ClassVar[Card] = read_card("longmemeval")

    def __post_init__(self) -> None:
        PublishedFile.__post_init__(self)
        check_choice(self, protocol=Protocol)

    def load(self) -> Dataset:
        found = self.find(any_of(QUESTIONS, HAYSTACKS, HAYSTACKS_V2))
        is_development, is_v2 = HAYSTACKS.is_held_by(found.path), HAYSTACKS_V2.is_held_by(found.path)
        if is_v2 and self.protocol == "official":
            raise DatasetError(
                f"{found.path} is of LongMemEval-V2, which names no evidence, and protocol=official leaves out what "
                "none is named for: set dataset.protocol=all"
            )
        beside = [self.identified(path).pin for path in (_files_beside(found.path) if is_v2 else ())]
        read = _of_development if is_development else _of_v2 if is_v2 else _of_published
        draft, known, own, said = Draft(), list[str](), list[str | None](), dict[str, str]()
        draft.counts.update(dict.fromkeys(_NOTES, 0))
        n_alone = 0
        for haystack in read(found.path, self.only, known):
            own += [one.query.category for one in haystack.asked if one.is_own]
            if sum(self._ask(one, haystack, draft) for one in haystack.asked):
                draft.transcripts.append(self._transcript(haystack, said))
                draft.counts.update(haystack.counts)
                keys = {session.key for session in haystack.sessions}
                n_alone += all(set(one.evidence) == keys for one in haystack.asked)
        self.check_part(known, found.path.name)
        n_haystacks = len(draft.transcripts)
        draft.counts[f"of {n_haystacks} haystacks hold evidence alone: a session measure tells nothing"] = n_alone
        times = "times=none" if is_v2 else "times=recorded"
        added = f"added_questions={self.added_questions}" if is_development else times
        protocol = f"protocol={self.protocol} {added} unit=turn,session"
        answerable = tuple(category for category in dict.fromkeys(own) if category and category != _ABSTENTION)
        groups = {}
        if self.protocol == "all" and is_development and self.added_questions:
            groups["longmemeval"] = answerable
        elif self.protocol == "all" and _ABSTENTION in own:
            groups["answerable"] = answerable
        left_out = (f"haystack {_EVIDENCE_ONLY} is left out: all of its sessions are evidence",) * is_development
        pins = [found.pin, *beside]
        return self.dataset(draft, protocol, [found], pins=pins, notes=left_out, groups=groups)

    def _ask(self, asked: _Asked, haystack: _Haystack, draft: Draft) -> bool:
        """Add a question; whether the protocol takes it."""
        query, is_official = asked.query, self.protocol == "official"
        is_abstention = query.category == _ABSTENTION
        if not (asked.is_own or self.added_questions):
            return False
        turns, sessions = self._evidence(haystack, asked)
        if is_official and (is_abstention or not turns):
            draft.counts[_LEFT_OUT if is_abstention else _UNJUDGED] += 1
            return False
        draft.queries.append(query)
        if is_abstention:
            draft.unanswerable.add(query.query_id)
        elif asked.answer is not None:
            draft.answers.append((query.query_id, asked.answer))
        draft.judge(query.query_id, turns)
        draft.session_qrels += [] if is_official else [(query.query_id, session_id, 1) for session_id in sessions]
        return True

    def _evidence(self, haystack: _Haystack, asked: _Asked) -> tuple[list[str], list[str]]:
        """Message ids of the marked turns; session ids of evidence sessions without one."""
        by_key = {session.key: session for session in haystack.sessions}
        turns, sessions = [], []
        for key in asked.evidence:
            # The marks are about LongMemEval's question.
            marked = [n for n, turn in self._heard(by_key[key]) if turn.fields.get("has_answer") and asked.is_own]
            turns += [haystack.opaque(key, number) for number in marked]
            sessions += [] if marked else [haystack.opaque(key)]
        return turns, sessions

    def _heard(self, session: _Session) -> Iterator[tuple[int, Record]]:
        """The turns that the protocol takes in, each with its place in the session."""
        for number, turn in enumerate(session.turns):
            if self.protocol == "all" or turn.get("role", str) == "user":
                yield number, turn

    def _transcript(self, haystack: _Haystack, said: dict[str, str]) -> Transcript:
        """The turns without their marks `has_answer`, which give the answer away. Haystacks share most of their
        sessions: what is `said` is kept once."""
        messages = list[Message]()
        for session in haystack.sessions:
            for number, turn in self._heard(session):
                role, content = turn.get("role", str), turn.get("content", str)
                if role not in _ROLES:
                    raise turn.wrong("role", f"must be one of {', '.join(_ROLES)}, got {role!r}")
                content = said.setdefault(content, content)
                ids = haystack.opaque(session.key, number), haystack.opaque(session.key)
                native, said_at = {"role": role, "content": content}, session.said_at
                messages.append(text_message(*ids, content, native, role=_ROLES[role], created_at=said_at))
        return Transcript(haystack.opaque(), tuple(messages), workspace_id=haystack.name)


def _of_development(path: Path, only: Sequence[str] | None, known: list[str]) -> Iterator[_Haystack]:
    """Haystacks of the development part, as `_of_published`: a record has several questions, each asked in the last
    millisecond of its day."""
    for record in json_lines(path):
        haystack_id = record.get("haystack_id", str)
        if haystack_id == _EVIDENCE_ONLY:
            continue
        known.append(haystack_id)
        if only is not None and haystack_id not in only:
            continue
        sessions, asked = _sessions(record), []
        keys = {session.key for session in sessions}
        for index, question in enumerate(record.each("questions")):
            day = _time(question, "question_date", question.get("question_date", str)).replace(hour=0, minute=0)
            text, kind, end = question.get("question", str), question.get("question_type", str), day + _UP_TO_ITS_END
            query = Query(f"{haystack_id}/{index}", text, end, haystack_id, kind)
            evidence = tuple(key for key in question.texts("answer_session_ids") if key in keys)
            is_own = question.get("origin", str) == "longmemeval"
            asked.append(_Asked(query, question.find_words("answer"), evidence, is_own))
        yield _Haystack(haystack_id, sessions, tuple(asked))


def _of_published(path: Path, only: Sequence[str] | None, known: list[str]) -> Iterator[_Haystack]:
    """Haystacks of a published file: one record a question, with a haystack of its own. The file is read as a stream,
    and no further than to the last question of `only`; the ids that are passed are added to `known`."""
    left = None if only is None else set(only)
    for record in json_array_stream(path):
        question_id = record.get("question_id", str)
        if question_id in known:
            raise record.wrong("question_id", f"is that of an earlier record, {question_id!r}")
        known.append(question_id)
        if left is not None and question_id not in left:
            continue
        yield _published(question_id, record)
        if left is not None:
            left.discard(question_id)
            if not left:
                return


def _published(question_id: str, record: Record) -> _Haystack:
    sessions = _sessions(record)
    ids = record.texts("haystack_session_ids")
    keys_of: dict[str, list[str]] = {}
    for key, session_id in zip(_keys(ids), ids, strict=True):
        keys_of.setdefault(session_id, []).append(key)
    named = list(dict.fromkeys(record.texts("answer_session_ids")))
    dated = _time(record, "question_date", record.get("question_date", str))
    ended = max((session.said_at for session in sessions if session.said_at is not None), default=dated)
    category = _ABSTENTION if question_id.endswith("_abs") else record.get("question_type", str)
    query = Query(question_id, record.get("question", str), max(dated, ended), question_id, category)
    evidence = tuple(key for session_id in named for key in keys_of.get(session_id, ()))
    counts = {
        _DOUBLED: len(ids) - len(keys_of),
        _UNFOUND: sum(one not in keys_of for one in named),
        _EARLY: int(dated < ended),
    }
    return _Haystack(question_id, sessions, (_Asked(query, record.find_words("answer"), evidence),), counts)


def _sessions(record: Record) -> tuple[_Session, ...]:
    ids, dates = record.texts("haystack_session_ids"), record.texts("haystack_dates")
    recorded = record.get("haystack_sessions", list)
    if not len(ids) == len(dates) == len(recorded):
        raise record.wrong("haystack_sessions", f"must be {len(ids)}, one for each id and date, got {len(recorded)}")
    sessions = list[tuple[datetime, int, _Session]]()
    for place, (key, date) in enumerate(zip(_keys(ids), dates, strict=True)):
        turns = Record(record.place, {f"haystack_sessions[{place}]": recorded[place]})
        said_at = _time(record, "haystack_dates", date)
        session = _Session(key, said_at, tuple(turns.each(f"haystack_sessions[{place}]")))
        sessions.append((said_at, place, session))
    return tuple(session for _, _, session in sorted(sessions, key=lambda one: one[:2]))


def _keys(ids: Sequence[str]) -> Iterator[str]:
    """Some haystacks list an id twice: its place tells the second from the first."""
    before = Counter[str]()
    for place, session_id in enumerate(ids):
        before[session_id] += 1
        yield session_id if before[session_id] == 1 else f"{session_id} at {place}"


def _time(record: Record, key: str, text: str) -> datetime:
    return record.instant(key, text, "%Y/%m/%d (%a) %H:%M", "a time such as '2023/05/20 (Sat) 02:21'")


def _files_beside(path: Path) -> tuple[Path, Path]:
    """The questions and the trajectories of a file of haystacks: beside it, or in the folder above."""
    for place in (path.parent, path.parent.parent):
        found = place / _QUESTIONS_V2, place / _TRAJECTORIES
        if all(one.is_file() for one in found):
            return found
    raise DatasetError(
        f"{path} says which trajectories a question is asked of; {_QUESTIONS_V2} and {_TRAJECTORIES} are not "
        "both beside it, nor in the folder above; `lcm datasets longmemeval` tells how to get them"
    )


def _of_v2(path: Path, only: Sequence[str] | None, known: list[str]) -> Iterator[_Haystack]:
    """Haystacks of V2, as `_of_published`; of the trajectories those are kept that one of the questions is asked of."""
    of_questions, of_trajectories = _files_beside(path)
    content = json_value(path)
    given = Record(path.name, content if isinstance(content, dict) else {})
    known += given.fields
    wanted = {name: given.texts(name) for name in given.fields if only is None or name in only}
    questions = {one.get("id", str): one for one in json_lines(of_questions)}
    held = {one for ids in wanted.values() for one in ids}
    sessions = {
        name: _Session(name, None, tuple(_turns(record)))
        for record in json_lines(of_trajectories)
        if (name := record.get("id", str)) in held
    }
    for question_id, ids in wanted.items():
        if question_id not in questions:
            raise given.wrong(question_id, f"is no question of {of_questions.name}")
        if missing := [one for one in ids if one not in sessions]:
            raise given.wrong(question_id, f"names {missing[0]!r}, which {of_trajectories.name} does not hold")
        question = questions[question_id]
        category = question.get("question_type", str)
        category = _ABSTENTION if category.endswith("-abs") else category
        query = Query(question_id, question.get("question", str), ASKED_AT, question_id, category)
        asked = _Asked(query, question.find_words("answer"))
        counts = {_PICTURE: int(question.find("image", str) is not None)}
        yield _Haystack(question_id, tuple(sessions[one] for one in dict.fromkeys(ids)), (asked,), counts)


def _turns(record: Record) -> Iterator[Record]:
    """Give the turns of a trajectory: the goal; of each state the page as text, the thought and the action; the end."""

    def turn(of: Record, role: str, *lines: str | None) -> Record:
        return Record(of.place, {"role": role, "content": "\n".join(filter(None, lines))})

    yield turn(record, "user", record.get("goal", str))
    for state in record.each("states"):
        yield turn(state, "tool", state.get("url", str), state.get("accessibility_tree", str))
        if any(done := [state.find(name, str) for name in ("thought", "action")]):
            yield turn(state, "assistant", *done)
    if outcome := record.find("outcome", str):
        yield turn(record, "tool", f"outcome: {outcome}")
