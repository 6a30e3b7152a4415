"""Packed files: as much of them as text could have been."""

import gzip
import json
import os
import socket
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from eval.batch.sources import digest_of
from eval.dataset.beir import Beir
from eval.dataset.collection import read_trec_qrels
from eval.dataset.files import json_array, json_array_stream, unpacked_lines
from eval.dataset.locomo import read_ledger
from eval.dataset.longmemeval import LongMemEval
from eval.judging.judgements import JudgementFile
from eval.run import Run, read_summary, read_table
from lcm import given
from lcm.compaction.guidance.scanner import ByteScanner
from lcm.context.authored import AuthoredFiles
from lcm.derived import read_derived
from lcm.errors import DatasetError, LcmError, TranscriptError
from lcm.given_parquet import rows
from lcm.limits import UNPACKED_RATIO
from lcm.transcript.foreign import foreign_name
from lcm.transcript.reading import read_transcripts
from lcm.transcript.recorded_file import RecordedFile
from pipelines import import_preset
from tests.support.interrupting import within
from tests.support.packing import PACKINGS
from tests.support.read_questions import read_questions

LINE = json.dumps({"role": "user", "content": "a" * 900}) + "\n"


@pytest.mark.parametrize("ending", PACKINGS)
@pytest.mark.parametrize("begin", ["", "[\n"])
def test_a_small_file_that_becomes_a_huge_one_is_refused(tmp_path, monkeypatch, begin, ending):
    monkeypatch.setattr(given, "_ANY_BYTES", 2**18)
    path = tmp_path / f"bomb.jsonl.{ending}"
    path.write_bytes(PACKINGS[ending]((begin + LINE * 5_000).encode()))
    assert path.stat().st_size * 200 < 5_000 * len(LINE)
    refused = (
        r"bomb.jsonl.\w+: becomes more than [\d,]+ bytes when it is unpacked, 200 for each of its own.*_RATIO raises"
    )
    with pytest.raises(TranscriptError, match=refused):
        list(RecordedFile(path).values())
    monkeypatch.setenv(UNPACKED_RATIO.variable, "100000")
    if not begin:
        (read,) = read_transcripts(path)
        assert len(read.messages) == 5_000


DOORS: dict[str, Callable[[Path], object]] = {
    "published lines": lambda path: list(unpacked_lines(path)),
    "judgements of TREC": read_trec_qrels,
    "judgements": lambda path: JudgementFile(path.parent),
    "a plugin's settings": lambda path: import_preset.main([str(path)]),
}
OF_PACKED: dict[str, Callable[[Path], object]] = {
    "a published array": lambda path: list(json_array(path)),
    "a published array as a stream": lambda path: list(json_array_stream(path)),
    "longmemeval": lambda path: LongMemEval(file=str(path)).load(),
    "a ledger": read_ledger,
    "beir": lambda path: Beir(directory=str(path.parent)).load(),
    "questions": lambda path: read_questions(path.rename(path.with_name("q.jsonl"))),
}
OF_ANY: dict[str, Callable[[Path], object]] = {
    "questions": read_questions,
    "a transcript": read_transcripts,
    "a transcript's digest": digest_of,
    "Parquet": lambda path: list(rows(path)),
    "authored text": lambda path: authored(path.parent).nodes(incidents=Counter()),
    "a run's summary": lambda path: read_summary(path.parent),
    "a run's configuration": lambda path: Run(path.parent).config,
    "a run's table": read_table,
    "a derived file": read_derived,
}


@pytest.mark.parametrize("door", DOORS | OF_PACKED)
def test_no_door_unpacks_more_than_text_could_have_been(door, tmp_path, monkeypatch):
    """A line of JSON, packed, that is longer than any file of its size may become."""
    monkeypatch.setattr(given, "_ANY_BYTES", 2**18)
    path = tmp_path / "corpus.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"haystack_id": "' + b"a" * 2**20 + b'"}\n' * 2))
    path.with_name("judgements.jsonl").write_bytes(path.read_bytes())
    with pytest.raises(LcmError, match=r"becomes more than 262,144 bytes when it is .* LCM_MAX_UNPACKED_RATIO raises"):
        (DOORS | OF_PACKED)[door](path)


