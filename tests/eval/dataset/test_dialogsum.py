"""DialogSum: the loader's rules on a small copy of the format, and the published file."""

import csv
import gzip
import io
import json
import os
from pathlib import Path

import pytest

from eval.dataset.dialogsum import Dialogsum
from lcm.errors import DatasetError
from lcm.transcript.parts import rebuild
from tests.eval.dataset.refusals import misread
from tests.support.releases import know

RECORDS = [
    {
        "fname": "one",
        "dialogue": "#Person1#: Hello #Person2#! \n#Person2#: Hi: it's me.\n#Person1#:  Come in.",
        "summary": "#Person1# lets #Person2# in.",
        "topic": "secret visit",
    },
    {
        "fname": "two",
        "dialogue": "The bell rings.\n#Person3#: First\nand me\n\nand again\n#Person12#: \n#Person3#: #Person4: no",
        "summary": "#Person3# talks.",
        "topic": "bell",
    },
]

NAME = "dialogues.jsonl.gz"


def lines(*records: object) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def write_small_dialogsum(directory: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Fill the folder and make its file a known one; returns it as `dataset.directory` wants it."""
    (directory / NAME).write_bytes(gzip.compress(lines(*RECORDS).encode()))
    return know(monkeypatch, Dialogsum, directory)


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A folder in DialogSum's format whose digest is known."""
    return write_small_dialogsum(tmp_path, monkeypatch)


def test_a_line_is_a_message_of_its_speaker_and_other_lines_lose_no_words(small: str) -> None:
    dataset = Dialogsum(small).load()
    first, second = ([(m.author, m.content) for m in t.messages] for t in dataset.transcripts)
    assert first == [("#Person1#", "Hello #Person2#!"), ("#Person2#", "Hi: it's me."), ("#Person1#", "Come in.")]
    assert second == [
        (None, "The bell rings."),
        ("#Person3#", "First\nand me\n\nand again"),
        ("#Person12#", ""),
        ("#Person3#", "#Person4: no"),
    ]
    assert {(m.role, m.created_at) for t in dataset.transcripts for m in t.messages} == {("user", None)}
    for transcript, record in zip(dataset.transcripts, RECORDS, strict=True):
        turns = [rebuild(message) for message in transcript.messages]
        lines = [f"{turn['speaker']}: {turn['text']}" if turn["speaker"] else turn["text"] for turn in turns]
        assert "\n".join(lines) == record["dialogue"]


def test_each_dialogue_is_a_workspace_with_one_session_and_one_summary_and_no_question(small: str) -> None:
    dataset = Dialogsum(small).load()
    assert [t.workspace_id for t in dataset.transcripts] == ["one", "two"]
    (one,), (two,) = ({message.session_id for message in t.messages} for t in dataset.transcripts)
    assert one != two
    first, second = (t.conversation_id for t in dataset.transcripts)
    assert dataset.references.rows() == [
        (first, None, "#Person1# lets #Person2# in."),
        (second, None, "#Person3# talks."),
    ]
    assert dataset.queries == ()
    assert [len(frame) for frame in (dataset.qrels, dataset.session_qrels, dataset.options)] == [0, 0, 0]


def table(*rows: tuple[str, str, str]) -> str:
    """CSV as on Hugging Face: a dialogue has several lines."""
    written = io.StringIO()
    csv.writer(written).writerows([("id", "dialogue", "summary", "topic"), *((*row, "secret") for row in rows)])
    return written.getvalue()


def test_csv_holds_what_lines_hold(small: str, tmp_path: Path) -> None:
    whole = Dialogsum(small).load()
    (tmp_path / "csv").mkdir()
    rows = [(record["fname"], record["dialogue"], record["summary"]) for record in RECORDS]
    (tmp_path / "csv" / "validation.csv").write_text(table(*rows), newline="")
    dataset = Dialogsum(str(tmp_path / "csv")).load()
    assert dataset.transcripts == whole.transcripts
    assert dataset.references.equals(whole.references)


def test_three_summaries_of_a_dialogue_are_its_references_in_both_forms(tmp_path: Path) -> None:
    told = ["One.", "Two.", "Three."]
    record = {"fname": "test_0", "dialogue": RECORDS[0]["dialogue"]}
    record |= {f"{key}{n}": text for n, text in enumerate(told, start=1) for key in ("summary", "topic")}
    (tmp_path / "dialogsum.test.jsonl").write_text(lines(record))
    rows = [(f"test_0_{n}", RECORDS[0]["dialogue"], text) for n, text in enumerate(told, start=1)]
    (tmp_path / "test.csv").write_text(table(*rows), newline="")
    with pytest.raises(
        DatasetError, match=r"holds 2 files of dialogsum: name one, dataset\.file=dialogsum\.test\.jsonl"
    ):
        Dialogsum(str(tmp_path)).load()
    for file in ("dialogsum.test.jsonl", "test.csv"):
        dataset = Dialogsum(str(tmp_path), file=file).load()
        assert dataset.workspaces == ["test_0"]
        assert dataset.protocol == "references=3"
        (transcript,) = dataset.transcripts
        assert dataset.references.rows() == [(transcript.conversation_id, None, text) for text in told]
        assert "secret" not in repr(dataset.transcripts)


DIALOGUE = {"fname": "dev_0", "dialogue": "#Person1#: Hello", "summary": "They meet."}
HOSTILE = {
    ("dev.jsonl", lines(DIALOGUE, {"fname": "x", "summary": "s"})): "dev.jsonl: record 2: 'dialogue' is missing",
    ("dev.jsonl", lines(DIALOGUE, {"fname": "x", "dialogue": "d"})): "dev.jsonl: record 2: 'summary' is missing",
    ("dev.jsonl", lines(DIALOGUE | {"fname": 3})): "dev.jsonl: record 1: 'fname' must be text, got 3",
    ("dev.jsonl", lines(DIALOGUE, DIALOGUE)): "dev.jsonl: record 2: 'fname' 'dev_0' is another dialogue's too",
    ("dev.jsonl", ""): "holds no file of dialogsum: expected JSON lines",
    ("test.csv", table(("a_0", "one", "s"), ("a_0", "two", "s"))): "test.csv: record 2: 'id' 'a_0' is another",
    ("test.csv", table(("a_0_1", "one", "s"), ("a_0_2", "two", "s"))): "test.csv: record 2: 'id' 'a_0' is another",
    ("test.csv", "id,dialogue,summary\na,b\n"): "test.csv: record 1: 'summary' is missing",
    ("test.csv", "id,dialogue,summary\n"): "test.csv: holds no record",
    ("test.csv", "id,dialogue\n"): "holds no file of dialogsum: expected JSON lines",
}


def test_hostile_shapes_are_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "latin.csv").write_bytes(table(("a_0", "caf\xe9", "s")).encode("latin-1"))
    wrong = misread(Dialogsum(str(tmp_path), file="latin.csv").load, "latin.csv: line 2: is not UTF-8")
    for number, ((name, text), words) in enumerate(HOSTILE.items()):
        place = tmp_path / str(number)
        place.mkdir()
        (place / name).write_text(text, newline="")
        wrong += misread(Dialogsum(str(place)).load, words)
    assert wrong == []


if root := os.environ.get("LCM_DATASETS_DIR"):

    def test_the_published_development_set_is_known_and_is_the_same(tmp_path: Path) -> None:
        with gzip.open(f"{root}/dialogsum/dialogsum_dev.jsonl.gz", "rb") as packed:
            (tmp_path / "dialogsum.dev.jsonl").write_bytes(packed.read())
        published, part = Dialogsum(str(tmp_path), pinned=True).load(), Dialogsum().load()
        assert published.notes[0].startswith("dialogsum.dev.jsonl is release dev: cylnlp/dialogsum commit 848cc8c05e0a")
        assert published.transcripts == part.transcripts
        assert published.references.equals(part.references)
