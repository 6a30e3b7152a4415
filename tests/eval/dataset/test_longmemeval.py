"""LongMemEval: counts of the pinned files, and the loader's rules on a small copy of the format."""

import gzip
import hashlib
import json
import os
import re
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from eval.dataset.dataset import Dataset
from eval.dataset.longmemeval import LongMemEval, Protocol
from lcm.errors import DatasetError
from lcm.transcript.parts import rebuild
from tests.support.small_longmemeval import FILE, RECORD, write_small_longmemeval


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A folder in LongMemEval's format whose digest is pinned."""
    return write_small_longmemeval(tmp_path, monkeypatch)


def judged_turns(dataset: Dataset) -> dict[str, list[str]]:
    """Question -> the words of its evidence, in order; questions without judged turns are not in it."""
    words = {m.message_id: m.content for t in dataset.transcripts for m in t.messages}
    text = {query.query_id: query.text for query in dataset.queries}
    found: dict[str, list[str]] = {}
    for query_id, message_id, relevance in dataset.qrels.iter_rows():
        assert relevance == 1
        found.setdefault(text[query_id], []).append(words[message_id])
    return found


def judged_sessions(dataset: Dataset) -> dict[str, list[str]]:
    """Question -> the first words of each session that is judged as such."""
    first: dict[str, str] = {}
    for message in dataset.transcripts[0].messages:
        first.setdefault(message.session_id, message.content)
    text = {query.query_id: query.text for query in dataset.queries}
    found: dict[str, list[str]] = {}
    for query_id, session_id, relevance in dataset.session_qrels.iter_rows():
        assert relevance == 1
        found.setdefault(text[query_id], []).append(first[session_id])
    return found


def test_sessions_come_by_date_with_their_time(small: str) -> None:
    (transcript,) = LongMemEval(small, protocol="all").load().transcripts
    assert [(m.content, m.created_at) for m in transcript.messages] == [
        ("A recipe for leek soup", datetime(2023, 5, 20, 2, 21, tzinfo=UTC)),
        ("Hello", datetime(2023, 5, 21, 0, 0, tzinfo=UTC)),
        ("Good day", datetime(2023, 5, 21, 0, 0, tzinfo=UTC)),
        ("My mule is called Max", datetime(2023, 5, 21, 0, 0, tzinfo=UTC)),
        ("The mule is now called Otto", datetime(2023, 5, 30, 21, 40, tzinfo=UTC)),
        ("Otto it is", datetime(2023, 5, 30, 21, 40, tzinfo=UTC)),
        ("Name a lake", datetime(2023, 6, 2, 23, 59, tzinfo=UTC)),
        ("Ladoga", datetime(2023, 6, 2, 23, 59, tzinfo=UTC)),
    ]
    sessions = [m.session_id for m in transcript.messages]
    assert [sessions.index(session) for session in sessions] == [0, 1, 1, 1, 4, 4, 6, 6]


def test_a_question_is_asked_at_the_end_of_its_day(small: str) -> None:
    dataset = LongMemEval(small).load()
    assert {query.asked_at for query in dataset.queries} == {datetime(2023, 6, 2, 23, 59, 59, 999_000, tzinfo=UTC)}


def test_official_takes_in_the_users_turns_only(small: str) -> None:
    (transcript,) = LongMemEval(small).load().transcripts
    assert [m.content for m in transcript.messages] == [
        "Hello",
        "My mule is called Max",
        "The mule is now called Otto",
        "Name a lake",
    ]
    (whole,) = LongMemEval(small, protocol="all").load().transcripts
    assert {m.message_id for m in transcript.messages} == {m.message_id for m in whole.messages if m.role == "user"}


