"""DialogSum: counts of the pinned file, and the loader's rules on a small copy of the format."""

import gzip
import json
import os
import re
from collections import Counter
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from eval.dataset import dialogsum
from eval.dataset.card import PinnedFile
from eval.dataset.dialogsum import Dialogsum
from lcm.errors import DatasetError
from lcm.transcript.parts import rebuild

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


def write_small_dialogsum(directory: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Fill the folder and make its digest the pinned one; returns it as `dataset.directory` wants it."""
    content = gzip.compress("".join(json.dumps(record) + "\n" for record in RECORDS).encode())
    (directory / dialogsum._DIALOGUES.path).write_bytes(content)
    pin = PinnedFile(dialogsum._DIALOGUES.path, sha256(content).hexdigest())
    monkeypatch.setattr(dialogsum, "_DIALOGUES", pin)
    monkeypatch.setattr(Dialogsum, "card", replace(Dialogsum.card, files=(pin,)))
    return str(directory)


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A folder in DialogSum's format whose digest is pinned."""
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


def test_another_file_is_refused(small: str) -> None:
    path = Path(small) / dialogsum._DIALOGUES.path
    path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(DatasetError, match="is not the pinned file"):
        Dialogsum(small).load()


if root := os.environ.get("LCM_DATASETS_DIR"):

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
