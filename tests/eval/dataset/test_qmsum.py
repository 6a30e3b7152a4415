"""QMSum: counts of the pinned file, and the loader's rules on a small copy of the format."""

import gzip
import json
import os
import re
from collections import Counter
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from eval.dataset import qmsum
from eval.dataset.dataset import Dataset
from eval.dataset.qmsum import Qmsum
from eval.replay.bulk import Bulk
from lcm.clock import EPOCH
from lcm.errors import DatasetError
from lcm.transcript.parts import rebuild
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


def evidence(dataset: Dataset) -> dict[str, list[str]]:
    """Query id -> the recorded words of its evidence, in the order of the qrels."""
    words = {m.message_id: rebuild(m)["content"] for t in dataset.transcripts for m in t.messages}
    return {
        query.query_id: [words[message] for one, message, _ in dataset.qrels.iter_rows() if one == query.query_id]
        for query in dataset.queries
    }


def test_each_meeting_is_a_workspace_with_one_session(small: str) -> None:
    planning, another = Qmsum(small).load().transcripts
    assert [planning.workspace_id, another.workspace_id] == ["meeting-0", "meeting-1"]
    assert [len(planning.messages), len(another.messages)] == [6, 1]
    sessions = [{message.session_id for message in t.messages} for t in (planning, another)]
    assert [len(one) for one in sessions] == [1, 1]
    assert sessions[0] != sessions[1]


def test_every_speaker_is_an_author_with_the_role_of_a_user(small: str) -> None:
    planning, _ = Qmsum(small).load().transcripts
    assert [message.author for message in planning.messages] == ["Chair", "Ada", "Bo", "Ada", "Cy", "Chair"]
    assert {message.role for message in planning.messages} == {"user"}


def test_marks_are_taken_out_with_the_space_that_they_leave(small: str) -> None:
    planning, _ = Qmsum(small).load().transcripts
    assert [message.content for message in planning.messages] == [
        "So shall we begin ?",
        "The boat is red .",
        "",
        "",
        "Use {x: 1} and [Laughter.]",
        "Done .",
    ]


def test_marks_can_be_kept(small: str) -> None:
    planning, _ = Qmsum(small, marks="keep").load().transcripts
    assert [m.content for m in planning.messages] == [t["content"] for t in PLANNING["meeting_transcripts"]]


@pytest.mark.parametrize("marks", ["strip", "keep"])
def test_every_turn_rebuilds_exactly(small: str, marks: qmsum.Marks) -> None:
    planning, another = Qmsum(small, marks=marks).load().transcripts
    assert [rebuild(message) for message in planning.messages] == PLANNING["meeting_transcripts"]
    assert [rebuild(message) for message in another.messages] == ANOTHER["meeting_transcripts"]


def test_a_span_holds_its_first_and_its_last_turn_and_each_turn_is_judged_once(small: str) -> None:
    turns = [turn["content"] for turn in PLANNING["meeting_transcripts"]]
    assert evidence(Qmsum(small).load()) == {
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


def test_topics_are_nowhere_in_the_transcripts(small: str) -> None:
    assert "secret" not in repr(Qmsum(small).load().transcripts)


def test_nothing_has_a_time_and_every_query_hears_the_whole_meeting(small: str) -> None:
    dataset = Qmsum(small).load()
    assert {message.created_at for t in dataset.transcripts for message in t.messages} == {None}
    assert all(query.asked_at > EPOCH for query in dataset.queries)
    ((heard, asked),) = Bulk().steps(dataset.transcripts, dataset.queries)
    assert tuple(heard) == dataset.transcripts
    assert tuple(asked) == dataset.queries


def test_ids_are_opaque_and_each_turn_has_its_own(small: str) -> None:
    transcripts = Qmsum(small).load().transcripts
    messages = [message for t in transcripts for message in t.messages]
    ids = [m.message_id for m in messages] + [t.conversation_id for t in transcripts]
    ids += sorted({m.session_id for m in messages})
    assert all(re.fullmatch(r"[0-9a-f]{16}", one) for one in ids)
    assert len(set(ids)) == len(ids) == 7 + 2 + 2


def test_turns_without_words_are_counted(small: str) -> None:
    assert Qmsum(small).load().notes == ("2 turns have no words; 2 of 6 judgements name one of them",)
    assert Qmsum(small, marks="keep").load().notes == ("1 turns have no words; 1 of 6 judgements name one of them",)


def test_nothing_is_noted_where_every_turn_has_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Qmsum(write_small_qmsum(tmp_path, monkeypatch, ANOTHER)).load().notes == ()


def test_protocols_have_different_digests(small: str) -> None:
    assert Qmsum(small).load().digest == Qmsum(small).load().digest != Qmsum(small, marks="keep").load().digest


def test_a_file_of_no_known_release_is_taken_and_said_so_or_refused(small: str) -> None:
    path = Path(small) / NAME
    path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes()) + b"\n"))
    digest = sha256(path.read_bytes()).hexdigest()
    assert f"{NAME} is no known release, taken as it is (sha256 {digest})" in Qmsum(small).load().notes
    with pytest.raises(DatasetError, match=f"is not the pinned file: sha256 is {digest}, expected"):
        Qmsum(small, pinned=True).load()


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


