"""DialogSum: counts of the pinned file, and the loader's rules on a small copy of the format."""

import csv
import gzip
import io
import json
import os
import re
from collections import Counter
from hashlib import sha256
from pathlib import Path

import pytest

from eval.dataset.dialogsum import Dialogsum
from lcm.errors import DatasetError
from lcm.transcript.parts import rebuild
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


def test_a_line_is_a_message_of_its_speaker(small: str) -> None:
    first, _ = Dialogsum(small).load().transcripts
    assert [(message.author, message.content) for message in first.messages] == [
        ("#Person1#", "Hello #Person2#!"),
        ("#Person2#", "Hi: it's me."),
        ("#Person1#", "Come in."),
    ]
    assert {message.role for message in first.messages} == {"user"}
    assert {message.created_at for message in first.messages} == {None}


def test_lines_without_a_speaker_lose_no_words(small: str) -> None:
    _, second = Dialogsum(small).load().transcripts
    assert [(message.author, message.content) for message in second.messages] == [
        (None, "The bell rings."),
        ("#Person3#", "First\nand me\n\nand again"),
        ("#Person12#", ""),
        ("#Person3#", "#Person4: no"),
    ]


def test_dialogues_rebuild_exactly(small: str) -> None:
    for transcript, record in zip(Dialogsum(small).load().transcripts, RECORDS, strict=True):
        turns = [rebuild(message) for message in transcript.messages]
        lines = [f"{turn['speaker']}: {turn['text']}" if turn["speaker"] else turn["text"] for turn in turns]
        assert "\n".join(lines) == record["dialogue"]


def test_each_dialogue_is_a_workspace_with_one_session_and_one_summary(small: str) -> None:
    dataset = Dialogsum(small).load()
    assert [t.workspace_id for t in dataset.transcripts] == ["one", "two"]
    sessions = [{message.session_id for message in t.messages} for t in dataset.transcripts]
    assert [len(one) for one in sessions] == [1, 1]
    assert sessions[0] != sessions[1]
    first, second = (t.conversation_id for t in dataset.transcripts)
    assert dataset.references.rows() == [
        (first, None, "#Person1# lets #Person2# in."),
        (second, None, "#Person3# talks."),
    ]


def test_nothing_is_asked_and_nothing_is_judged(small: str) -> None:
    dataset = Dialogsum(small).load()
    assert dataset.queries == ()
    assert [len(frame) for frame in (dataset.qrels, dataset.session_qrels, dataset.options)] == [0, 0, 0]


def test_summary_and_topic_are_nowhere_in_the_transcripts(small: str) -> None:
    transcripts = repr(Dialogsum(small).load().transcripts)
    assert "secret" not in transcripts
    assert "lets" not in transcripts


def test_ids_are_opaque_and_each_turn_has_its_own(small: str) -> None:
    transcripts = Dialogsum(small).load().transcripts
    messages = [message for t in transcripts for message in t.messages]
    ids = [m.message_id for m in messages] + [t.conversation_id for t in transcripts]
    ids += sorted({m.session_id for m in messages})
    assert all(re.fullmatch(r"[0-9a-f]{16}", one) for one in ids)
    assert len(set(ids)) == len(ids) == 7 + 2 + 2


def test_a_file_of_no_known_release_is_taken_and_said_so_or_refused(small: str) -> None:
    path = Path(small) / NAME
    path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes()) + b"\n"))
    digest = sha256(path.read_bytes()).hexdigest()
    told = f"{NAME} is no known release, taken as it is (sha256 {digest})"
    assert Dialogsum(small).load().notes == (told,)
    with pytest.raises(DatasetError, match=f"is not the pinned file: sha256 is {digest}, expected"):
        Dialogsum(small, pinned=True).load()


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


def test_some_dialogues_are_taken_by_name(small: str) -> None:
    dataset = Dialogsum(small, only=["two"]).load()
    assert dataset.workspaces == ["two"]
    assert dataset.references["text"].to_list() == ["#Person3# talks."]
    assert dataset.protocol == "references=1 only=two"
    with pytest.raises(DatasetError, match=r"dataset\.only names 'three', which dialogues\.jsonl\.gz does not hold"):
        Dialogsum(small, only=["three"]).load()


