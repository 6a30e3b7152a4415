"""The file of a saved index is whole or absent."""

import mmap
from pathlib import Path

import numpy as np
import pytest

from lcm.errors import StoreError
from lcm.retrieval.indexing import let_go, read_index, write_index

SETTINGS = {"kind": "test", "dim": 3}


def test_what_is_read_is_what_was_written(tmp_path: Path) -> None:
    path, ids = tmp_path / "new" / "index", ["a", "学", "\ud800", None]
    pieces = [b"ab", memoryview(b"cd"), b""]
    write_index(path, SETTINGS, {"ids": ids}, {"one": b"\0\1", "two": b"", "pieces": pieces, "none": []})
    content, blobs = read_index(path, SETTINGS)
    assert content == {"ids": ids}
    assert blobs == {"one": b"\0\1", "two": b"", "pieces": b"abcd", "none": b""}
    with pytest.raises(StoreError, match=r"cannot read the index file .* rebuild it"):
        read_index(path.parent, SETTINGS)


def test_a_write_that_fails_leaves_the_old_file_and_no_other(tmp_path, monkeypatch):
    def fail(*_: object) -> None:
        raise OSError("disk full")

    path = tmp_path / "index"
    write_index(path, SETTINGS, {"version": 1}, {})
    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", fail)
        with pytest.raises(OSError, match="disk full"):
            write_index(path, SETTINGS, {"version": 2}, {})
    assert read_index(path, SETTINGS) == ({"version": 1}, {})
    assert list(tmp_path.iterdir()) == [path]


def test_numbers_are_looked_at_where_they_lie_in_the_file(tmp_path: Path) -> None:
    numbers = np.arange(5, dtype=np.float32)
    for name in ("a", "ab", "abc", "学"):
        write_index(tmp_path / "index", SETTINGS, {"name": name}, {"numbers": numbers.data.cast("B"), "others": b"xyz"})
        blob = read_index(tmp_path / "index", SETTINGS)[1]["numbers"]
        read = np.frombuffer(blob, np.float32)
        assert read.tolist() == numbers.tolist()
        assert read.flags.aligned
        assert isinstance(blob, memoryview) and isinstance(blob.obj, mmap.mmap)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="this system does not tell what it holds of files")
def test_what_is_let_go_of_leaves_memory_and_is_read_again(tmp_path: Path) -> None:
    held = np.arange(2**22, dtype=np.float32)
    write_index(tmp_path / "index", SETTINGS, {}, {"numbers": held.data.cast("B")})
    blob = read_index(tmp_path / "index", SETTINGS)[1]["numbers"]
    assert bytes(blob) == held.tobytes()
    before = _of_files_kib()
    let_go(blob)
    assert before - _of_files_kib() > 12 * 1024
    assert bytes(blob) == held.tobytes()
    let_go(b"no file")


def _of_files_kib() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssFile:"))
