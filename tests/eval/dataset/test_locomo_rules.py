"""LoCoMo's rules at their edges: clock, order of sessions, categories, ids, repeated evidence."""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from eval.dataset.dataset import Dataset
from eval.dataset.locomo import Locomo, _session_time
from tests.support import small_locomo
from tests.support.small_locomo import RECORD, write_small_locomo


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A folder in LoCoMo's format whose digests are pinned."""
    return write_small_locomo(tmp_path, monkeypatch)


def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **changes: object) -> Dataset:
    """The small copy with parts of its record replaced."""
    monkeypatch.setattr(small_locomo, "RECORD", RECORD | changes)
    return Locomo(write_small_locomo(tmp_path, monkeypatch)).load()


def test_afternoons_are_afternoons(small: str) -> None:
    (transcript,) = Locomo(small).load().transcripts
    assert transcript.messages[0].created_at == datetime(2023, 5, 8, 13, 56, tzinfo=UTC)


@pytest.mark.parametrize(("clock", "hour"), [("12:05 am", 0), ("12:05 pm", 12), ("1:05 am", 1), ("11:05 pm", 23)])
def test_the_clock_has_twelve_hours(clock: str, hour: int) -> None:
    assert _session_time(f"{clock} on 8 May, 2023") == datetime(2023, 5, 8, hour, 5, tzinfo=UTC)


def test_categories_are_named_by_their_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    questions = [{"question": str(n), "category": n, "evidence": ["D1:1"]} for n in (5, 4, 3, 2, 1)]
    named = {query.text: query.category for query in load(tmp_path, monkeypatch, qa=questions).queries}
    assert named == {"1": "multi_hop", "2": "temporal", "3": "open_domain", "4": "single_hop", "5": "adversarial"}


def test_sessions_come_in_the_order_of_their_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    talk: dict[str, Any] = {"speaker_a": "Ada", "speaker_b": "Bo"}
    for n in (10, 2, 1, 11):
        talk[f"session_{n}_date_time"] = f"9:05 am on {n} May, 2023"
        talk[f"session_{n}"] = [{"speaker": "Ada", "dia_id": f"D{n}:1", "text": f"said in session {n}"}]
    dataset = load(tmp_path, monkeypatch, conversation=talk)
    (transcript,) = dataset.transcripts
    assert [message.content for message in transcript.messages] == [f"said in session {n}" for n in (1, 2, 10, 11)]
    assert {query.asked_at for query in dataset.queries} == {datetime(2023, 5, 11, 9, 5, tzinfo=UTC)}


def test_the_group_holds_exactly_the_four_answerable_categories(small: str) -> None:
    groups = Locomo(small).load().groups
    assert {name: sorted(members) for name, members in groups.items()} == {
        "categories 1-4": ["multi_hop", "open_domain", "single_hop", "temporal"]
    }
    assert Locomo(small, categories=[1, 2, 3, 4]).load().groups == {}


def test_ids_are_opaque_and_each_turn_has_its_own(small: str) -> None:
    (transcript,) = Locomo(small).load().transcripts
    messages = transcript.messages
    ids = [transcript.conversation_id, *(m.message_id for m in messages), *(m.session_id for m in messages)]
    assert all(re.fullmatch(r"[0-9a-f]{16}", one) for one in ids)
    assert len(set(ids)) == 1 + 3 + 2
    assert messages[0].session_id == messages[1].session_id != messages[2].session_id


def test_evidence_named_twice_is_one_judgement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    question = {"question": "Twice?", "category": 1, "evidence": ["D2:1", "D1:1", "D2:1"]}
    dataset = load(tmp_path, monkeypatch, qa=[question])
    said = {m.message_id: m.content for m in dataset.transcripts[0].messages}
    assert [said[message_id] for message_id in dataset.qrels["message_id"]] == [
        "He ate a shoe",
        "Look at my dog\n[picture: a dog by a wall]",
    ]
    assert dataset.qrels["relevance"].to_list() == [1, 1]
