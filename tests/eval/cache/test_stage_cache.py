"""What is kept is found again as it was, or not at all."""

import errno
import multiprocessing
import os
from pathlib import Path

import polars as pl
import pytest

from eval.cache.stage_cache import FrameCache, StageCache

CONTENT = b"what was worked out" * 100

K, L, NEW, MIDDLE, OLD = (letter * 32 for letter in "abcde")
"""Keys, as digests are written."""


@pytest.fixture
def cache(tmp_path: Path) -> StageCache:
    return StageCache(str(tmp_path / "stages"))


def test_what_was_written_is_read_back(cache: StageCache) -> None:
    assert cache.read("pools", K) is None
    cache.write("pools", K, CONTENT)
    assert cache.read("pools", K) == CONTENT
    assert cache.read("pools", L) is cache.read("ranked", K) is None
    (cache.folder / "pools" / K).replace(cache.folder / "pools" / L)
    assert cache.read("pools", L) is None, "in the place of another it is not trusted"


def test_a_damaged_entry_is_not_trusted(cache: StageCache, caplog: pytest.LogCaptureFixture) -> None:
    for damage in (lambda whole: whole[:-1], lambda whole: b"\0" + whole[1:], lambda whole: whole[:50], lambda _: b""):
        cache.write("pools", K, CONTENT)
        (entry,) = cache.entries()
        entry.path.write_bytes(damage(entry.path.read_bytes()))
        caplog.clear()
        assert cache.read("pools", K) is None
        assert "damaged" in caplog.text
        assert cache.entries() == []


def test_a_folder_is_kept_whole_or_not_at_all(cache: StageCache) -> None:
    with pytest.raises(RuntimeError), cache.written_folder("checkpoints", K) as folder:
        (folder / "0.db").write_bytes(CONTENT)
        raise RuntimeError
    assert cache.read_folder("checkpoints", K) is None
    with cache.written_folder("checkpoints", K) as folder:
        (folder / "0.db").write_bytes(CONTENT)
        assert cache.read_folder("checkpoints", K) is None
    kept = cache.read_folder("checkpoints", K)
    assert kept is not None
    assert (kept / "0.db").read_bytes() == CONTENT
    (kept / "0.db").write_bytes(CONTENT[1:])
    assert cache.read_folder("checkpoints", K) is None


def test_a_folder_whose_sums_are_damaged_or_that_holds_something_else_is_not_trusted(cache: StageCache) -> None:
    wrong = []
    for damage in ("emptied", "cut by a line", "flipped", "garbage", "not UTF-8", "a folder", "gone", "a file more"):
        with cache.written_folder("checkpoints", K) as folder:
            for name in "ab":
                (folder / name).write_bytes(CONTENT)
        sums = cache.folder / "checkpoints" / K / "SHA256SUMS"
        whole = sums.read_bytes()
        left = {
            "emptied": b"", "cut by a line": whole[: whole.index(b"\n") + 1], "garbage": b"garbage",
            "flipped": bytes([whole[0] ^ 1]) + whole[1:], "not UTF-8": b"\xff\xfe\n", "a file more": whole,
        }  # fmt: skip
        sums.unlink()
        if damage in left:
            sums.write_bytes(left[damage])
        if damage == "a folder":
            sums.mkdir()
        if damage == "a file more":
            sums.with_name("c").write_bytes(CONTENT)
        if cache.read_folder("checkpoints", K) is not None or cache.entries():
            wrong.append(damage)
    assert not wrong


def test_a_disk_that_refuses_is_told_once_and_nothing_is_kept(
    cache: StageCache, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "replace", refuse)
    for key in (K, L):
        cache.write("pools", key, CONTENT)
        with cache.written_folder("checkpoints", key) as folder:
            (folder / "a").write_bytes(CONTENT)
    assert caplog.text.count("No space left on device") == 1
    assert [entry.path.name for entry in cache.entries()] == []


def test_who_comes_second_keeps_what_the_first_has_made_and_an_empty_folder_is_not_kept(cache: StageCache) -> None:
    with cache.written_folder("checkpoints", K):
        pass
    assert cache.entries() == []
    with cache.written_folder("checkpoints", K) as mine:
        (mine / "a").write_bytes(b"1")
        with cache.written_folder("checkpoints", K) as theirs:
            (theirs / "a").write_bytes(b"1")
    assert [path.name for path in (cache.folder / "checkpoints").iterdir()] == [K]