def test_a_file_that_is_read_at_once_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "q.jsonl"
    path.write_bytes(b"\n" * 1001)
    monkeypatch.setenv("LCM_MAX_WHOLE_FILE_BYTES", "1000")
    refused = r"q.jsonl: is too large to be read at once: the limit is 1,000, and .* LCM_MAX_WHOLE_FILE_BYTES raises it"
    with pytest.raises(DatasetError, match=refused):
        read_questions(path)
    monkeypatch.setenv("LCM_MAX_WHOLE_FILE_BYTES", "1001")
    assert len(given.read_whole(path)) == 1001


def test_the_head_of_a_packed_file_is_all_that_is_unpacked_of_it(tmp_path: Path) -> None:
    path = tmp_path / "zeros.gz"
    path.write_bytes(gzip.compress(bytes(2**26)))
    file = RecordedFile(path)
    assert foreign_name(file) == "a binary file"


@pytest.mark.parametrize("pack", PACKINGS.values(), ids=PACKINGS)
def test_what_is_packed_and_torn_cannot_be_read(pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(pack(b"[1, 2, 3]" * 100)[:-2])
    with pytest.raises(LcmError, match=r"a.json: cannot be read: .*; get the file again"):
        given.read_whole(path)


@pytest.mark.parametrize("pack", PACKINGS.values(), ids=PACKINGS)
@pytest.mark.parametrize("frames", [1, 2])
def test_what_stands_before_a_tear_is_given(pack: Callable[[bytes], bytes], frames: int, tmp_path: Path) -> None:
    """Whatever follows whole frames, and however little they hold."""
    for size in (1, 2**14 - 1, 2**14, 100_000):
        words = b"".join(pack(bytes([65 + frame]) * size) for frame in range(frames))
        path = tmp_path / "a"
        path.write_bytes(words + b"no frame at all")
        found = b""
        with given.opened(path) as stream, pytest.raises(given.TornError):
            while chunk := stream.read1(2**18):
                found += chunk
        assert found == b"".join(bytes([65 + frame]) * size for frame in range(frames))


def test_zstd_may_begin_with_a_frame_to_skip(tmp_path: Path) -> None:
    path = tmp_path / "a.zst"
    path.write_bytes(b"\x5a\x2a\x4d\x18\x04\x00\x00\x00skip" + PACKINGS["zst"](b"words"))
    assert given.read_whole(path) == b"words"


def authored(folder: Path) -> AuthoredFiles:
    return AuthoredFiles(ByteScanner(), [f"{folder}/*.md"])


@pytest.mark.skipif(os.name != "posix", reason="pipes and devices are POSIX's")
@pytest.mark.parametrize("kind", ["pipe", "device", "link to a pipe", "socket"])
@pytest.mark.parametrize("door", DOORS | OF_ANY)
def test_no_door_waits_for_a_pipe_or_a_device(door: str, kind: str, tmp_path: Path) -> None:
    path = tmp_path / "judgements.jsonl"
    os.mkfifo(tmp_path / "pipe")
    for name in (path.name, "summary.json", "config.yaml", "a.md"):
        match kind:
            case "pipe":
                os.mkfifo(tmp_path / name)
            case "socket":
                with socket.socket(socket.AF_UNIX) as made:
                    made.bind(os.path.relpath(tmp_path / name))
            case _:
                (tmp_path / name).symlink_to(tmp_path / "pipe" if "pipe" in kind else "/dev/zero")
    with within(20), pytest.raises((LcmError, OSError), match=r"[Nn]o plain file|neither a file nor a folder"):
        (DOORS | OF_ANY)[door](path)