def test_some_meetings_are_taken_by_their_place(small: str) -> None:
    dataset = Qmsum(small, only=["meeting-1"]).load()
    assert dataset.workspaces == ["meeting-1"]
    assert [query.query_id for query in dataset.queries] == ["meeting-1/general/0"]
    assert dataset.protocol == "marks=strip unit=turn only=meeting-1"
    with pytest.raises(DatasetError, match=r"names 'meeting-2', which .* does not hold; it holds meeting-0, meeting-1"):
        Qmsum(small, only=["meeting-2"]).load()


def changed(**changes: object) -> dict[str, Any]:
    return PLANNING | changes


HOSTILE = {
    lines(ANOTHER, {"topic_list": []}): "record 2: 'meeting_transcripts' is missing",
    lines(changed(meeting_transcripts=[{"speaker": "A"}])): "record 1: meeting_transcripts[0]: 'content' is missing",
    lines(changed(meeting_transcripts=[{"speaker": 1, "content": ""}])): "'speaker' must be text, got 1",
    lines(changed(meeting_transcripts="none")): "record 1: 'meeting_transcripts' must be a list, got 'none'",
    lines(changed(general_query_list=[{"query": "What?"}])): "record 1: general_query_list[0]: 'answer' is missing",
    lines(changed(specific_query_list=[{"query": "?", "answer": "!"}])): "[0]: 'relevant_text_span' is missing",
    lines(changed(specific_query_list=[{"query": "?", "answer": "!", "relevant_text_span": [["1"]]}])): "got ['1']",
    lines(changed(specific_query_list=[{"query": "?", "answer": "!", "relevant_text_span": [[1, 2]]}])): "got [1, 2]",
    lines(
        changed(specific_query_list=[{"query": "?", "answer": "!", "relevant_text_span": [["1", "9" * 5000]]}])
    ): "got",
    lines(PLANNING) + "{": "record 2: is not JSON",
    lines(PLANNING, [1]): "record 2: must be an object, got [1]",
    "": "holds no file of qmsum: expected JSON lines",
}


def test_hostile_shapes_are_told_in_one_line(tmp_path: Path) -> None:
    wrong = []
    for text, words in HOSTILE.items():
        (tmp_path / "val.jsonl").write_text(text)
        try:
            Qmsum(str(tmp_path)).load()
            wrong.append(f"taken: {words}")
        except DatasetError as error:
            is_placed = "val.jsonl: record" in str(error) or not text
            wrong += [] if words in str(error) and is_placed and "\n" not in str(error) else [str(error)]
    assert not wrong, "\n".join(wrong)


