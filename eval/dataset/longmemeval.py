"""LongMemEval: months of sessions of one user with an assistant, with a question about a few of them."""

import gzip
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, Literal

import polars as pl

from eval.dataset.card import Card, PinnedFile, dataset_digest, folder, read_pinned
from eval.dataset.dataset import QRELS_SCHEMA, SESSION_QRELS_SCHEMA, Dataset, opaque_id
from lcm.checks import check_choice
from lcm.records.conversation import Message, Part, Transcript
from lcm.records.query import Query

Protocol = Literal["official", "all"]

_HAYSTACKS = PinnedFile(
    "haystacks_full_dev.jsonl.gz", "7f5643f812cccdcd287eb09f270a64e783777e790069a322ca21818b67e742e9"
)
_EVIDENCE_ONLY = "gpt4_2655b836"  # 3 sessions, all of them evidence: nothing is left to find them among


@dataclass(frozen=True, slots=True)
class LongMemEval:
    """The whole haystacks of the development part: 3 haystacks, 19 questions.

    Times: a turn has its session's; a question is asked at the end of its day. Judged units: turn and session.
    """

    directory: str | None = None
    """None: the folder `longmemeval` in `LCM_DATASETS_DIR`."""
    protocol: Protocol = "official"
    """`official`: as LongMemEval's own script: the user's turns alone, and no question without evidence in one of them.
    `all`: every turn and every question; where no turn of an evidence session is marked, the session is judged."""
    added_questions: bool = True
    """Whether questions that are not LongMemEval's are taken too: a mirror's author asked them of distractor sessions.
    No turn is marked for them, so `official` leaves them out in any case."""

    card: ClassVar[Card] = Card(
        name="longmemeval",
        title="LongMemEval_S, development part: the 3 haystacks that could be obtained whole, 3 + 16 questions",
        licence="MIT",
        origin="xiaowu0162/LongMemEval, by way of zjunlp/LightMem commit 8fc9a9179f91, "
        "MuhammadNoor7/Parallel-Hybrid-Retrieval-... commit 3d2d10e2ca21, MemMachine/MemMachine commit 18f1211290c5",
        how_to_get="write {haystack_id, origin, haystack_session_ids, haystack_dates, haystack_sessions, questions} of "
        "e47becba, 852ce960, ba358f49, gpt4_2655b836, in that order (Python: json.dumps(record, ensure_ascii=False) "
        "plus a newline, through gzip.GzipFile with an empty filename, compresslevel=9, mtime=0)",
        files=(_HAYSTACKS,),
    )

    def __post_init__(self) -> None:
        check_choice(self, protocol=Protocol)

    def load(self) -> Dataset:
        raw = read_pinned(folder(self.card, self.directory), (_HAYSTACKS,))
        records = [json.loads(line) for line in gzip.decompress(raw[_HAYSTACKS.path]).splitlines()]
        records = [record for record in records if record["haystack_id"] != _EVIDENCE_ONLY]
        transcripts, queries, qrels, session_qrels, unjudged = [], [], [], [], 0
        for record in records:
            transcripts.append(self._transcript(record))
            for index, question in enumerate(record["questions"]):
                if not (self.added_questions or _is_own(question)):
                    continue
                query_id = f"{record['haystack_id']}/{index}"
                turns, sessions = self._evidence(record, question)
                if self.protocol == "official" and not turns:
                    unjudged += 1
                    continue
                queries.append(
                    Query(
                        query_id,
                        question["question"],
                        _end_of_day(question["question_date"]),
                        workspace_id=record["haystack_id"],
                        category=question["question_type"],
                    )
                )
                qrels += [(query_id, message_id, 1) for message_id in turns]
                session_qrels += [(query_id, session_id, 1) for session_id in sessions]
        protocol = f"protocol={self.protocol} added_questions={self.added_questions} unit=turn,session"
        own = tuple(dict.fromkeys(q["question_type"] for record in records for q in record["questions"] if _is_own(q)))
        return Dataset(
            name="longmemeval",
            protocol=protocol,
            digest=dataset_digest((_HAYSTACKS,), protocol),
            transcripts=tuple(transcripts),
            queries=tuple(queries),
            qrels=pl.DataFrame(qrels, schema=QRELS_SCHEMA, orient="row"),
            session_qrels=pl.DataFrame(session_qrels, schema=SESSION_QRELS_SCHEMA, orient="row"),
            groups={"longmemeval": own} if self.protocol == "all" and self.added_questions else {},
            notes=(
                f"haystack {_EVIDENCE_ONLY} is left out: all of its sessions are evidence",
                *((f"{unjudged} questions without evidence in a user's turn are left out",) if unjudged else ()),
            ),
        )

    def _transcript(self, record: Mapping[str, Any]) -> Transcript:
        """The haystack's sessions by date, whatever order they are recorded in."""
        haystack = record["haystack_id"]
        recorded = zip(
            record["haystack_dates"], record["haystack_session_ids"], record["haystack_sessions"], strict=True
        )
        messages = [
            _message(haystack, session, number, turn, _session_time(date))
            for date, session, turns in sorted(recorded, key=lambda dated: _session_time(dated[0]))
            for number, turn in self._heard(turns)
        ]
        return Transcript(opaque_id("longmemeval", haystack), tuple(messages), workspace_id=haystack)

    def _evidence(self, record: Mapping[str, Any], question: Mapping[str, Any]) -> tuple[list[str], list[str]]:
        """Message ids of the marked turns; session ids of evidence sessions without one (never under `official`)."""
        haystack = record["haystack_id"]
        content = dict(zip(record["haystack_session_ids"], record["haystack_sessions"], strict=True))
        turns, sessions = [], []
        for session in question["answer_session_ids"]:
            # The marks are about the haystack's own question.
            marked = [n for n, turn in self._heard(content[session]) if turn.get("has_answer") and _is_own(question)]
            turns += [_message_id(haystack, session, number) for number in marked]
            if not marked and self.protocol == "all":
                sessions.append(_session_id(haystack, session))
        return turns, sessions

    def _heard(self, turns: list[Mapping[str, Any]]) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """The turns that the protocol takes in, each with its place in the session."""
        for number, turn in enumerate(turns):
            if self.protocol == "all" or turn["role"] == "user":
                yield number, turn


def _message(haystack: str, session: str, number: int, turn: Mapping[str, Any], said_at: datetime) -> Message:
    """The turn without its mark `has_answer`, which gives the answer away."""
    return Message(
        message_id=_message_id(haystack, session, number),
        role=turn["role"],
        content=turn["content"],
        session_id=_session_id(haystack, session),
        created_at=said_at,
        parts=(Part("text", text=turn["content"]),),
        envelope={"native": {key: turn[key] for key in ("role", "content")}, "slots": {}},
    )


def _message_id(haystack: str, session: str, number: int) -> str:
    return opaque_id("longmemeval", haystack, session, str(number))


def _session_id(haystack: str, session: str) -> str:
    """Recorded ids of evidence sessions begin with `answer`: nothing may see them."""
    return opaque_id("longmemeval", haystack, session)


def _is_own(question: Mapping[str, Any]) -> bool:
    return bool(question["origin"] == "longmemeval")


def _session_time(text: str) -> datetime:
    """`2023/05/20 (Sat) 02:21`; LongMemEval names no zone, so UTC."""
    return datetime.strptime(text, "%Y/%m/%d (%a) %H:%M").replace(tzinfo=UTC)


def _end_of_day(text: str) -> datetime:
    """The last millisecond of a time's day."""
    midnight = _session_time(text).replace(hour=0, minute=0)
    return midnight + timedelta(days=1) - timedelta(milliseconds=1)
