"""QMSum: the loader's rules on a small copy of the format, and the published file."""

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest

from eval.dataset import qmsum
from eval.dataset.qmsum import Qmsum
from lcm.errors import DatasetError
from lcm.transcript.parts import rebuild
from tests.eval.dataset.evidence import evidence
from tests.eval.dataset.refusals import misread
from tests.support.releases import know

NAME = "meetings.jsonl.gz"

PLANNING: dict[str, Any] = {
    "topic_list": [{"topic": "The secret boat", "relevant_text_span": [["1", "2"]]}],
    "general_query_list": [{"query": "Summarize the meeting.", "answer": "They bought a boat."}],
    "specific_query_list": [
        {"query": "Which boat?", "answer": "A red one.", "relevant_text_span": [["1", "2"], ["4", "4"]]},
        {"query": "Who came late?", "answer": "Bo.", "relevant_text_span": [["3", "4"], ["4", "5"]]},
    ],
    "meeting_transcripts": [
        {"speaker": "Chair", "content": "So {disfmarker} shall we {vocalsound} begin ?"},
        {"speaker": "Ada", "content": "The boat  is red ."},
        {"speaker": "Bo", "content": "{vocalsound} {disfmarker}"},
        {"speaker": "Ada", "content": ""},
        {"speaker": "Cy", "content": "Use {x: 1} and [Laughter.]"},
        {"speaker": "Chair", "content": "{gap}Done{pause}."},
    ],
}
ANOTHER: dict[str, Any] = {
    "topic_list": [],
    "general_query_list": [{"query": "Summarize the meeting.", "answer": "Nothing happened."}],
    "specific_query_list": [],
    "meeting_transcripts": [{"speaker": "Chair", "content": "Nobody is here ."}],
}


def lines(*records: object) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def write_small_qmsum(directory: Path, monkeypatch: pytest.MonkeyPatch, *records: dict[str, Any]) -> str:
    """Fill the folder and make its file a known one; returns it as `dataset.directory` wants it."""
    (directory / NAME).write_bytes(gzip.compress(lines(*(records or (PLANNING, ANOTHER))).encode()))
    return know(monkeypatch, Qmsum, directory)


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A folder in QMSum's format whose digest is known."""
    return write_small_qmsum(tmp_path, monkeypatch)


def test_each_meeting_is_a_workspace_with_one_session_and_a_user_for_each_speaker(small: str) -> None:
    planning, another = Qmsum(small).load().transcripts
    assert [planning.workspace_id, another.workspace_id] == ["meeting-0", "meeting-1"]
    assert [len(planning.messages), len(another.messages)] == [6, 1]
    (one,), (two,) = ({message.session_id for message in t.messages} for t in (planning, another))
    assert one != two
    assert [message.author for message in planning.messages] == ["Chair", "Ada", "Bo", "Ada", "Cy", "Chair"]
    assert {message.role for message in planning.messages} == {"user"}


def test_marks_are_taken_out_with_the_space_that_they_leave_or_kept(small: str) -> None:
    stripped = ["So shall we begin ?", "The boat is red .", "", "", "Use {x: 1} and [Laughter.]", "Done ."]
    assert [m.content for m in Qmsum(small).load().transcripts[0].messages] == stripped
    kept = [m.content for m in Qmsum(small, marks="keep").load().transcripts[0].messages]
    assert kept == [turn["content"] for turn in PLANNING["meeting_transcripts"]]


@pytest.mark.parametrize("marks", ["strip", "keep"])
def test_every_turn_rebuilds_exactly(small: str, marks: qmsum.Marks) -> None:
    for transcript, record in zip(Qmsum(small, marks=marks).load().transcripts, (PLANNING, ANOTHER), strict=True):
        assert [rebuild(message) for message in transcript.messages] == record["meeting_transcripts"]


def test_a_span_holds_its_first_and_its_last_turn_and_each_turn_is_judged_once(small: str) -> None:
    turns = [turn["content"] for turn in PLANNING["meeting_transcripts"]]
    assert evidence(Qmsum(small, marks="keep").load(), by="query_id") == {
        "meeting-0/general/0": [],
        "meeting-0/specific/0": [turns[1], turns[2], turns[4]],
        "meeting-0/specific/1": [turns[3], turns[4], turns[5]],
        "meeting-1/general/0": [],
    }


