"""LongMemEval: months of sessions of one user with an assistant, with a question about a few of them."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Literal, get_args

import polars as pl

from eval.dataset.card import Card, dataset_digest
from eval.dataset.dataset import ANSWERS_SCHEMA, QRELS_SCHEMA, SESSION_QRELS_SCHEMA, Dataset, opaque_id
from eval.dataset.fields import Record
from eval.dataset.longmemeval_files import (
    ABSTENTION,
    HAYSTACKS,
    QUESTIONS,
    RELEASES,
    Asked,
    Haystack,
    Session,
    development_haystacks,
    published_haystacks,
)
from eval.dataset.longmemeval_v2 import HAYSTACKS_V2, RELEASES_V2, files_beside, haystacks_v2
from eval.dataset.published import any_of, check_only, check_part, find_file, identified, part_words
from lcm.checks import check_choice
from lcm.errors import DatasetError
from lcm.records.conversation import Message, Part, Role, Transcript
from lcm.records.query import Query

Protocol = Literal["official", "all"]

_EVIDENCE_ONLY = "gpt4_2655b836"  # 3 sessions, all of them evidence: nothing is left to find them among
_ROLES: dict[str, Role] = {role: role for role in get_args(Role)}


@dataclass(frozen=True, slots=True)
class LongMemEval:
    """S, M and oracle as published, 500 questions each with a haystack of its own; or the development part's three; or
    the 451 questions of LongMemEval-V2, of which nobody says what answers them.

    Times: a turn has its session's; a question is asked when it was, or at the last session where that is later, and in
    the development part at the end of its day; V2 has none. Judged units: turn and session.
    """

    directory: str | None = None
    """None: the folder `longmemeval` in `LCM_DATASETS_DIR`."""
    file: str | None = None
    """Its path below the folder, or an absolute one; None: the only file of LongMemEval there."""
    pinned: bool = False
    """Refuse a file of no known release, instead of taking it and saying so."""
    only: Sequence[str] | None = None
    """The haystacks that are taken, by question id; None: all. What is not taken is not kept in memory."""
    protocol: Protocol = "official"
    """`official`: as LongMemEval's own script: the user's turns alone, no abstention questions, and no question without
    evidence in one of those turns. `all`: every turn and every question; where no turn of an evidence session is
    marked, the session is judged."""
    added_questions: bool = True
    """Whether questions of the development part that are not LongMemEval's are taken too: a mirror's author asked them
    of distractor sessions. No turn is marked for them, so `official` leaves them out in any case."""

    card: ClassVar[Card] = Card(
        name="longmemeval",
        title="LongMemEval: 500 questions, each with a haystack of sessions (S, M, oracle); 3 haystacks in the "
        "development part",
        licence="MIT",
        origin="xiaowu0162/LongMemEval; the development part by way of zjunlp/LightMem commit 8fc9a9179f91, "
        "MuhammadNoor7/Parallel-Hybrid-Retrieval-... commit 3d2d10e2ca21, MemMachine/MemMachine commit 18f1211290c5",
        how_to_get="`lcm datasets get longmemeval release=s_cleaned`, or a file of xiaowu0162/longmemeval(-cleaned) by "
        "hand",
        releases=(*RELEASES, *RELEASES_V2),
    )

    def __post_init__(self) -> None:
        check_choice(self, protocol=Protocol)
        check_only(self.only)

    def load(self) -> Dataset:
        shapes = any_of(QUESTIONS, HAYSTACKS, HAYSTACKS_V2)
        found = find_file(self.card, shapes, self.directory, self.file, pinned=self.pinned)
        is_development = HAYSTACKS.is_held_by(found.path)
        is_v2 = HAYSTACKS_V2.is_held_by(found.path)
        if is_v2 and self.protocol == "official":
            raise DatasetError(
                f"{found.path} is of LongMemEval-V2, which names no evidence, and protocol=official leaves out what "
                "none is named for: set dataset.protocol=all"
            )
        others = files_beside(found.path) if is_v2 else ()
        beside = [identified(self.card, path, pinned=self.pinned).pin for path in others]
        known: list[str] = []
        if is_development:
            haystacks = self._development(found.path, known)
        else:
            haystacks = (haystacks_v2 if is_v2 else published_haystacks)(found.path, self.only, known)
        taken = _Taken(self.protocol, self.added_questions)
        for haystack in haystacks:
            taken.add(haystack)
        check_part(self.only, known, found.path.name)
        times = "times=none" if is_v2 else "times=recorded"
        added = f"added_questions={self.added_questions}" if is_development else times
        protocol = f"protocol={self.protocol} {added} unit=turn,session{part_words(self.only)}"
        own = tuple(category for category in dict.fromkeys(taken.own) if category != ABSTENTION)
        groups = {}
        if self.protocol == "all" and is_development and self.added_questions:
            groups["longmemeval"] = own
        elif self.protocol == "all" and ABSTENTION in taken.own:
            groups["answerable"] = own
        left_out = (f"haystack {_EVIDENCE_ONLY} is left out: all of its sessions are evidence",) * is_development
        return Dataset(
            name="longmemeval",
            protocol=protocol,
            digest=dataset_digest([found.pin, *beside], protocol),
            transcripts=tuple(taken.transcripts),
            queries=tuple(taken.queries),
            qrels=pl.DataFrame(taken.qrels, schema=QRELS_SCHEMA, orient="row"),
            session_qrels=pl.DataFrame(taken.session_qrels, schema=SESSION_QRELS_SCHEMA, orient="row"),
            answers=pl.DataFrame(taken.answers, schema=ANSWERS_SCHEMA, orient="row"),
            unanswerable=frozenset(taken.unanswerable),
            groups=groups,
            notes=(*found.notes(), *left_out, *taken.notes()),
        )

    def _development(self, path: Path, known: list[str]) -> Iterator[Haystack]:
        for haystack in development_haystacks(path):
            if haystack.haystack_id != _EVIDENCE_ONLY:
                known.append(haystack.haystack_id)
                if self.only is None or haystack.haystack_id in self.only:
                    yield haystack


@dataclass(slots=True)
class _Taken:
    """What a protocol takes of haystacks that come one by one."""

    protocol: Protocol
    added_questions: bool
    transcripts: list[Transcript] = field(default_factory=list)
    queries: list[Query] = field(default_factory=list)
    qrels: list[tuple[str, str, int]] = field(default_factory=list)
    session_qrels: list[tuple[str, str, int]] = field(default_factory=list)
    answers: list[tuple[str, str]] = field(default_factory=list)
    unanswerable: set[str] = field(default_factory=set)
    own: list[str] = field(default_factory=list)
    """Categories of LongMemEval's own questions."""
    counts: Counter[str] = field(default_factory=Counter)
    _texts: dict[str, str] = field(default_factory=dict)
    """Haystacks share most of their sessions: what is said is kept once."""

    def add(self, haystack: Haystack) -> None:
        before = len(self.queries)
        for question in haystack.questions:
            self._ask(haystack, question)
        if len(self.queries) > before:
            self.transcripts.append(self._transcript(haystack))
            self.counts["haystacks"] += 1
            self.counts["doubled"] += haystack.doubled
            self.counts["unfound"] += haystack.unfound
            self.counts["alone"] += haystack.is_evidence_alone
            self.counts["early"] += haystack.is_asked_early

    def notes(self) -> tuple[str, ...]:
        told = {
            "abstention": "abstention questions are left out, as LongMemEval's script leaves them out",
            "unjudged": "questions without evidence in a user's turn are left out",
            "doubled": "sessions have an id that stands in their haystack before; their place tells them apart",
            "unfound": "evidence sessions are not in their haystack",
            "early": "questions are dated before the last session of their haystack, and asked at that",
            "picture": "questions are asked of a picture, which is not read",
            "alone": f"of {self.counts['haystacks']} haystacks hold evidence alone: a session measure tells nothing",
        }
        return tuple(f"{self.counts[name]} {words}" for name, words in told.items() if self.counts[name])

    def _ask(self, haystack: Haystack, question: Asked) -> None:
        if question.is_own:
            self.own.append(question.category)
        elif not self.added_questions:
            return
        if self.protocol == "official" and question.is_abstention:
            self.counts["abstention"] += 1
            return
        turns, sessions = self._evidence(haystack, question)
        if self.protocol == "official" and not turns:
            self.counts["unjudged"] += 1
            return
        self.queries.append(
            Query(question.query_id, question.text, question.asked_at, haystack.haystack_id, question.category)
        )
        if question.is_abstention:
            self.unanswerable.add(question.query_id)
        elif question.answer is not None:
            self.answers.append((question.query_id, question.answer))
        self.counts["picture"] += question.has_picture
        self.qrels += [(question.query_id, message_id, 1) for message_id in turns]
        self.session_qrels += [(question.query_id, session_id, 1) for session_id in sessions]

    def _evidence(self, haystack: Haystack, question: Asked) -> tuple[list[str], list[str]]:
        """Message ids of the marked turns; session ids of evidence sessions without one (never under `official`)."""
        by_key = {session.key: session for session in haystack.sessions}
        turns, sessions = [], []
        for key in question.evidence:
            # The marks are about LongMemEval's question.
            marked = [n for n, turn in self._heard(by_key[key]) if turn.fields.get("has_answer") and question.is_own]
            turns += [_message_id(haystack.haystack_id, key, number) for number in marked]
            if not marked and self.protocol == "all":
                sessions.append(_session_id(haystack.haystack_id, key))
        return turns, sessions

    def _transcript(self, haystack: Haystack) -> Transcript:
        messages = [
            self._message(haystack.haystack_id, session, number, turn)
            for session in haystack.sessions
            for number, turn in self._heard(session)
        ]
        name = haystack.haystack_id
        return Transcript(opaque_id("longmemeval", name), tuple(messages), workspace_id=name)

    def _heard(self, session: Session) -> Iterator[tuple[int, Record]]:
        """The turns that the protocol takes in, each with its place in the session."""
        for number, turn in enumerate(session.turns):
            if self.protocol == "all" or turn.get("role", str) == "user":
                yield number, turn

    def _message(self, haystack_id: str, session: Session, number: int, turn: Record) -> Message:
        """The turn without its mark `has_answer`, which gives the answer away."""
        role, content = turn.get("role", str), turn.get("content", str)
        if role not in _ROLES:
            raise turn.wrong("role", f"must be one of {', '.join(_ROLES)}, got {role!r}")
        content = self._texts.setdefault(content, content)
        return Message(
            message_id=_message_id(haystack_id, session.key, number),
            role=_ROLES[role],
            content=content,
            session_id=_session_id(haystack_id, session.key),
            created_at=session.said_at,
            parts=(Part("text", text=content),),
            envelope={"native": {"role": role, "content": content}, "slots": {}},
        )


def _message_id(haystack: str, session: str, number: int) -> str:
    return opaque_id("longmemeval", haystack, session, str(number))


def _session_id(haystack: str, session: str) -> str:
    """Recorded ids of evidence sessions begin with `answer`: nothing may see them."""
    return opaque_id("longmemeval", haystack, session)