def test_official_judges_the_users_marked_turns_and_leaves_out_what_has_none(small: str) -> None:
    dataset = LongMemEval(small).load()
    assert judged_turns(dataset) == {
        "What is the mule called?": ["My mule is called Max", "The mule is now called Otto"],
        "Which lake and which mule?": ["My mule is called Max"],
    }
    assert dataset.session_qrels.is_empty()
    assert [query.text for query in dataset.queries] == ["What is the mule called?", "Which lake and which mule?"]
    assert dataset.notes == (
        "haystack gpt4_2655b836 is left out: all of its sessions are evidence",
        "3 questions without evidence in a user's turn are left out",
    )


def test_all_judges_marked_turns_of_both_and_sessions_without_a_mark(small: str) -> None:
    dataset = LongMemEval(small, protocol="all").load()
    assert judged_turns(dataset) == {
        "What is the mule called?": ["My mule is called Max", "The mule is now called Otto", "Otto it is"],
        "Which lake and which mule?": ["Ladoga", "My mule is called Max"],
        "Which lake?": ["Ladoga"],
    }
    assert judged_sessions(dataset) == {"Which soup?": ["A recipe for leek soup"], "Which mule first?": ["Hello"]}
    assert dataset.notes == ("haystack gpt4_2655b836 is left out: all of its sessions are evidence",)


def test_added_questions_can_be_left_out(small: str) -> None:
    own = LongMemEval(small, protocol="all", added_questions=False).load()
    assert [query.query_id for query in own.queries] == ["hay1/0", "hay1/1", "hay1/2"]
    assert own.groups == {}
    both = LongMemEval(small, protocol="all").load()
    assert [query.query_id for query in both.queries] == [f"hay1/{n}" for n in range(5)]
    assert both.groups == {"longmemeval": ("knowledge-update", "multi-session", "single-session-assistant")}
    notes = LongMemEval(small, added_questions=False).load().notes
    assert notes[1:] == ("1 questions without evidence in a user's turn are left out",)


def test_a_category_is_the_recorded_type(small: str) -> None:
    assert [query.category for query in LongMemEval(small, protocol="all").load().queries] == [
        "knowledge-update",
        "multi-session",
        "single-session-assistant",
        "single-session-added",
        "single-session-added",
    ]


def test_a_haystack_is_a_workspace_and_the_one_of_evidence_alone_is_none(small: str) -> None:
    dataset = LongMemEval(small).load()
    assert [t.workspace_id for t in dataset.transcripts] == ["hay1"]
    assert {query.workspace_id for query in dataset.queries} == {"hay1"}


def test_nothing_that_gives_an_answer_away_reaches_the_system(small: str) -> None:
    (transcript,) = LongMemEval(small, protocol="all").load().transcripts
    told = repr(transcript)
    assert not [hint for hint in ("answer", "sharegpt", "noans") if hint in told]
    ids = {m.message_id for m in transcript.messages} | {m.session_id for m in transcript.messages}
    ids |= {transcript.conversation_id}
    assert len(ids) == 8 + 4 + 1
    assert all(re.fullmatch(r"[0-9a-f]{16}", one) for one in ids)


def test_a_turn_rebuilds_without_its_mark(small: str) -> None:
    (transcript,) = LongMemEval(small, protocol="all").load().transcripts
    assert rebuild(transcript.messages[3]) == {"role": "user", "content": "My mule is called Max"}
    assert [[part.text for part in m.parts] for m in transcript.messages] == [[m.content] for m in transcript.messages]


def test_each_setting_has_its_own_digest(small: str) -> None:
    protocols: tuple[Protocol, ...] = ("official", "all")
    loaders = [LongMemEval(small, protocol=p, added_questions=added) for p in protocols for added in (True, False)]
    assert len({loader.load().digest for loader in loaders}) == 4
    assert LongMemEval(small).load().digest == loaders[0].load().digest


def test_another_file_is_taken_and_told_or_refused_with_both_digests(small: str) -> None:
    path = Path(small) / FILE
    known = hashlib.sha256(path.read_bytes()).hexdigest()
    path.write_bytes(gzip.compress(json.dumps(RECORD).encode(), mtime=0))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert LongMemEval(small).load().notes[0] == f"{FILE} is no known release, taken as it is (sha256 {digest})"
    with pytest.raises(DatasetError, match=f"sha256 is {digest}, expected {known} "):
        LongMemEval(small, pinned=True).load()


