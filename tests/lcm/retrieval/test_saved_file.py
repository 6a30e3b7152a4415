"""The file of a saved index is whole or absent."""

import os
from pathlib import Path

import pytest

from lcm.errors import StoreError
from lcm.retrieval.saved_file import read_index, write_index

SETTINGS = {"kind": "test", "dim": 3}


def test_what_is_read_is_what_was_written(tmp_path: Path) -> None:
    path = tmp_path / "new" / "index"
    write_index(path, SETTINGS, {"ids": ["a", "学", "\ud800", None]}, {"one": b"\0\1", "two": b"", "three": b"xyz"})
    content, blobs = read_index(path, SETTINGS)
    assert content == {"ids": ["a", "学", "\ud800", None]}
    assert blobs == {"one": b"\0\1", "two": b"", "three": b"xyz"}


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_write_that_fails_leaves_the_old_file_and_no_other(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError("disk full")

    path = tmp_path / "index"
    write_index(path, SETTINGS, {"version": 1}, {})
    with monkeypatch.context() as patched:
        patched.setattr(*((os, "fsync") if step == "fsync" else (Path, "replace")), fail)
        with pytest.raises(OSError, match="disk full"):
            write_index(path, SETTINGS, {"version": 2}, {})
    assert read_index(path, SETTINGS) == ({"version": 1}, {})
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_in_the_place_of_the_file_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"cannot read the index file .* rebuild it"):
        read_index(tmp_path, SETTINGS)
