"""LongMemEval's files, as they were published and as the development part has them, read as haystacks."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from eval.dataset.card import PinnedFile, Release
from eval.dataset.fields import Record, json_array_stream, json_lines
from eval.dataset.published import Shape, json_records, unpacked_lines

HAYSTACKS: Shape = json_records("lines", ("haystack_id",), ())
QUESTIONS: Shape = json_records("array", ("question_id",), ("haystack_dates", "haystack_session_ids"))

ABSTENTION = "abstention"
"""The category of questions whose haystack does not hold the answer: their ids end with `_abs`."""
_HUB = "https://huggingface.co/datasets/xiaowu0162/"
_CLEANED = f"{_HUB}longmemeval-cleaned/resolve/98d7416c24c778c2fee6e6f3006e7a073259d48f/"
_FIRST = f"{_HUB}longmemeval/resolve/2ec2a557f339b6c0369619b1ed5793734cc87533/"


def _release(name: str, title: str, path: str, size_bytes: int, sha256: str, url: str) -> Release:
    return Release(name, title, (PinnedFile(path, sha256, size_bytes),), url)


DEVELOPMENT = Release(
    name="development",
    title="haystacks e47becba, 852ce960, ba358f49 and gpt4_2655b836, by way of four repositories",
    files=(
        PinnedFile("haystacks_full_dev.jsonl.gz", "7f5643f812cccdcd287eb09f270a64e783777e790069a322ca21818b67e742e9"),
    ),
    is_told=False,
)
RELEASES = (
    _release(
        "s_cleaned",
        "LongMemEval_S, cleaned, xiaowu0162/longmemeval-cleaned 98d7416",
        "longmemeval_s_cleaned.json",
        277_383_467,
        "d6f21ea9d60a0d56f34a05b609c79c88a451d2ae03597821ea3d5a9678c3a442",
        _CLEANED,
    ),
    _release(
        "m_cleaned",
        "LongMemEval_M, cleaned, xiaowu0162/longmemeval-cleaned 98d7416",
        "longmemeval_m_cleaned.json",
        2_737_100_077,
        "9d79e5524794a2e6900a3aa9cb7d9152c5a3e8319c9a87c25494ba1eacee495f",
        _CLEANED,
    ),
    _release(
        "oracle",
        "LongMemEval, evidence sessions alone, the same in both repositories of xiaowu0162",
        "longmemeval_oracle.json",
        15_388_478,
        "821a2034d219ab45846873dd14c14f12cfe7776e73527a483f9dac095d38620c",
        _CLEANED,
    ),
    _release(
        "s",
        "LongMemEval_S, as first published, xiaowu0162/longmemeval 2ec2a55",
        "longmemeval_s",
        278_025_796,
        "08d8dad4be43ee2049a22ff5674eb86725d0ce5ff434cde2627e5e8e7e117894",
        _FIRST,
    ),
    _release(
        "m",
        "LongMemEval_M, as first published, xiaowu0162/longmemeval 2ec2a55",
        "longmemeval_m",
        2_745_274_681,
        "fb5413e3b077c62927daab794836991a2fcfa61ceacab57dc679fb02daaff2d9",
        _FIRST,
    ),
    DEVELOPMENT,
)


@dataclass(frozen=True, slots=True)
class Session:
    """A session of a haystack."""

    key: str
    """Its id; with its place where the haystack lists that id before."""
    said_at: datetime | None
    """None: the file does not say."""
    turns: tuple[Record, ...]


@dataclass(frozen=True, slots=True)
class Asked:
    """A question about a haystack."""

    query_id: str
    text: str
    category: str
    asked_at: datetime
    evidence: tuple[str, ...]
    """Keys of its evidence sessions."""
    is_own: bool
    """Whether LongMemEval asks it, so that marks on turns are about it."""
    is_abstention: bool
    """Whether the haystack does not hold the answer."""
    answer: str | None
    """None: the file does not say."""
    has_picture: bool = False
    """True = the question comes with a picture, which is not read."""


@dataclass(frozen=True, slots=True)
class Haystack:
    """The sessions that questions are asked of, by date, whatever order they are recorded in."""

    haystack_id: str
    sessions: tuple[Session, ...]
    questions: tuple[Asked, ...]
    doubled: int
    """Sessions under an id that the haystack lists before."""
    unfound: int
    """Evidence sessions that are not in the haystack."""
    is_asked_early: bool
    """Whether its question is dated before its last session."""

    @property
    def is_evidence_alone(self) -> bool:
        keys = {session.key for session in self.sessions}
        return all(set(question.evidence) == keys for question in self.questions)


def development_haystacks(path: Path) -> Iterator[Haystack]:
    """Of the development part: one record a haystack, with several questions, each asked at the end of its day."""
    for record in json_lines(unpacked_lines(path), path.name):
        haystack_id = record.get("haystack_id", str)
        sessions = _sessions(record)
        keys = {session.key for session in sessions}
        questions = tuple(
            Asked(
                query_id=f"{haystack_id}/{index}",
                text=question.get("question", str),
                category=question.get("question_type", str),
                asked_at=_end_of_day(_time(question, "question_date", question.get("question_date", str))),
                evidence=tuple(key for key in question.texts("answer_session_ids") if key in keys),
                is_own=question.get("origin", str) == "longmemeval",
                is_abstention=False,
                answer=question.find_words("answer"),
            )
            for index, question in enumerate(record.each("questions"))
        )
        yield Haystack(haystack_id, sessions, questions, 0, 0, is_asked_early=False)


def published_haystacks(path: Path, only: Sequence[str] | None, known: list[str]) -> Iterator[Haystack]:
    """Of a published file: one record a question, with a haystack of its own. The file is read as a stream, and no
    further than to the last question of `only`.

    Args:
        path: of the file.
        only: the questions that are taken, by id; None: all.
        known: the ids that are passed are added here, in order.
    """
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


def _published(question_id: str, record: Record) -> Haystack:
    sessions = _sessions(record)
    ids = record.texts("haystack_session_ids")
    keys_of: dict[str, list[str]] = {}
    for key, session_id in zip(_keys(ids), ids, strict=True):
        keys_of.setdefault(session_id, []).append(key)
    named = list(dict.fromkeys(record.texts("answer_session_ids")))
    asked = _time(record, "question_date", record.get("question_date", str))
    ended = max((session.said_at for session in sessions if session.said_at is not None), default=asked)
    is_abstention = question_id.endswith("_abs")
    question = Asked(
        query_id=question_id,
        text=record.get("question", str),
        category=ABSTENTION if is_abstention else record.get("question_type", str),
        asked_at=max(asked, ended),
        evidence=tuple(key for session_id in named for key in keys_of.get(session_id, ())),
        is_own=True,
        is_abstention=is_abstention,
        answer=record.find_words("answer"),
    )
    return Haystack(
        haystack_id=question_id,
        sessions=sessions,
        questions=(question,),
        doubled=len(ids) - len(keys_of),
        unfound=sum(one not in keys_of for one in named),
        is_asked_early=asked < ended,
    )


def _sessions(record: Record) -> tuple[Session, ...]:
    ids, dates = record.texts("haystack_session_ids"), record.texts("haystack_dates")
    recorded = record.get("haystack_sessions", list)
    if not len(ids) == len(dates) == len(recorded):
        raise record.wrong("haystack_sessions", f"must be {len(ids)}, one for each id and date, got {len(recorded)}")
    sessions = list[tuple[datetime, int, Session]]()
    for place, (key, date) in enumerate(zip(_keys(ids), dates, strict=True)):
        turns = Record(record.place, {f"haystack_sessions[{place}]": recorded[place]})
        said_at = _time(record, "haystack_dates", date)
        session = Session(key, said_at, tuple(turns.each(f"haystack_sessions[{place}]")))
        sessions.append((said_at, place, session))
    return tuple(session for _, _, session in sorted(sessions, key=lambda one: one[:2]))


def _keys(ids: Sequence[str]) -> Iterator[str]:
    """Some haystacks list an id twice: its place tells the second from the first."""
    before = Counter[str]()
    for place, session_id in enumerate(ids):
        before[session_id] += 1
        yield session_id if before[session_id] == 1 else f"{session_id} at {place}"


def _time(record: Record, key: str, text: str) -> datetime:
    """`2023/05/20 (Sat) 02:21`; LongMemEval names no zone, so UTC."""
    try:
        return datetime.strptime(text, "%Y/%m/%d (%a) %H:%M").replace(tzinfo=UTC)
    except ValueError as error:
        raise record.wrong(key, f"must be a time such as '2023/05/20 (Sat) 02:21', got {text!r}") from error


def _end_of_day(time: datetime) -> datetime:
    """The last millisecond of a time's day."""
    return time.replace(hour=0, minute=0) + timedelta(days=1) - timedelta(milliseconds=1)
