"""Folders at URLs: what is new on one side reaches the other whole, and nothing that only one side has is lost."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from eval.mirror import Mirror, is_url, local, origin_of
from lcm.errors import LcmError

URL = "memory://bucket/runs"


@pytest.fixture
def storage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MemoryFileSystem]:
    """An empty storage, a cache of its own, and a user who named the bucket."""
    monkeypatch.setenv("LCM_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("LCM_ALLOWED_HOSTS", "bucket")
    files = MemoryFileSystem()
    yield files
    if files.exists("/bucket"):
        files.rm("/bucket", recursive=True)


def put(storage: MemoryFileSystem, name: str, text: str) -> None:
    storage.pipe_file(f"/bucket/runs/{name}", text.encode())


def text_of(mirror: Mirror, name: str) -> str:
    return (mirror.place / name).read_text()


def noted(monkeypatch: pytest.MonkeyPatch, method: str) -> list[str]:
    """Return the paths of the storage that the method will be called with."""
    paths: list[str] = []
    inner = getattr(MemoryFileSystem, method)

    def noting(self: MemoryFileSystem, one: str, other: str, *arguments: object, **named: object) -> object:
        paths.append(one if method == "get_file" else other)
        return inner(self, one, other, *arguments, **named)

    monkeypatch.setattr(MemoryFileSystem, method, noting)
    return paths


def test_what_changes_there_comes_here_once_and_what_is_gone_there_goes(
    storage: MemoryFileSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched = noted(monkeypatch, "get_file")
    mirror = Mirror.of(URL)
    assert not mirror.fetch()
    put(storage, "a/one.txt", "1")
    put(storage, "two.txt", "2")
    for _ in range(3):
        assert mirror.fetch()
    assert sorted(fetched) == ["/bucket/runs/a/one.txt", "/bucket/runs/two.txt"]
    assert (text_of(mirror, "a/one.txt"), text_of(mirror, "two.txt")) == ("1", "2")
    put(storage, "two.txt", "22")
    storage.rm("/bucket/runs/a/one.txt")
    mirror.fetch()
    assert text_of(mirror, "two.txt") == "22"
    assert not (mirror.place / "a" / "one.txt").exists()
    assert local(f"{URL}/two.txt").read_text() == "22"  # a file may be mirrored alone
    assert local(Path(f"{URL}/two.txt")).name == "two.txt"  # `Path` makes one slash of two


def test_what_is_made_here_is_sent_once_and_a_summary_last_and_another_machine_goes_on(
    storage: MemoryFileSystem, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    sent = noted(monkeypatch, "put_file")
    mirror = Mirror.of(URL)
    for name in ("summary.json", "a/summary.json", "z.txt", "b.txt"):
        (mirror.place / name).parent.mkdir(parents=True, exist_ok=True)
        (mirror.place / name).write_text(name)
    assert mirror.send() == 4
    assert [name.removeprefix("/bucket/runs/") for name in sent] == ["b.txt", "z.txt", "a/summary.json", "summary.json"]
    assert mirror.send() == 0
    (mirror.place / "b.txt").write_text("another")
    assert mirror.send() == 1
    assert storage.cat_file("/bucket/runs/b.txt") == b"another"
    monkeypatch.setenv("LCM_CACHE_DIR", str(tmp_path / "elsewhere"))
    assert local(URL).joinpath("b.txt").read_text() == "another"
    (local(URL) / "b.txt").write_text("there")
    Mirror.of(URL).send()
    monkeypatch.setenv("LCM_CACHE_DIR", str(tmp_path / "cache"))
    assert local(URL).joinpath("b.txt").read_text() == "there"


def test_neither_locks_nor_open_databases_nor_links_are_sent(storage: MemoryFileSystem) -> None:
    mirror = Mirror.of(URL)
    mirror.place.mkdir(parents=True)
    for name in ("shard.db", "shard.db-wal", "shard.db-shm", ".lock", "shard.lock", ".x.tmp", "whole.db"):
        (mirror.place / name).write_text("x")
    (mirror.place / "link").symlink_to("/etc/hostname")
    mirror.send()
    assert storage.find("/bucket/runs") == ["/bucket/runs/whole.db"]


def test_a_file_that_was_changed_on_both_sides_is_refused_and_both_stay(storage: MemoryFileSystem) -> None:
    put(storage, "one.txt", "1")
    mirror = Mirror.of(URL)
    mirror.fetch()
    (mirror.place / "one.txt").write_text("here")
    mirror.fetch()  # it was changed here alone
    assert text_of(mirror, "one.txt") == "here"
    put(storage, "one.txt", "there")
    with pytest.raises(LcmError, match=r"one\.txt was changed there, and its copy .*one\.txt here: remove the one"):
        mirror.fetch()
    assert (text_of(mirror, "one.txt"), storage.cat_file("/bucket/runs/one.txt")) == ("here", b"there")
    put(storage, "one.txt", "here")
    mirror.fetch()  # equal changes are none


def test_what_is_known_of_a_mirror_may_be_lost(storage: MemoryFileSystem) -> None:
    put(storage, "one.txt", "1")
    mirror = Mirror.of(URL)
    mirror.fetch()
    (mirror.place / "own.txt").write_text("own")
    for damaged in ("", "[]", "{"):
        (mirror.place.parents[1] / "state.json").write_text(damaged)
        mirror.fetch()
        assert (text_of(mirror, "one.txt"), text_of(mirror, "own.txt")) == ("1", "own")
    mirror.send()
    assert storage.cat_file("/bucket/runs/own.txt") == b"own"


def test_a_copy_knows_its_origin_and_the_origin_its_copy(storage: MemoryFileSystem, tmp_path: Path) -> None:
    put(storage, "a/session.jsonl", "{}")
    put(storage, "a/session/subagents/b.jsonl", "{}")
    put(storage, "a/other.jsonl", "{}")
    origin = origin_of(local(URL) / "a" / "session.jsonl")
    assert origin is not None
    assert (origin.root, origin.name, origin.url) == (URL, "a/session.jsonl", f"{URL}/a/session.jsonl")
    assert origin_of(tmp_path / "anything") is None
    os.environ["LCM_CACHE_DIR"] = str(tmp_path / "elsewhere")  # set by the fixture, and put back by it
    there = origin.path()
    assert sorted(file.name for file in there.parent.rglob("*.jsonl")) == ["b.jsonl", "session.jsonl"]


def test_what_no_path_may_hold_is_refused_wherever_it_stands(storage: MemoryFileSystem) -> None:
    for wrong in (f"{URL}/../x", f"{URL}/*.jsonl", f"{URL}//x", "memory://bucket/a::s3://b"):
        with pytest.raises(LcmError, match="no name of a folder or file"):
            Mirror.of(wrong)
    storage.store["/bucket/runs/../../evil"] = storage.open("/bucket/x", "wb")
    try:
        with pytest.raises(LcmError, match="no plain path of a file"):
            local(URL)
    finally:
        del storage.store["/bucket/runs/../../evil"]


def test_what_is_no_storage_is_a_path_and_what_is_not_there_or_not_allowed_is_refused(
    storage: MemoryFileSystem,
) -> None:
    assert not any(map(is_url, ("http://host/x", "s3", "runs/a", "file:///x", "memory://", "postgres://x")))
    assert is_url("s3://bucket/x")
    with pytest.raises(LcmError, match="memory://bucket/nothing: no such file or folder"):
        local("memory://bucket/nothing")
    with pytest.raises(LcmError, match="is no host that you named: say LCM_ALLOWED_HOSTS=other"):
        local("memory://other/runs")


def test_a_storage_that_refuses_is_told_in_one_line(storage: MemoryFileSystem, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError("Access\nDenied")

    monkeypatch.setattr(MemoryFileSystem, "find", refuse)
    with pytest.raises(LcmError, match=r"its storage refuses \(Access Denied\): look after address and credentials"):
        local(URL)


def test_a_file_that_came_in_part_is_not_taken_for_whole(
    storage: MemoryFileSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(storage, "one.txt", "12345")
    monkeypatch.setattr(MemoryFileSystem, "get_file", lambda self, there, here: Path(here).write_text("12"))
    with pytest.raises(LcmError, match="came in part only: give the same command again"):
        local(URL)
    assert json.loads((Mirror.of(URL).place.parents[1] / "state.json").read_text())["files"] == {}
