"""`lcm models`: what there is, got from a server on this machine, and found by its name."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from lcm.compaction.summarizer.t5_files import checkpoints, find_folder
from lcm.errors import ModelError
from pipelines.cli import BAD_INPUT
from tests.pipelines.conftest import QUICK, Lcm
from tests.support.file_server import FileServer, serving_files
from tests.support.tiny_t5 import build

UNPINNED = checkpoints()["flan-t5-base"]
"""A checkpoint of whose files no digest is known: any T5 can be served under its name."""


@pytest.fixture(scope="module")
def untrained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model") / "untrained"
    build(folder, steps=0)
    (folder / "spiece.model").write_bytes(b"")
    return folder


@pytest.fixture
def hub(untrained: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FileServer]:
    place = f"/{UNPINNED.repository}/resolve/{UNPINNED.revision}"
    files = {f"{place}/{path.name}": path.read_bytes() for path in untrained.iterdir()}
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with serving_files(files) as server:
        yield server


def test_every_model_is_told_with_licence_size_and_whether_it_is_here(lcm: Lcm) -> None:
    finished = lcm("models")
    assert finished.code == 0
    told = dict(block.split("\n", 1) for block in finished.stdout.strip().split("\n\n"))
    assert list(told) == [f"summarizer.model={name}" for name in checkpoints()]
    for name, checkpoint in checkpoints().items():
        block = told[f"summarizer.model={name}"]
        for fact in (checkpoint.licence, checkpoint.trained_on, checkpoint.revision, f"{checkpoint.megabytes:,} MB"):
            assert fact in block
        assert block.endswith(f"  here        no: lcm models get {name}")
    assert lcm("models", "t5-small").stdout.startswith("summarizer.model=t5-small\n")


def test_what_is_got_is_found_by_its_name(lcm: Lcm, hub: FileServer, tmp_path: Path, untrained: Path) -> None:
    got = lcm("models", "get", UNPINNED.name, f"base_url={hub.url}")
    assert (got.code, got.stderr) == (0, "")
    folder = tmp_path / "cache" / "checkpoints" / UNPINNED.name
    assert "licence: Apache-2.0" in got.stdout
    assert re.search(r"model\.safetensors: [\d.]+ MB, sha256 \w{64}, trusted as it first came\n", got.stdout)
    assert got.stdout.endswith(f"Kept: {folder}\n")
    assert find_folder(UNPINNED.name) == folder
    assert (folder / "model.safetensors").read_bytes() == (untrained / "model.safetensors").read_bytes()
    assert (
        f"here        {folder}: 0 files of known digests, 7 as they first came" in lcm("models", UNPINNED.name).stdout
    )
    (folder / "tokenizer.json").write_text("{}")
    assert "but tokenizer.json is another file: remove it" in lcm("models", UNPINNED.name).stdout
    (folder / "tokenizer.json").unlink()
    assert f"{folder} lacks tokenizer.json: lcm models get" in lcm("models", UNPINNED.name).stdout
    with pytest.raises(ModelError, match=r"lacks tokenizer\.json: `lcm models get flan-t5-base` goes on from there"):
        find_folder(UNPINNED.name)


def test_a_pinned_model_is_not_taken_from_a_server_that_has_another(
    lcm: Lcm, untrained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = checkpoints()["flan-t5-small"]
    place = f"/{small.repository}/resolve/{small.revision}"
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with serving_files({f"{place}/{path.name}": path.read_bytes() for path in untrained.iterdir()}) as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        refused = lcm("models", "get", small.name)
    assert refused.code == BAD_INPUT
    assert f"expected {small.files[0].sha256}; it is removed again" in refused.stderr
    assert refused.stderr.count("\n") == 1


def test_a_sweep_says_which_summarizer_it_leaves_out_and_how_to_have_it(lcm: Lcm) -> None:
    swept = lcm(
        "evaluate", "-m", "sweep=summarizers", *QUICK, "summarizer=truncate", "compaction.leaf_target_tokens=300"
    )
    assert swept.code == 0, swept.stderr
    assert "left out: a T5, whose weights are not bundled; after `lcm models get t5-small`, " in swept.stdout
    narrowed = ("summarizer.beams=1", "summarizer.precision=fp32", "compaction.leaf_target_tokens=300")
    command = ("evaluate", "-m", "sweep=summarizers_t5", *QUICK, *narrowed)
    assert "summarizer=t5 has no model: `lcm models get t5-small` downloads one" in lcm(*command).stderr
    failed = lcm(*command, "summarizer.model=t5-small")
    assert failed.code == BAD_INPUT
    assert "`lcm models get t5-small` downloads it" in failed.stdout
    assert "1 of 1 points failed" in failed.stderr
