"""LongMemEval as published: one record a question, with a haystack of its own."""

import json
import tracemalloc
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from eval.dataset.dataset import Dataset
from eval.dataset.longmemeval import LongMemEval
from lcm.errors import DatasetError
from tests.eval.dataset.refusals import misread
from tests.support.small_longmemeval import RECORD, published, write_small_longmemeval


def loaded(folder: Path, *records: dict[str, Any], name: str = "longmemeval_s", **settings: Any) -> Dataset:
    (folder / name).write_text(json.dumps(records))
    return LongMemEval(str(folder), **settings).load()


def words(dataset: Dataset) -> dict[str, str]:
    """Message id -> content."""
    return {m.message_id: m.content for t in dataset.transcripts for m in t.messages}


def test_a_record_is_a_question_with_its_own_haystack(tmp_path: Path) -> None:
    dataset = loaded(tmp_path, published("q1"), published("q2", question="Which mule?"), protocol="all")
    assert dataset.workspaces == ["q1", "q2"]
    assert [(q.query_id, q.workspace_id, q.text) for q in dataset.queries] == [
        ("q1", "q1", "What is the mule called?"),
        ("q2", "q2", "Which mule?"),
    ]
    told = words(dataset)
    assert [told[message] for query, message, _ in dataset.qrels.iter_rows() if query == "q2"] == [
        "My mule is called Max",
        "The mule is now called Otto",
        "Otto it is",
    ]
    assert len(told) == 2 * 8
    assert dataset.protocol == "protocol=all times=recorded unit=turn,session"
    assert "answer" not in repr(dataset.transcripts)


def test_both_forms_give_the_same_conversation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (developed := tmp_path / "developed").mkdir()
    part = LongMemEval(write_small_longmemeval(developed, monkeypatch), protocol="all").load()
    (tmp_path / "published").mkdir()
    assert loaded(tmp_path / "published", published("hay1"), protocol="all").transcripts == part.transcripts


def test_a_question_is_asked_when_it_was_but_never_before_its_haystack_ends(tmp_path: Path) -> None:
    late = published("late", question_date="2023/06/03 (Sat) 08:15")
    early = published("early", question_date="2023/06/02 (Fri) 08:15")
    dataset = loaded(tmp_path, late, early)
    assert {q.query_id: q.asked_at for q in dataset.queries} == {
        "late": datetime(2023, 6, 3, 8, 15, tzinfo=UTC),
        "early": datetime(2023, 6, 2, 23, 59, tzinfo=UTC),
    }
    told = "1 questions are dated before the last session of their haystack, and asked at that"
    assert dataset.notes[1:] == (told,)


def test_a_session_listed_twice_is_told_apart_by_its_place(tmp_path: Path) -> None:
    twice = published(
        "q1",
        haystack_session_ids=["answer_2", "sharegpt_1", "answer_1", "sharegpt_1"],
        haystack_sessions=[*RECORD["haystack_sessions"][:3], RECORD["haystack_sessions"][1]],
    )
    dataset = loaded(tmp_path, twice, protocol="all")
    (transcript,) = dataset.transcripts
    soups = [m for m in transcript.messages if m.content == "A recipe for leek soup"]
    assert [m.created_at for m in soups] == [
        datetime(2023, 5, 20, 2, 21, tzinfo=UTC),
        datetime(2023, 6, 2, 23, 59, tzinfo=UTC),
    ]
    assert len({m.message_id for m in transcript.messages}) == len(transcript.messages) == 7
    assert len({m.session_id for m in soups}) == 2
    assert "1 sessions have an id that stands in their haystack before; their place tells them apart" in dataset.notes


