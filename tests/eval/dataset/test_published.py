"""Published files: found by their shape, told apart by their digest, refused where that is asked for."""

import gzip
import hashlib
import json
from pathlib import Path

import pytest

from eval.dataset.card import Card, PinnedFile, Release
from eval.dataset.files import Published, any_of, files_of, find_file, identified, json_records, notes_of
from lcm.errors import DatasetError

TALKS = json_records("array", ("qa", "id"), ("turns",))
LINES = json_records("lines", ("id",), ())
KNOWN = json.dumps([{"id": "a", "turns": []}]).encode()
PIN = PinnedFile("talks.json", hashlib.sha256(KNOWN).hexdigest(), len(KNOWN))
CARD = Card(
    name="talks",
    title="",
    licence="",
    origin="",
    how_to_get="",
    releases=(Release("one", "first edition", (PIN,)), Release("dev", "", (PinnedFile("d", "0" * 64),), is_told=False)),
)


def test_a_shape_is_seen_at_the_beginning_of_a_file(tmp_path: Path) -> None:
    files = {
        "array": b'\n [ {"id" : 1, "turns": []}]',
        "marked": b'\xef\xbb\xbf[{"qa": [{"turns": 1}]}]',
        "zipped.gz": gzip.compress(b'[{"id": 1, "turns": []}]'),
        "lines": b'{"id": 1, "turns": []}\n',
        "other key": b'[{"name": 1, "id": 1, "turns": []}]',
        "no turns": b'[{"id": 1, "text": "turns"}]',
        "empty": b"",
        "array of lists": b"[[1]]",
        "damaged.gz": b"\x1f\x8b\x08nothing",
        "binary": bytes(range(256)),
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    assert [p.name for p in files_of(tmp_path) if TALKS.is_held_by(p)] == ["array", "marked", "zipped.gz"]
    assert [p.name for p in files_of(tmp_path) if LINES.is_held_by(p)] == ["lines"]
    both = any_of(TALKS, LINES)
    assert [p.name for p in files_of(tmp_path) if both.is_held_by(p)] == ["array", "lines", "marked", "zipped.gz"]
    assert both.words == (
        "a JSON array of objects that begin with qa or id, with turns in them, "
        "or JSON lines, each an object that begin with id"
    )


def test_hidden_files_and_unfinished_downloads_are_no_files_of_a_dataset(tmp_path: Path) -> None:
    for name in (".git/talks.json", "data/talks.json", "talks.json.part", ".hidden.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(KNOWN)
    assert [p.relative_to(tmp_path).as_posix() for p in files_of(tmp_path)] == ["data/talks.json"]


def test_a_known_file_is_named_whatever_it_is_called(tmp_path: Path) -> None:
    (tmp_path / "renamed").write_bytes(KNOWN)
    found = find_file(CARD, TALKS, str(tmp_path), pinned=True)
    assert (found.path, found.pin, found.release) == (tmp_path / "renamed", PIN, CARD.releases[0])
    assert notes_of(found) == ("renamed is release one: first edition",)


def test_an_unknown_file_is_taken_with_a_note_or_refused_with_both_digests(tmp_path: Path) -> None:
    path = tmp_path / "talks.json"
    path.write_bytes(KNOWN + b"\n")
    digest = hashlib.sha256(KNOWN + b"\n").hexdigest()
    found = find_file(CARD, TALKS, str(tmp_path))
    assert (found.pin, found.release) == (PinnedFile("talks.json", digest, len(KNOWN) + 1), None)
    assert notes_of(found) == (f"talks.json is no known release, taken as it is (sha256 {digest})",)
    with pytest.raises(DatasetError) as caught:
        find_file(CARD, TALKS, str(tmp_path), pinned=True)
    assert str(caught.value) == (
        f"{path} is not the pinned file: sha256 is {digest}, expected {PIN.sha256} (one); get the file again, or take "
        "it as it is with dataset.pinned=false"
    )
    with pytest.raises(DatasetError, match=rf"expected {PIN.sha256} \(one\), {'0' * 64} \(dev\);"):
        identified(CARD, path.rename(tmp_path / "t"), pinned=True)


def test_no_file_and_several_files_say_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="holds no file of talks: expected a JSON array of objects that begin with"):
        find_file(CARD, TALKS, str(tmp_path))
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_bytes(KNOWN)
    (tmp_path / "c.txt").write_text("notes")
    with pytest.raises(DatasetError, match=r"name one, dataset.file=a.json \(there are a.json, b.json\)"):
        find_file(CARD, TALKS, str(tmp_path))
    assert find_file(CARD, TALKS, str(tmp_path), "b.json").path == tmp_path / "b.json"


def test_a_named_file_needs_no_folder_but_the_right_shape(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LCM_DATASETS_DIR", raising=False)
    (tmp_path / "a.json").write_bytes(KNOWN)
    (tmp_path / "c.txt").write_text("notes")
    assert find_file(CARD, TALKS, file=str(tmp_path / "a.json")).release is CARD.releases[0]
    with pytest.raises(DatasetError, match=r"c.txt is not of the shape of talks: expected a JSON array"):
        find_file(CARD, TALKS, str(tmp_path), "c.txt")
    with pytest.raises(DatasetError, match=r"dataset.file=d.json means .*/d.json, which is no file"):
        find_file(CARD, TALKS, str(tmp_path), "d.json")
    with pytest.raises(DatasetError, match="set LCM_DATASETS_DIR"):
        find_file(CARD, TALKS, file="a.json")
    with pytest.raises(DatasetError, match="which is not a folder"):
        find_file(CARD, TALKS, str(tmp_path / "nowhere"))


def test_a_part_names_what_is_there() -> None:
    Published().check_part([], "talks.json")
    Published(only=["b"]).check_part(["a", "b"], "talks.json")
    with pytest.raises(DatasetError) as caught:
        Published(only=["b", "x"]).check_part(["a", "b"], "talks.json")
    assert str(caught.value) == "dataset.only names 'x', which talks.json does not hold; it holds a, b"
    with pytest.raises(DatasetError, match="it holds 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 8 more"):
        Published(only=["x"]).check_part([str(n) for n in range(20)], "talks.json")
    for bad in ([], "conv-26", [1]):
        with pytest.raises(ValueError, match="only must be null or a list of names, got "):
            Published(only=bad)  # type: ignore[arg-type]