def test_an_unknown_protocol_is_refused() -> None:
    with pytest.raises(ValueError, match="protocol must be one of: all, official, got 'lmeb'"):
        LongMemEval(protocol="lmeb")  # type: ignore[arg-type]


if os.environ.get("LCM_DATASETS_DIR"):
    FOLDER = Path(os.environ["LCM_DATASETS_DIR"]) / "longmemeval"
    SESSIONS = {"e47becba": 53, "852ce960": 39, "ba358f49": 41, "gpt4_2655b836": 3}
    TURNS = {"e47becba": 550, "852ce960": 396, "ba358f49": 409, "gpt4_2655b836": 13}
    USER_TURNS = {"e47becba": 273, "852ce960": 197, "ba358f49": 204, "gpt4_2655b836": 7}
    QUESTIONS = {"e47becba": (1, 0), "852ce960": (1, 8), "ba358f49": (1, 8), "gpt4_2655b836": (1, 0)}
    """LongMemEval's, added."""
    MARKED = {"e47becba": (1, 1), "852ce960": (2, 0), "ba358f49": (2, 0), "gpt4_2655b836": (2, 0)}
    """Turns with evidence: the user's, the assistant's."""
    WHOLE = ("e47becba", "852ce960", "ba358f49")

    def lines(name: str) -> list[dict[str, Any]]:
        with gzip.open(FOLDER / name, "rt", encoding="utf-8") as recorded:
            return [json.loads(line) for line in recorded]

    @pytest.fixture(scope="module")
    def haystacks() -> dict[str, dict[str, Any]]:
        return {record["haystack_id"]: record for record in lines("haystacks_full_dev.jsonl.gz")}

    def test_the_cards_counts_hold_without_the_loader(haystacks: dict[str, dict[str, Any]]) -> None:
        turns = {name: [t for s in record["haystack_sessions"] for t in s] for name, record in haystacks.items()}
        marked = {name: Counter(t["role"] for t in said if t.get("has_answer")) for name, said in turns.items()}
        assert {name: len(record["haystack_sessions"]) for name, record in haystacks.items()} == SESSIONS
        assert {name: len(said) for name, said in turns.items()} == TURNS
        assert {name: sum(t["role"] == "user" for t in said) for name, said in turns.items()} == USER_TURNS
        assert {name: (roles["user"], roles["assistant"]) for name, roles in marked.items()} == MARKED
        origins = {
            name: [q["origin"] == "longmemeval" for q in record["questions"]] for name, record in haystacks.items()
        }
        assert {name: (sum(own), len(own) - sum(own)) for name, own in origins.items()} == QUESTIONS
        sessions = [session for name in WHOLE for session in haystacks[name]["haystack_sessions"]]
        assert sum(session[0]["role"] == "assistant" for session in sessions) == 7
        assert sum(all(turn["role"] == "assistant" for turn in session) for session in sessions) == 1

    def test_marks_stand_on_turns_of_evidence_sessions_of_the_haystacks_own_question(
        haystacks: dict[str, dict[str, Any]],
    ) -> None:
        for record in haystacks.values():
            content = zip(record["haystack_session_ids"], record["haystack_sessions"], strict=True)
            marked = {name for name, session in content if any("has_answer" in turn for turn in session)}
            assert marked == {name for name in record["haystack_session_ids"] if name.startswith("answer_")}
            assert marked == set(record["questions"][0]["answer_session_ids"])
            added = [name for q in record["questions"][1:] for name in q["answer_session_ids"]]
            assert len(added) == len(record["questions"]) - 1
            assert set(added) <= set(record["haystack_session_ids"]) - marked

    def test_only_852ce960_is_out_of_order_among_the_whole_haystacks(haystacks: dict[str, dict[str, Any]]) -> None:
        dates = {name: haystacks[name]["haystack_dates"] for name in WHOLE}
        assert [name for name in WHOLE if dates[name] != sorted(dates[name])] == ["852ce960"]

    @pytest.mark.parametrize(
        ("protocol", "added", "turns", "sessions", "questions", "judged_turns", "judged_sessions"),
        [
            ("official", True, USER_TURNS, 132, {"e47becba": 1, "852ce960": 1, "ba358f49": 1}, [1, 2, 2], 0),
            ("official", False, USER_TURNS, 132, {"e47becba": 1, "852ce960": 1, "ba358f49": 1}, [1, 2, 2], 0),
            ("all", True, TURNS, 133, {"e47becba": 1, "852ce960": 9, "ba358f49": 9}, [2, 2, 2], 16),
            ("all", False, TURNS, 133, {"e47becba": 1, "852ce960": 1, "ba358f49": 1}, [2, 2, 2], 0),
        ],
    )
    def test_the_pinned_file_has_the_cards_counts(
        protocol: Protocol,
        added: bool,
        turns: dict[str, int],
        sessions: int,
        questions: dict[str, int],
        judged_turns: list[int],
        judged_sessions: int,
    ) -> None:
        dataset = LongMemEval(protocol=protocol, added_questions=added).load()
        assert {t.workspace_id: len(t.messages) for t in dataset.transcripts} == {name: turns[name] for name in WHOLE}
        assert len({m.session_id for t in dataset.transcripts for m in t.messages}) == sessions
        assert Counter(query.workspace_id for query in dataset.queries) == questions
        assert Counter(query.category for query in dataset.queries if query.query_id.endswith("/0")) == {
            "single-session-user": 1,
            "knowledge-update": 1,
            "multi-session": 1,
        }
        assert Counter(dataset.qrels["query_id"]) == dict(zip([f"{n}/0" for n in WHOLE], judged_turns, strict=True))
        assert Counter(dataset.session_qrels["query_id"]).total() == judged_sessions
        session = {m.message_id: m.session_id for t in dataset.transcripts for m in t.messages}
        assert len({session[message_id] for message_id in dataset.qrels["message_id"]}) == 5

    def test_every_judged_session_is_in_the_querys_haystack() -> None:
        dataset = LongMemEval(protocol="all").load()
        sessions = {(t.workspace_id, m.session_id) for t in dataset.transcripts for m in t.messages}
        workspace = {query.query_id: query.workspace_id for query in dataset.queries}
        named = [(workspace[query_id], session_id) for query_id, session_id, _ in dataset.session_qrels.iter_rows()]
        assert len(named) == 16
        assert set(named) <= sessions

    def test_every_session_is_over_when_its_question_is_asked() -> None:
        dataset = LongMemEval(protocol="all").load()
        asked = {query.workspace_id: query.asked_at for query in dataset.queries}
        for transcript in dataset.transcripts:
            times = [m.created_at for m in transcript.messages if m.created_at]
            assert len(times) == len(transcript.messages)
            assert times == sorted(times)
            assert times[-1] < asked[transcript.workspace_id]

    def test_what_cannot_be_replayed_is_what_the_card_says(haystacks: dict[str, dict[str, Any]]) -> None:
        questions = lines("questions_dev.jsonl.gz")
        assert len(questions) == 298
        assert set(haystacks) <= {q["question_id"] for q in questions}
        assert Counter(q["question_type"] for q in questions if q["question_id"] not in WHOLE) == {
            "temporal-reasoning": 80,
            "multi-session": 79,
            "knowledge-update": 45,
            "single-session-user": 40,
            "single-session-assistant": 33,
            "single-session-preference": 18,
        }
        shortened = lines("sessions_trunc500_dev.jsonl.gz")
        assert [len(shortened), sum(q["answer_visible_in_truncated_text"] for q in shortened)] == [12, 11]