def test_official_leaves_out_abstention_and_what_no_user_said(tmp_path: Path) -> None:
    records = [
        published("q1"),
        published("q2_abs"),
        published("q3", answer_session_ids=["answer_3"]),
        published("q4", answer_session_ids=["sharegpt_1", "gone"]),
    ]
    dataset = loaded(tmp_path, *records)
    assert ([q.query_id for q in dataset.queries], dataset.workspaces) == (["q1"], ["q1"])
    assert dataset.notes[1:] == (
        "1 abstention questions are left out, as LongMemEval's script leaves them out",
        "2 questions without evidence in a user's turn are left out",
    )
    whole = loaded(tmp_path, *records, protocol="all")
    assert [(q.query_id, q.category) for q in whole.queries] == [
        ("q1", "knowledge-update"),
        ("q2_abs", "abstention"),
        ("q3", "knowledge-update"),
        ("q4", "knowledge-update"),
    ]
    assert whole.groups == {"answerable": ("knowledge-update",)}
    assert Counter(whole.qrels["query_id"]) == {"q1": 3, "q2_abs": 3, "q3": 1}
    assert whole.session_qrels["query_id"].to_list() == ["q4"]
    assert whole.notes[1:] == ("1 evidence sessions are not in their haystack",)


def test_haystacks_of_evidence_alone_are_noted(tmp_path: Path) -> None:
    oracle = published(
        "q1",
        haystack_session_ids=["answer_1", "answer_2"],
        haystack_dates=RECORD["haystack_dates"][:2],
        haystack_sessions=[RECORD["haystack_sessions"][2], RECORD["haystack_sessions"][0]],
    )
    dataset = loaded(tmp_path, oracle, published("q2"), name="longmemeval_oracle")
    assert dataset.notes[1:] == ("1 of 2 haystacks hold evidence alone: a session measure tells nothing",)


def test_only_a_part_is_read_and_no_further_than_needed(tmp_path: Path) -> None:
    records = [published(f"q{n}") for n in range(4)]
    assert loaded(tmp_path, *records, only=["q2", "q1"]).workspaces == ["q1", "q2"]
    file = tmp_path / "longmemeval_s"
    file.write_bytes(file.read_bytes()[:-40])
    assert LongMemEval(str(tmp_path), only=["q1"]).load().workspaces == ["q1"]
    with pytest.raises(DatasetError, match=r"longmemeval_s: is not JSON after record 3 \(.*\); the file is damaged"):
        LongMemEval(str(tmp_path)).load()


def test_what_is_not_taken_is_not_kept(tmp_path: Path) -> None:
    sessions = [[{"role": "user", "content": f"{n} " + "word " * 40_000}] for n in range(4)]
    with (tmp_path / "longmemeval_m").open("w") as file:
        records = (json.dumps(published(f"q{n}", haystack_sessions=sessions)) for n in range(40))
        file.write(f"[{', '.join(records)}]")
    tracemalloc.start()
    LongMemEval(str(tmp_path), only=["q39"], protocol="all").load()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (tmp_path / "longmemeval_m").stat().st_size > 32_000_000
    assert peak < 8_000_000


def test_haystacks_share_what_is_said(tmp_path: Path) -> None:
    dataset = loaded(tmp_path, published("q1"), published("q2"))
    first, second = dataset.transcripts
    assert all(a.content is b.content for a, b in zip(first.messages, second.messages, strict=True))


DAMAGES: dict[str, list[Any]] = {
    "'haystack_sessions' must be 4, one for each id and date": [published("q1", haystack_sessions=[])],
    "'question_date' must be a time such as": [published("q1", question_date="today")],
    "'haystack_dates' must be a time such as": [published("q1", haystack_dates=["2023/05/20"] * 4)],
    "haystack_sessions[1][0]: 'role' must be one of": [
        published("q1", haystack_sessions=[[{"role": "narrator", "content": "a"}]] * 4, answer_session_ids=[])
    ],
    "record 2: 'question_id' is that of an earlier record, 'q1'": [published("q1"), published("q1")],
    "haystack_sessions[1][0]: 'content' is missing": [published("q1", haystack_sessions=[[{"role": "user"}]] * 4)],
    "record 2: must be an object, got 5": [published("q1"), 5],
}


def test_damage_is_reported_by_its_place(tmp_path: Path) -> None:
    wrong = []
    for told, records in DAMAGES.items():
        wrong += misread(lambda: loaded(tmp_path, *records, protocol="all"), "longmemeval_s: record", told)  # noqa: B023
    assert wrong == []
