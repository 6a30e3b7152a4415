"""Transcripts go into a Polars frame and come out of it as they were."""

from pathlib import Path

import polars as pl
import pytest

from lcm.errors import TranscriptError
from lcm.records.conversation import Transcript
from lcm.transcript.frame import FRAME_SCHEMA, read_frame, transcript_frame
from lcm.transcript.parquet import write_parquet
from lcm.transcript.reading import read_transcripts
from tests.conftest import ROOT

RECORDINGS = ROOT / "tests" / "recordings"


@pytest.fixture(scope="module")
def transcripts() -> list[Transcript]:
    return [t for name in ("openclaw.jsonl", "chat.jsonl", "gemini.json") for t in read_transcripts(RECORDINGS / name)]


def test_out_and_in_again_is_the_same(transcripts: list[Transcript]) -> None:
    frame = transcript_frame(transcripts)
    assert frame.schema == FRAME_SCHEMA
    assert read_frame(frame) == transcripts
    assert len(frame.filter(pl.col("role").is_not_null())) == sum(len(t.messages) for t in transcripts)


def test_the_frame_is_what_polars_reads_of_the_file(transcripts: list[Transcript], tmp_path: Path) -> None:
    written = write_parquet(transcripts, tmp_path / "messages.parquet")
    frame = pl.read_parquet(tmp_path / "messages.parquet")
    assert frame.equals(transcript_frame(transcripts))
    assert (written.messages + written.events, written.conversations) == (len(frame), len(transcripts))
    frame.write_parquet(tmp_path / "by polars.parquet")
    assert read_transcripts(tmp_path / "by polars.parquet") == transcripts


def test_any_frame_of_roles_and_contents_is_read() -> None:
    frame = pl.DataFrame({"role": ["user", "assistant"], "content": ["Hi", "Hello"], "liked": [None, True]})
    (transcript,) = read_frame(frame, "survey", "w1")
    assert [(m.message_id, m.role, m.content) for m in transcript.messages] == [
        ("survey:1", "user", "Hi"),
        ("survey:2", "assistant", "Hello"),
    ]
    assert transcript.messages[1].envelope["native"]["liked"] is True
    assert transcript.workspace_id == "w1"


def test_a_bad_row_or_a_missing_column_is_named() -> None:
    with pytest.raises(TranscriptError, match="row 2: "):
        read_frame(pl.DataFrame({"role": ["user", None], "content": ["Hi", "Hello"]}))
    with pytest.raises(TranscriptError, match="there is no column content"):
        read_frame(pl.DataFrame({"role": ["user"]}))
