"""LongMemEval: the loader's rules on a small copy of the development part's format."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import pytest

from eval.dataset.dataset import Dataset
from eval.dataset.longmemeval import LongMemEval
from lcm.transcript.parts import rebuild
from tests.support.small_longmemeval import write_small_longmemeval


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A folder in LongMemEval's format whose digest is pinned."""
    return write_small_longmemeval(tmp_path, monkeypatch)


def judged(dataset: Dataset, unit: Literal["message", "session"]) -> dict[str, list[str]]:
    """Map a question to the words of its evidence, in order; of a session to its first words."""
    words: dict[str, str] = {}
    for message in dataset.transcripts[0].messages:
        words.setdefault(getattr(message, f"{unit}_id"), message.content)
    text = {query.query_id: query.text for query in dataset.queries}
    found: dict[str, list[str]] = {}
    for query_id, unit_id, relevance in (dataset.qrels if unit == "message" else dataset.session_qrels).iter_rows():
        assert relevance == 1
        found.setdefault(text[query_id], []).append(words[unit_id])
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


def test_official_takes_in_and_judges_the_users_turns_and_leaves_out_questions_without_any(small: str) -> None:
    dataset, whole = LongMemEval(small).load(), LongMemEval(small, protocol="all").load()
    (transcript,) = dataset.transcripts
    assert [m.content for m in transcript.messages] == [
        "Hello",
        "My mule is called Max",
        "The mule is now called Otto",
        "Name a lake",
    ]
    users = {m.message_id for m in whole.transcripts[0].messages if m.role == "user"}
    assert {m.message_id for m in transcript.messages} == users
    assert judged(dataset, "message") == {
        "What is the mule called?": ["My mule is called Max", "The mule is now called Otto"],
        "Which lake and which mule?": ["My mule is called Max"],
    }
    assert dataset.session_qrels.is_empty()
    assert [query.text for query in dataset.queries] == ["What is the mule called?", "Which lake and which mule?"]
    assert {query.workspace_id for query in dataset.queries} == {transcript.workspace_id} == {"hay1"}
    assert {query.asked_at for query in dataset.queries} == {datetime(2023, 6, 2, 23, 59, 59, 999_000, tzinfo=UTC)}
    assert dataset.notes == (
        "haystack gpt4_2655b836 is left out: all of its sessions are evidence",
        "3 questions without evidence in a user's turn are left out",
    )


def test_all_judges_marked_turns_of_both_and_sessions_without_a_mark(small: str) -> None:
    dataset = LongMemEval(small, protocol="all").load()
    assert judged(dataset, "message") == {
        "What is the mule called?": ["My mule is called Max", "The mule is now called Otto", "Otto it is"],
        "Which lake and which mule?": ["Ladoga", "My mule is called Max"],
        "Which lake?": ["Ladoga"],
    }
    assert judged(dataset, "session") == {"Which soup?": ["A recipe for leek soup"], "Which mule first?": ["Hello"]}
    assert dataset.notes == ("haystack gpt4_2655b836 is left out: all of its sessions are evidence",)


def test_a_category_is_the_recorded_type_and_added_questions_can_be_left_out(small: str) -> None:
    own = LongMemEval(small, protocol="all", added_questions=False).load()
    assert [query.query_id for query in own.queries] == ["hay1/0", "hay1/1", "hay1/2"]
    assert own.groups == {}
    both = LongMemEval(small, protocol="all").load()
    assert [(query.query_id, query.category) for query in both.queries] == [
        ("hay1/0", "knowledge-update"),
        ("hay1/1", "multi-session"),
        ("hay1/2", "single-session-assistant"),
        ("hay1/3", "single-session-added"),
        ("hay1/4", "single-session-added"),
    ]
    assert both.groups == {"longmemeval": ("knowledge-update", "multi-session", "single-session-assistant")}
    notes = LongMemEval(small, added_questions=False).load().notes
    assert notes[1:] == ("1 questions without evidence in a user's turn are left out",)


def test_a_turn_rebuilds_without_its_mark(small: str) -> None:
    (transcript,) = LongMemEval(small, protocol="all").load().transcripts
    assert rebuild(transcript.messages[3]) == {"role": "user", "content": "My mule is called Max"}
    assert [[part.text for part in m.parts] for m in transcript.messages] == [[m.content] for m in transcript.messages]


def test_an_unknown_protocol_is_refused() -> None:
    with pytest.raises(ValueError, match="protocol must be one of: all, official, got 'lmeb'"):
        LongMemEval(protocol="lmeb")  # type: ignore[arg-type]
