"""Packed files: as much of them as text could have been."""

import gzip
import json
from pathlib import Path

import pytest

from lcm.errors import TranscriptError
from lcm.limits import UNPACKED_RATIO
from lcm.transcript import packed
from lcm.transcript.reading import read_transcripts
from lcm.transcript.recorded_file import RecordedFile

LINE = json.dumps({"role": "user", "content": "a" * 900}) + "\n"


@pytest.mark.parametrize("begin", ["", "[\n"])
def test_a_small_file_that_becomes_a_huge_one_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begin: str
) -> None:
    monkeypatch.setattr(packed, "_ANY_BYTES", 2**18)
    path = tmp_path / "bomb.jsonl.gz"
    path.write_bytes(gzip.compress((begin + LINE * 5_000).encode()))
    assert path.stat().st_size * 200 < 5_000 * len(LINE)
    refused = (
        r"bomb.jsonl.gz: becomes more than [\d,]+ bytes when it is unpacked, 200 for each of its own.*_RATIO raises"
    )
    with pytest.raises(TranscriptError, match=refused):
        list(RecordedFile(path).values())
    monkeypatch.setenv(UNPACKED_RATIO.variable, "2000")
    if not begin:
        (read,) = read_transcripts(path)
        assert len(read.messages) == 5_000