def test_queries_come_with_their_kind_and_their_answer(small: str) -> None:
    dataset = Qmsum(small).load()
    planning, another = (t.conversation_id for t in dataset.transcripts)
    assert [(q.query_id, q.text, q.workspace_id, q.category) for q in dataset.queries] == [
        ("meeting-0/general/0", "Summarize the meeting.", "meeting-0", "general"),
        ("meeting-0/specific/0", "Which boat?", "meeting-0", "specific"),
        ("meeting-0/specific/1", "Who came late?", "meeting-0", "specific"),
        ("meeting-1/general/0", "Summarize the meeting.", "meeting-1", "general"),
    ]
    assert dataset.references.rows() == [
        (planning, None, "They bought a boat."),
        (planning, "meeting-0/specific/0", "A red one."),
        (planning, "meeting-0/specific/1", "Bo."),
        (another, None, "Nothing happened."),
    ]


def test_turns_without_words_are_counted(small: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Qmsum(small).load().notes == ("2 turns have no words; 2 of 6 judgements name one of them",)
    assert Qmsum(small, marks="keep").load().notes == ("1 turns have no words; 1 of 6 judgements name one of them",)
    assert Qmsum(write_small_qmsum(tmp_path, monkeypatch, ANOTHER)).load().notes == ()


def test_a_published_file_holds_what_it_holds_compressed(small: str, tmp_path: Path) -> None:
    compressed = Qmsum(small).load()
    (tmp_path / "val.jsonl").write_text(lines(PLANNING, ANOTHER))
    with pytest.raises(DatasetError, match=r"holds 2 files of qmsum: name one, dataset\.file=meetings\.jsonl\.gz"):
        Qmsum(small).load()
    plain = Qmsum(small, file="val.jsonl").load()
    assert (plain.transcripts, plain.queries) == (compressed.transcripts, compressed.queries)
    assert plain.qrels.equals(compressed.qrels)
    assert plain.references.equals(compressed.references)
    assert plain.digest != compressed.digest


def changed(**changes: object) -> dict[str, Any]:
    return PLANNING | changes


SPECIFIC = {"query": "?", "answer": "!"}
HOSTILE = {
    lines(ANOTHER, {"topic_list": []}): "record 2: 'meeting_transcripts' is missing",
    lines(changed(meeting_transcripts=[{"speaker": "A"}])): "record 1: meeting_transcripts[0]: 'content' is missing",
    lines(changed(meeting_transcripts=[{"speaker": 1, "content": ""}])): "'speaker' must be text, got 1",
    lines(changed(general_query_list=[{"query": "What?"}])): "record 1: general_query_list[0]: 'answer' is missing",
    lines(changed(specific_query_list=[SPECIFIC])): "[0]: 'relevant_text_span' is missing",
    lines(changed(specific_query_list=[SPECIFIC | {"relevant_text_span": [["1"]]}])): "got ['1']",
    lines(changed(specific_query_list=[SPECIFIC | {"relevant_text_span": [[1, 2]]}])): "got [1, 2]",
    lines(changed(specific_query_list=[SPECIFIC | {"relevant_text_span": [["1", "9" * 5000]]}])): "got",
    lines(PLANNING) + "{": "record 2: is not JSON",
    "": "holds no file of qmsum: expected JSON lines",
}


def test_hostile_shapes_are_refused_in_one_line(tmp_path: Path) -> None:
    wrong = []
    for text, words in HOSTILE.items():
        (tmp_path / "val.jsonl").write_text(text)
        wrong += misread(Qmsum(str(tmp_path)).load, words, "val.jsonl: record" if text else "")
    assert wrong == []


def test_turns_beyond_the_meeting_are_left_out_and_counted(tmp_path: Path) -> None:
    spans = [["0", "0"], ["5", "7"], ["3", "99999999999"], ["9", "9"]]
    (tmp_path / "train.jsonl").write_text(
        lines(changed(specific_query_list=[SPECIFIC | {"relevant_text_span": spans}]))
    )
    dataset = Qmsum(str(tmp_path)).load()
    assert len(dataset.qrels) == 4  # turns 0, 3, 4, 5
    assert "3 spans go beyond their meeting: what is beyond it is left out" in dataset.notes


def test_a_bad_setting_is_refused() -> None:
    with pytest.raises(ValueError, match="marks must be one of: keep, strip, got 'drop'"):
        Qmsum(marks="drop")  # type: ignore[arg-type]


if root := os.environ.get("LCM_DATASETS_DIR"):

    def test_the_published_validation_set_is_known_and_is_the_development_part(tmp_path: Path) -> None:
        with gzip.open(f"{root}/qmsum/qmsum_dev.jsonl.gz", "rb") as packed:
            (tmp_path / "whatever.jsonl").write_bytes(packed.read())
        published, part = Qmsum(str(tmp_path), pinned=True).load(), Qmsum().load()
        assert published.notes[0].startswith("whatever.jsonl is release val: Yale-LILY/QMSum commit 83d7768c1f2b")
        assert (published.transcripts, published.queries) == (part.transcripts, part.queries)
