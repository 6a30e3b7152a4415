"""Files that are written whole or not at all, for their owner."""

import os
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.errors import LcmError
from lcm.files import file_name, private, written_whole
from lcm.records.conversation import Message
from lcm.retrieval.embedder.cache import CachedEmbedder
from lcm.retrieval.embedder.hashing import Hashing
from lcm.store.store import Store
from lcm.token_estimator import Utf16Units
from tests.support.workspaces import minute

POSIX = pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")


@pytest.fixture(params=[0o022, 0o077, 0])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    assert os.umask(before) == request.param, "left as it was"


@POSIX
@pytest.mark.parametrize(("named", "mode"), [(None, 0o600), ("022", 0o644), ("027", 0o640)])
def test_what_is_made_is_its_owners_alone_unless_asked_otherwise(tmp_path, umask, named, mode, monkeypatch):
    monkeypatch.delenv("LCM_UMASK", raising=False)
    if named is not None:
        monkeypatch.setenv("LCM_UMASK", named)
    for content in (b"first", b"second"):
        with written_whole(tmp_path / "folder" / "file") as stream:
            stream.write(content)
        assert (tmp_path / "folder" / "file").read_bytes() == content
    with Store(tmp_path / "stores" / "memory.db") as store:
        store.append("talk", [Message("1", "user", "goat", "s", minute(1))], Utf16Units())
        with store.serialised("talk"):
            modes = modes_below(tmp_path)
        store.copy_to(tmp_path / "stores" / "copy.db")
    with CachedEmbedder(Hashing(dim=8), tmp_path / "vectors") as embedder:
        embedder.embed(["goat"], "document")
        modes |= modes_below(tmp_path)
    assert {"file", "memory.db", "memory.db-wal", "memory.db-shm", "copy.db", "memory.db-locks"} <= modes.keys()
    wrong = {name: oct(found) for name, found in modes.items() if found not in (mode, folder_mode(mode))}
    assert not wrong


@POSIX
def test_threads_that_make_files_at_once_leave_the_mask_as_it_was(tmp_path: Path, umask: int) -> None:
    def make(number: int) -> int:
        with written_whole(tmp_path / str(number)) as stream:
            stream.write(b"goat")
        return (tmp_path / str(number)).stat().st_mode & 0o777

    with ThreadPoolExecutor(8) as threads:
        assert set(threads.map(make, range(200))) == {0o600}


def test_a_mask_that_is_none_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for wrong in ("rw", "-1", "888", "0o22", "77777"):
        monkeypatch.setenv("LCM_UMASK", wrong)
        with pytest.raises(LcmError, match="LCM_UMASK must be an octal mask such as 022, got"), private():
            pass


def modes_below(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mode & 0o777 for path in folder.rglob("*")}


def folder_mode(mode: int) -> int:
    """A folder may be entered by whom it can be listed."""
    return mode | (mode & 0o444) >> 2


def test_an_error_leaves_what_was_there_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("before")

    def broken() -> None:
        with written_whole(tmp_path / "file") as stream:
            stream.write(b"half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        broken()
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [("file", "before")]


hostile = st.text(max_size=80) | st.sampled_from(
    ["x" * 300, "\ud800", *["", ".", "..", "../x", "/etc", "a/b", "a\\b", "a\x00b", "A", "a", "con", "CON.txt", "nul."]]
)


@given(st.sets(hostile, max_size=6))
def test_names_of_files_from_data_are_one_part_of_a_path_and_differ(texts: set[str]) -> None:
    names = [file_name(text) for text in sorted(texts, key=repr)]
    for name in names:
        assert re.fullmatch(r"[a-z0-9_.-]{1,90}", name)
        assert name.strip(".") == name
        assert Path(name).name == name
        assert name.partition(".")[0] not in ("con", "nul")
    assert len({name.casefold() for name in names}) == len(texts)
    for name in ("system", "bm25", "last_n", "2026-11-21.a"):
        assert file_name(name) == name
    assert not file_name("a.").endswith(".")
