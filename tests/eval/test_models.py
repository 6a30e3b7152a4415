"""A T5 from a server on this machine: whole, cut off, wrong, missing, and from one that wants more than to give it."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from eval import models
from eval.download import MissingFileError
from eval.models import MANIFEST, Manifest, Source, get, source_at, source_of
from lcm.compaction.summarizer.t5_files import Checkpoint, CheckpointFile, checkpoints
from lcm.errors import LcmError, ModelError
from tests.support.file_server import FileServer, serving_files

pytestmark = pytest.mark.slow

WEIGHTS = bytes(range(256)) * 2048
FILES = {"config.json": b'{"model_type": "t5"}', "tokenizer.json": b"{}", "model.safetensors": WEIGHTS}
PINNED = hashlib.sha256(WEIGHTS).hexdigest()
TINY = Checkpoint(
    *("tiny", "someone/tiny-t5", "abc123", "none", 1, 1, "nothing", "none", "summarize: ", 64),
    files=(
        CheckpointFile("config.json"),
        CheckpointFile("tokenizer.json"),
        CheckpointFile("model.safetensors", PINNED, len(WEIGHTS)),
    ),
)
PLACE = "/someone/tiny-t5/resolve/abc123/"


@pytest.fixture
def files() -> dict[str, bytes]:
    """What lies on the server, which is laid out as the hub is; a test may change it."""
    return {PLACE + name: content for name, content in FILES.items()}


@pytest.fixture
def server(files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> Iterator[FileServer]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv(models.HUB_URL, raising=False)
    with serving_files(files) as server:
        yield server


def got(server: FileServer, folder: Path, *, at: bool = False) -> Manifest:
    """Get the checkpoint, or what lies at the address of its folder."""
    source = source_at(server.url + PLACE) if at else source_of(TINY, server.url)
    return get(source, folder, lambda *_: nullcontext(lambda *_: None))


def refused(server: FileServer, folder: Path, *, at: bool = False) -> str:
    with pytest.raises(LcmError) as caught:
        got(server, folder, at=at)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_what_is_got_is_written_down_and_not_asked_for_again(server: FileServer, tmp_path: Path) -> None:
    manifest = got(server, tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.name != MANIFEST} == FILES
    assert manifest == Manifest.read(tmp_path)
    assert manifest.origin == "someone/tiny-t5 at abc123"
    assert manifest.files == {name: hashlib.sha256(content).hexdigest() for name, content in FILES.items()}
    assert got(server, tmp_path) == manifest
    assert len(server.asked) == len(FILES)


def test_an_address_gives_what_a_t5_needs_and_whatever_was_there_does_not_go_missing(
    server: FileServer, files: dict[str, bytes], tmp_path: Path
) -> None:
    files[f"{PLACE}generation_config.json"] = b"{}"
    manifest = got(server, tmp_path, at=True)
    assert manifest.files.keys() == {*FILES, "generation_config.json"}
    assert manifest.origin == server.url + PLACE
    assert {path.removeprefix(PLACE) for path, _ in server.asked} == {*FILES, *models._OPTIONAL}
    (tmp_path / "generation_config.json").unlink()
    del files[f"{PLACE}generation_config.json"]
    with pytest.raises(MissingFileError):
        got(server, tmp_path, at=True)


def test_a_published_digest_is_held_to_and_so_is_what_came_first(
    server: FileServer, files: dict[str, bytes], tmp_path: Path
) -> None:
    files[f"{PLACE}model.safetensors"] = WEIGHTS[:-1] + b"x"
    found = hashlib.sha256(WEIGHTS[:-1] + b"x").hexdigest()
    assert f"is not the pinned file: sha256 is {found}, expected {PINNED}" in refused(server, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.json", MANIFEST, "tokenizer.json"]
    files[f"{PLACE}tokenizer.json"] = b'{"other": 1}'
    (tmp_path / "tokenizer.json").unlink()
    assert f"expected {hashlib.sha256(FILES['tokenizer.json']).hexdigest()}" in refused(server, tmp_path)
    assert not (tmp_path / "tokenizer.json").exists()
    (tmp_path / "tokenizer.json").write_text("mine")
    assert "is there and is another file" in refused(server, tmp_path)
    assert (tmp_path / "tokenizer.json").read_text() == "mine"


def test_a_server_without_the_file_and_no_server_are_refused_with_the_ways_to_a_mirror(
    server: FileServer, files: dict[str, bytes], tmp_path: Path
) -> None:
    del files[f"{PLACE}tokenizer.json"]
    told = refused(server, tmp_path)
    assert "tokenizer.json: the server says 404 Not Found" in told
    assert told.endswith("a mirror is named by base_url=URL or HF_ENDPOINT")
    with pytest.raises(LcmError, match=r":9/someone/.* cannot be reached .* mirror with base_url=URL or HF_ENDPOINT"):
        got(FileServer("http://127.0.0.1:9"), tmp_path / "other")


def test_a_folder_of_another_model_is_left_alone(server: FileServer, tmp_path: Path) -> None:
    got(server, tmp_path)
    assert "holds someone/tiny-t5 at abc123, not http://127.0.0.1:" in refused(server, tmp_path, at=True)
    (tmp_path / MANIFEST).write_text("[]")
    assert f"{MANIFEST} is damaged" in refused(server, tmp_path)


@pytest.mark.parametrize("name", ["model.safetensors", "model.safetensors.part"])
def test_a_link_in_the_folder_is_not_written_through(server: FileServer, tmp_path: Path, name: str) -> None:
    target = tmp_path / "precious"
    target.write_text("mine")
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / name).symlink_to(target)
    assert f"{folder / name} is a link" in refused(server, folder)
    assert target.read_text() == "mine"


def test_shards_are_got_as_their_index_names_them_and_a_pickle_is_not(
    server: FileServer, files: dict[str, bytes], tmp_path: Path
) -> None:
    files[f"{PLACE}pytorch_model.bin"] = files.pop(f"{PLACE}model.safetensors")
    assert "weights of another form, as a pickle, are not got" in refused(server, tmp_path, at=True)
    assert not list(tmp_path.glob("*.bin*"))
    shards = {"model-00001-of-00002.safetensors": b"one", "model-00002-of-00002.safetensors": b"two"}
    files |= {PLACE + name: content for name, content in shards.items()}
    index = {"weight_map": dict(zip("ab", shards, strict=True))}
    files[f"{PLACE}model.safetensors.index.json"] = json.dumps(index).encode()
    got(server, tmp_path, at=True)
    assert {name: (tmp_path / name).read_bytes() for name in shards} == shards


@pytest.mark.parametrize(
    "name",
    ["../evil.safetensors", "/tmp/evil.safetensors", "a/b.safetensors", "..", ".evil.safetensors", "a\\b.safetensors",
     "evil.py", "pytorch_model.bin", "x.safetensors\n", "x.safetensors?y"],
)  # fmt: skip
def test_an_index_leads_nowhere_else(server: FileServer, files: dict[str, bytes], tmp_path: Path, name: str) -> None:
    del files[f"{PLACE}model.safetensors"]
    files[f"{PLACE}model.safetensors.index.json"] = json.dumps({"weight_map": {"a": name}}).encode()
    folder = tmp_path / "below" / "model"
    assert "which is no safetensors file beside it; nothing is got of it" in refused(server, folder, at=True)
    assert [path.name for path in tmp_path.iterdir()] == ["below"]
    assert sorted(path.name for path in folder.iterdir()) == [
        "config.json", MANIFEST, "model.safetensors.index.json", "tokenizer.json",
    ]  # fmt: skip


def test_addresses_are_of_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(models.HUB_URL, raising=False)
    assert source_of(TINY, None).address == f"https://huggingface.co{PLACE}"
    monkeypatch.setenv(models.HUB_URL, "https://mirror.example/")
    assert source_of(TINY, None).address == f"https://mirror.example{PLACE}"
    assert source_at("https://huggingface.co/a/b") == Source(
        *("https://huggingface.co/a/b/resolve/main/", "https://huggingface.co/a/b/resolve/main/", None)
    )
    assert source_at("http://host/models/t5/").address == "http://host/models/t5/"
    for wrong in ("ftp://host/a", "file:///etc", "https://", "https://host/a?token=b", "https://host/a#b"):
        with pytest.raises(ModelError, match="is no address of a folder: expected https://HOST/PATH"):
            source_at(wrong)
    with pytest.raises(ModelError, match="host: an address with a user or password is not taken") as caught:
        source_at("https://me:secret-word@host/a")
    assert "secret-word" not in str(caught.value)


def test_the_known_checkpoints_can_be_asked_for() -> None:
    for name, checkpoint in checkpoints().items():
        assert "/" not in name
        assert len(checkpoint.revision) == 40
        assert {"config.json", "tokenizer.json", "model.safetensors"} <= {file.name for file in checkpoint.files}
        assert all(Path(file.name).name == file.name and not file.name.endswith(".bin") for file in checkpoint.files)
        assert all(file.sha256 is None or len(file.sha256) == 64 for file in checkpoint.files)
        known = sum(file.size_bytes or 0 for file in checkpoint.files) / 1e6
        assert known <= checkpoint.megabytes + 1
        assert checkpoint.licence and checkpoint.trained_on and checkpoint.languages