def test_what_was_not_used_for_longest_goes_first(cache: StageCache) -> None:
    for age, key in enumerate((NEW, MIDDLE, OLD)):
        cache.write("pools", key, bytes(1000))
        os.utime(cache.folder / "pools" / key, (1_000_000 - age, 1_000_000 - age))
    assert cache.read("pools", OLD) is not None  # used again
    removed = cache.prune(max_gib=2 * 1100 / (1 << 30))
    assert [entry.path.name for entry in removed] == [MIDDLE]
    assert {entry.path.name for entry in cache.entries()} == {NEW, OLD}


def test_what_is_not_of_the_cache_is_never_removed(tmp_path: Path) -> None:
    """The folder is a setting: it may name one that holds something else."""
    for name in ("photos/a.jpg", "thesis/ch1/notes.md", "pools/list.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("mine")
    before = {path for path in tmp_path.rglob("*") if path.is_file()}
    cache = StageCache(str(tmp_path), max_gib=0)
    cache.write("pools", K, CONTENT)
    cache.prune(max_gib=0)
    assert cache.entries() == []
    assert {path for path in tmp_path.rglob("*") if path.is_file()} == before


def test_the_folder_stays_within_its_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eval.cache.stage_cache._LOOK_EVERY_BYTES", 3000)
    cache = StageCache(str(tmp_path), max_gib=10_000 / (1 << 30))
    for i in range(50):
        cache.write("pools", f"{i:032x}", bytes(1000))
        assert sum(entry.size_bytes for entry in cache.entries()) <= 10_000 + 5 * 1052


def test_at_hand_stays_what_was_used_last(tmp_path: Path) -> None:
    cache = StageCache(str(tmp_path), memory_gib=25 / (1 << 30))
    made = []

    def value(key: str) -> int:
        def make() -> tuple[int, int]:
            made.append(key)
            return len(made), 10

        return cache.in_memory("pools", key, make)

    assert [value(key) for key in ("a", "b", "a", "c", "a", "b")] == [1, 2, 1, 3, 1, 4]  # c drove b out, not a


def test_a_frame_comes_back_with_what_was_survived(cache: StageCache) -> None:
    frame = pl.DataFrame({"query_id": ["q", None], "score": [0.1, float("nan")], "sources": [["a"], []]})
    times = []

    def make() -> tuple[pl.DataFrame, object]:
        times.append(1)
        return frame, {"dense branch failed": 2}

    for _ in range(2):
        found, incidents = FrameCache(cache).frame("ranked", K, make)  # type: ignore[arg-type]
        assert found.equals(frame)
        assert found.schema == frame.schema
        assert dict(incidents) == {"dense branch failed": 2}
    assert times == [1]
    FrameCache(None).frame("ranked", K, make)  # type: ignore[arg-type]
    FrameCache(cache).frame("ranked", None, make)  # type: ignore[arg-type]
    assert times == [1, 1, 1]


def _write_often(folder: Path, seed: int) -> None:
    cache = StageCache(str(folder))
    for i in range(40):
        content = bytes([i]) * 5000
        assert cache.read("pools", f"{i:032x}") in (None, content)
        cache.write("pools", f"{i:032x}", content)
        with cache.written_folder("checkpoints", f"{i:032x}") as made:
            (made / "a").write_bytes(content)
        if (i + seed) % 10 == 0:
            cache.prune(max_gib=0.0)


def test_many_processes_may_write_read_and_prune_at_once(tmp_path: Path) -> None:
    spawn = multiprocessing.get_context("fork")
    writers = [spawn.Process(target=_write_often, args=(tmp_path, seed)) for seed in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 0, 0]


@pytest.mark.parametrize(("name", "value"), [("max_gib", -1.0), ("max_gib", float("nan")), ("memory_gib", -0.5)])
def test_bounds_are_checked(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{name} must be >= 0( or .inf)?, got"):
        StageCache(**{name: value})  # type: ignore[arg-type]
    assert StageCache(max_gib=float("inf")).prune() == [], "no limit"