def test_turns_beyond_the_meeting_are_left_out_and_counted(tmp_path: Path) -> None:
    spans = [["0", "0"], ["5", "7"], ["3", "99999999999"], ["9", "9"]]
    asked = [{"query": "?", "answer": "!", "relevant_text_span": spans}]
    (tmp_path / "train.jsonl").write_text(lines(changed(specific_query_list=asked)))
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
        assert published.qrels.equals(part.qrels)
        assert published.references.equals(part.references)

    @pytest.fixture(scope="module")
    def records() -> list[dict[str, Any]]:
        """The pinned file, read without the loader."""
        with gzip.open(f"{root}/qmsum/qmsum_dev.jsonl.gz", "rb") as lines:
            return [json.loads(line) for line in lines]

    @pytest.fixture(scope="module")
    def whole() -> Dataset:
        return Qmsum().load()

    def test_the_pinned_file_has_the_counts_of_the_card(records: list[dict[str, Any]], whole: Dataset) -> None:
        turns = [turn for record in records for turn in record["meeting_transcripts"]]
        assert len(records) == len(whole.transcripts) == 35
        assert len(turns) == sum(len(t.messages) for t in whole.transcripts) == 20_123
        assert sum(len(turn["content"].split()) for turn in turns) == 325_899
        assert len({turn["speaker"] for turn in turns}) == 183
        per_meeting = [len(record["meeting_transcripts"]) for record in records]
        assert (min(per_meeting), max(per_meeting)) == (124, 1259)
        assert [len(t.messages) for t in whole.transcripts] == per_meeting
        words = [sum(len(turn["content"].split()) for turn in record["meeting_transcripts"]) for record in records]
        assert (min(words), max(words)) == (1485, 22_430)
        assert Counter(query.category for query in whole.queries) == {"general": 35, "specific": 237}
        assert [len(record["general_query_list"]) for record in records] == [1] * 35
        assert sum(len(record["specific_query_list"]) for record in records) == 237
        assert len(whole.references) == 272
        assert sum(len(record["topic_list"]) for record in records) == 149

    def test_the_pinned_spans_are_the_judgements(records: list[dict[str, Any]], whole: Dataset) -> None:
        spans = [
            [(int(first), int(last)) for first, last in question["relevant_text_span"]]
            for record in records
            for question in record["specific_query_list"]
        ]
        assert sum(map(len, spans)) == 248
        assert sum(len(one) > 1 for one in spans) == 11
        for one in map(sorted, spans):
            assert all(last < first for (_, last), (first, _) in pairwise(one))
        sizes = [sum(last - first + 1 for first, last in one) for one in spans]
        assert sum(sizes) == len(whole.qrels) == 13_443
        assert whole.qrels["query_id"].n_unique() == 237
        assert sum(size > 10 for size in sizes) == 184
        assert (min(sizes), sorted(sizes)[len(sizes) // 2], max(sizes)) == (1, 25, 460)
        assert sum(min(1, 10 / size) for size in sizes) / len(sizes) == pytest.approx(0.492, abs=5e-4)

    def test_the_pinned_evidence_is_word_for_word_that_of_the_spans(
        records: list[dict[str, Any]], whole: Dataset
    ) -> None:
        expected: dict[str, list[str]] = {}
        for number, record in enumerate(records):
            turns = [turn["content"] for turn in record["meeting_transcripts"]]
            expected[f"meeting-{number}/general/0"] = []
            for index, question in enumerate(record["specific_query_list"]):
                spans = sorted((int(first), int(last)) for first, last in question["relevant_text_span"])
                expected[f"meeting-{number}/specific/{index}"] = [w for a, b in spans for w in turns[a : b + 1]]
        assert evidence(whole) == expected

    def test_the_pinned_marks_are_those_of_the_card(records: list[dict[str, Any]], whole: Dataset) -> None:
        texts = [turn["content"] for record in records for turn in record["meeting_transcripts"]]
        assert Counter(mark for text in texts for mark in re.findall(r"\{.*?\}", text)) == {
            "{disfmarker}": 7124,
            "{vocalsound}": 4686,
            "{gap}": 515,
            "{pause}": 340,
            "{comment}": 137,
            "{nonvocalsound}": 4,
        }
        assert not any(set("{}") & set(message.content) for t in whole.transcripts for message in t.messages)
        assert sum(not text.strip() for text in texts) == 17
        assert sum(not re.sub(r"\{.*?\}", "", text).strip() for text in texts) == 1253
        assert whole.notes == ("1253 turns have no words; 823 of 13443 judgements name one of them",)
