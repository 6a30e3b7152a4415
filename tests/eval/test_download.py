"""Downloads against a server on this machine: whole, cut off and gone on with, wrong, missing, without room."""

import hashlib
import re
from collections import namedtuple
from collections.abc import Iterator
from pathlib import Path

import pytest

from eval import download as module
from eval.dataset.card import PinnedFile, Release, address_of
from eval.download import MissingFileError, Remote, download
from lcm.errors import LcmError
from tests.support.file_server import FileServer, serving_files

pytestmark = pytest.mark.slow

CONTENT = bytes(range(256)) * 4096
PIN = PinnedFile("data/talks.json", hashlib.sha256(CONTENT).hexdigest(), len(CONTENT))
UNSIZED = PinnedFile(PIN.path, PIN.sha256)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FileServer]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(module, "_CHUNK", 1 << 12)
    with serving_files({"/talks.json": CONTENT, "/other.json": b"other"}) as served:
        yield served


def get(server: FileServer, folder: Path, pin: PinnedFile = PIN, path: str = "/talks.json") -> list[tuple[int, object]]:
    """Download; gives what was told of its progress."""
    told: list[tuple[int, object]] = []
    remote = Remote(server.url + path, pin.sha256, pin.size_bytes)
    got = download(remote, folder / pin.path, lambda there, whole: told.append((there, whole)))
    assert got == PIN.sha256
    assert (folder / pin.path).read_bytes() == CONTENT
    assert [p.name for p in folder.rglob("*") if p.is_file()] == ["talks.json"]
    return told


def test_a_file_comes_whole_and_is_left_alone_after_that(server: FileServer, tmp_path: Path) -> None:
    told = get(server, tmp_path)
    assert told[-1] == (len(CONTENT), len(CONTENT))
    assert [there for there, _ in told] == sorted({there for there, _ in told})
    assert get(server, tmp_path) == []
    assert server.asked == [("/talks.json", None)]


@pytest.mark.parametrize("pin", [PIN, UNSIZED], ids=["size known", "size unknown"])
@pytest.mark.parametrize("has_ranges", [True, False])
def test_a_broken_connection_is_taken_up_where_it_broke_or_from_the_beginning(
    server: FileServer, tmp_path: Path, pin: PinnedFile, has_ranges: bool
) -> None:
    server.has_ranges = has_ranges
    server.breaks = [300_000, 300_001] if has_ranges else [300_000]
    told = get(server, tmp_path, pin)
    assert server.asked[0] == ("/talks.json", None)
    begins = [int(re.fullmatch(r"bytes=(\d+)-", wanted or "")[1]) for _, wanted in server.asked[1:]]  # type: ignore[index]
    assert len(begins) == (2 if has_ranges else 1)
    assert 0 < begins[0] <= begins[-1] < len(CONTENT)
    assert told[-1] == (len(CONTENT), len(CONTENT))


def test_the_next_command_goes_on_where_one_was_cut_off(server: FileServer, tmp_path: Path) -> None:
    server.breaks = [500_000, 0]
    with pytest.raises(LcmError, match=r"0\.5 MB are there, and the same command goes on from there") as caught:
        get(server, tmp_path)
    assert "\n" not in str(caught.value)
    part = tmp_path / "data" / "talks.json.part"
    there = part.stat().st_size
    assert part.read_bytes() == CONTENT[:there]
    server.asked.clear()
    get(server, tmp_path)
    assert server.asked == [("/talks.json", f"bytes={there}-")]


def test_what_is_whole_but_has_not_its_name_is_only_checked(server: FileServer, tmp_path: Path) -> None:
    part = tmp_path / "data" / "talks.json.part"
    part.parent.mkdir()
    part.write_bytes(CONTENT)
    get(server, tmp_path)
    assert server.asked == []
    (tmp_path / "data" / "talks.json").rename(part)
    get(server, tmp_path, UNSIZED)
    assert server.asked == [("/talks.json", f"bytes={len(CONTENT)}-")]


def test_another_file_is_refused_with_both_digests_and_removed(server: FileServer, tmp_path: Path) -> None:
    found = hashlib.sha256(b"other").hexdigest()
    with pytest.raises(LcmError, match=f"sha256 is {found}, expected {PIN.sha256}; it is removed"):
        get(server, tmp_path, UNSIZED, "/other.json")
    part = tmp_path / "data" / "talks.json.part"
    part.write_bytes(b"x" * 1000)  # what another download left
    with pytest.raises(LcmError, match="is not the pinned file"):
        get(server, tmp_path)
    assert not [p for p in tmp_path.rglob("*") if p.is_file()]
    get(server, tmp_path)
    for _ in range(2):  # a file without a known digest comes, and is there
        digest = download(Remote(f"{server.url}/other.json"), tmp_path / "other.json", lambda *_: None)
        assert digest == found
    assert [path for path, _ in server.asked].count("/other.json") == 2


def test_another_file_in_its_place_is_left_there(server: FileServer, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "talks.json").write_bytes(b"mine")
    with pytest.raises(LcmError, match=r"is there and is another file: .* remove it, or name another folder"):
        get(server, tmp_path)
    assert ((tmp_path / "data" / "talks.json").read_bytes(), server.asked) == (b"mine", [])


def test_a_missing_file_and_a_missing_server_are_one_line(server: FileServer, tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match=r"/gone.json: the server says 404 Not Found; nothing is there; a"):
        get(server, tmp_path, path="/gone.json")
    with pytest.raises(LcmError, match=r":9/a cannot be reached .*; nothing is there; .*base_url=URL") as caught:
        download(Remote("http://127.0.0.1:9/a", PIN.sha256), tmp_path / "a", lambda *_: None)
    assert "\n" not in str(caught.value)


def test_without_room_nothing_is_asked_for(server: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(module.shutil, "disk_usage", lambda _: usage(10, 5, 1_000_000))
    with pytest.raises(LcmError, match=r"has room for 1\.0 MB, and talks.json needs 1\.0 MB more; make room"):
        get(server, tmp_path)
    assert server.asked == []


def test_a_disk_that_fills_up_is_one_line(server: FileServer, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "talks.json.part").symlink_to("/dev/full")
    with pytest.raises(LcmError, match=r"talks.json: No space left on device; nothing is there"):
        get(server, tmp_path)


def test_an_address_is_the_releases_or_the_mirrors() -> None:
    release = Release("one", "", (PIN,), url="https://example.org/a/")
    moved = PinnedFile("raw/talks 10.json", "0")
    assert address_of(release, PIN, "talks", None) == "https://example.org/a/data/talks.json"
    assert address_of(release, moved, "talks", None) == "https://example.org/a/raw/talks%2010.json"
    assert address_of(release, moved, "talks", "http://host/m/") == "http://host/m/talks/raw/talks%2010.json"
    assert address_of(Release("two", "", (PIN,)), PIN, "talks", None) is None