DIALOGUE = {"fname": "dev_0", "dialogue": "#Person1#: Hello", "summary": "They meet."}
HOSTILE = {
    ("dev.jsonl", lines(DIALOGUE, {"fname": "x", "summary": "s"})): "dev.jsonl: record 2: 'dialogue' is missing",
    ("dev.jsonl", lines(DIALOGUE, {"fname": "x", "dialogue": "d"})): "dev.jsonl: record 2: 'summary' is missing",
    ("dev.jsonl", lines(DIALOGUE | {"fname": 3})): "dev.jsonl: record 1: 'fname' must be text, got 3",
    ("dev.jsonl", lines(DIALOGUE, DIALOGUE)): "dev.jsonl: record 2: 'fname' 'dev_0' is another dialogue's too",
    ("dev.jsonl", lines(DIALOGUE) + "{"): "dev.jsonl: record 2: is not JSON",
    ("dev.jsonl", ""): "holds no file of dialogsum: expected JSON lines",
    ("test.csv", table(("a_0", "one", "s"), ("a_0", "two", "s"))): "test.csv: record 2: 'id' 'a_0' is another",
    ("test.csv", table(("a_0_1", "one", "s"), ("a_0_2", "two", "s"))): "test.csv: record 2: 'id' 'a_0' is another",
    ("test.csv", "id,dialogue,summary\na,b\n"): "test.csv: record 1: 'summary' is missing",
    ("test.csv", "id,dialogue,summary\n"): "test.csv: holds no record",
    ("test.csv", "id,dialogue\n"): "holds no file of dialogsum: expected JSON lines",
}


def test_hostile_shapes_are_told_in_one_line(tmp_path: Path) -> None:
    wrong = []
    for number, ((name, text), words) in enumerate(HOSTILE.items()):
        place = tmp_path / str(number)
        place.mkdir()
        (place / name).write_text(text, newline="")
        try:
            Dialogsum(str(place)).load()
            wrong.append(f"taken: {words}")
        except DatasetError as error:
            wrong += [] if words in str(error) and "\n" not in str(error) else [str(error)]
    (tmp_path / "latin.csv").write_bytes(table(("a_0", "caf\xe9", "s")).encode("latin-1"))
    with pytest.raises(DatasetError, match=r"latin\.csv: line 2: is not UTF-8"):
        Dialogsum(str(tmp_path), file="latin.csv").load()
    assert not wrong, "\n".join(wrong)


if root := os.environ.get("LCM_DATASETS_DIR"):

    def test_the_published_development_set_is_known_and_its_csv_is_the_same(tmp_path: Path) -> None:
        with gzip.open(f"{root}/dialogsum/dialogsum_dev.jsonl.gz", "rb") as packed:
            content = packed.read()
        (tmp_path / "dialogsum.dev.jsonl").write_bytes(content)
        rows = [(r["fname"], r["dialogue"], r["summary"]) for r in map(json.loads, content.splitlines())]
        (tmp_path / "validation.csv").write_text(table(*rows), newline="", encoding="utf-8")
        published, part = Dialogsum(str(tmp_path), file="dialogsum.dev.jsonl", pinned=True).load(), Dialogsum().load()
        assert published.notes[0].startswith("dialogsum.dev.jsonl is release dev: cylnlp/dialogsum commit 848cc8c05e0a")
        for dataset in (published, Dialogsum(str(tmp_path), file="validation.csv").load()):
            assert dataset.transcripts == part.transcripts
            assert dataset.references.equals(part.references)

    def test_the_pinned_file_has_the_counts_of_the_card() -> None:
        with gzip.open(f"{root}/dialogsum/dialogsum_dev.jsonl.gz", "rb") as lines:
            records = [json.loads(line) for line in lines]
        dataset = Dialogsum().load()
        assert len(records) == len({record["fname"] for record in records}) == len(dataset.transcripts) == 500
        lines_of = [record["dialogue"].split("\n") for record in records]
        assert all(re.match(r"#Person\d#: \S", line) for lines in lines_of for line in lines)
        speakers = [[line[: len("#Person1#")] for line in lines] for lines in lines_of]
        assert [[m.author for m in t.messages] for t in dataset.transcripts] == speakers
        assert Counter(author for dialogue in speakers for author in dialogue) == {
            "#Person1#": 2436,
            "#Person2#": 2247,
            "#Person3#": 6,
            "#Person4#": 1,
        }
        assert Counter(len(set(dialogue)) for dialogue in speakers) == {2: 495, 3: 4, 4: 1}
        assert sum(map(len, speakers)) == 4690
        assert (min(map(len, speakers)), max(map(len, speakers))) == (2, 29)
        assert sum(len(line.split()) - 1 for lines in lines_of for line in lines) == 59_980
        words = [[line.split(": ", 1)[1].strip() for line in lines] for lines in lines_of]
        assert [[m.content for m in t.messages] for t in dataset.transcripts] == words
        assert sum(line != line.strip() for lines in lines_of for line in lines) == 670
        assert dataset.references["text"].to_list() == [record["summary"] for record in records]
        assert len({record["summary"] for record in records}) == 500
