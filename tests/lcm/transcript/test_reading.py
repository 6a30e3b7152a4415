"""The one door: formats are recognised by content, and what is not known is refused."""

import json
from pathlib import Path

import pytest

from lcm.errors import TranscriptError
from lcm.records import Transcript
from lcm.transcript.reading import READERS, read_transcripts

CHAT = json.dumps({"role": "user", "content": "hello"})
OPENCLAW = json.dumps({"type": "session", "id": "0a1b"})


@pytest.mark.parametrize(("text", "conversation_id"), [(CHAT, "notes"), (OPENCLAW, "0a1b")])
def test_a_format_is_recognised_by_content(tmp_path: Path, text: str, conversation_id: str) -> None:
    path = tmp_path / "notes.txt"
    path.write_text(text)
    (transcript,) = read_transcripts(path)
    assert (transcript.conversation_id, transcript.workspace_id) == (conversation_id, "default")
    assert read_transcripts(path, workspace_id="w1")[0].workspace_id == "w1"
    assert sum(reader.detects(path) for reader in READERS) == 1


@pytest.mark.parametrize("text", ['{"task": 1, "traj": []}', "# Notes\n", "", "7"])
def test_an_unknown_format_is_refused_with_the_known_ones(tmp_path: Path, text: str) -> None:
    path = tmp_path / "notes.txt"
    path.write_text(text)
    with pytest.raises(TranscriptError, match=r"notes\.txt: not a known transcript format; known are: chat, openclaw"):
        read_transcripts(path)


def test_a_format_can_be_named(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text(CHAT)
    assert read_transcripts(path, "chat") == read_transcripts(path)
    with pytest.raises(TranscriptError, match="starts with"):
        read_transcripts(path, "openclaw")
    with pytest.raises(TranscriptError, match="unknown transcript format 'tape'; choose one of: auto, chat, openclaw"):
        read_transcripts(path, "tape")


def test_another_reader_can_be_given(tmp_path: Path) -> None:
    class Tape:
        name = "tape"

        def detects(self, path: Path) -> bool:
            return path.suffix == ".tape"

        def read(self, path: Path) -> list[Transcript]:
            return [Transcript("side a", ())]

    assert read_transcripts(tmp_path / "old.tape", readers=[Tape()]) == [Transcript("side a", ())]


def test_a_missing_or_torn_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(TranscriptError, match=r"nowhere\.jsonl: cannot be read: .*No such file"):
        read_transcripts(tmp_path / "nowhere.jsonl")
    torn = tmp_path / "torn.jsonl.gz"
    torn.write_bytes(b"\x1f\x8b\x08\0\0\0\0\0")
    with pytest.raises(TranscriptError, match=r"torn\.jsonl\.gz: cannot be read"):
        read_transcripts(torn)
