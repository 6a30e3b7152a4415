"""The one door: formats are recognised by content, and what is not known is refused."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from lcm.errors import TranscriptError
from lcm.records.conversation import Message, Transcript
from lcm.transcript import reading as reading
from lcm.transcript.chat import ChatReader
from lcm.transcript.reader import RecordedItem
from lcm.transcript.reading import joined, read_pieces, read_transcripts
from lcm.transcript.recorded_file import RecordedFile

CHAT = json.dumps({"role": "user", "content": "hello"})
OPENCLAW = json.dumps({"type": "session", "id": "0a1b"})


def test_a_format_can_be_named_but_not_one_that_the_file_is_clearly_not(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text(CHAT)
    assert read_transcripts(path, "chat") == read_transcripts(path)
    with pytest.raises(TranscriptError, match=r"notes\.txt: looks like chat, not like openclaw"):
        read_transcripts(path, "openclaw")
    with pytest.raises(TranscriptError, match="does not read the transcript format 'tape'; choose one of: auto, chat,"):
        read_transcripts(path, "tape")
    path.write_text('{"type": "message", "message": {"role": "user", "content": "no header before it"}}')
    assert len(read_transcripts(path, "openclaw")[0].messages) == 1


def test_another_reader_can_be_given(tmp_path: Path) -> None:
    class Tape:
        name = "tape"

        def detects(self, file: RecordedFile) -> bool:
            return file.path.suffix == ".tape"

        def read(self, file: RecordedFile) -> Iterator[RecordedItem]:
            for line, words in file.values():
                yield RecordedItem(
                    "side a", Message("", "user", words, "session"), f"line {line}" if line < 3 else None
                )

    path = tmp_path / "old.tape"
    path.write_text('"one"\n"two"\n"three"')
    (transcript,) = read_transcripts(path, readers=[Tape()])
    said = [("side a:1", "one"), ("side a:2", "two"), ("side a:3", "three")]
    assert [(m.message_id, m.content) for m in transcript.messages] == said
    assert transcript.title == "line 2"  # which the third tells nothing of


def test_pieces_are_small_by_count_and_by_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "talk.jsonl"
    path.write_text("\n".join([CHAT] * 1200))
    assert [len(piece.messages) for piece in read_pieces(RecordedFile(path), ChatReader())] == [500, 500, 200]
    monkeypatch.setattr(reading, "PIECE_BYTES", 10 * len(CHAT))
    pieces = list(read_pieces(RecordedFile(path), ChatReader(), "w1"))
    assert max(len(piece.messages) for piece in pieces) <= 11
    (whole,) = joined(pieces)
    assert [m.message_id for m in whole.messages] == [f"talk:{n}" for n in range(1, 1201)]
    assert whole.workspace_id == "w1"


def test_the_last_title_of_the_pieces_is_that_of_the_whole() -> None:
    pieces = [Transcript("a", (), title=title) for title in ("first", "second", None)]
    assert [whole.title for whole in joined(pieces)] == ["second"]
