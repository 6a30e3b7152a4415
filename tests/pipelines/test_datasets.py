"""`lcm datasets`: what there is, where it should be, and whether it is the real thing."""

import json
import re
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from shutil import copytree

import pytest

from eval.dataset.sample import Sample, bundled_directory
from pipelines.cli import BAD_INPUT
from pipelines.config import conf_folder
from pipelines.datasets import card_of
from tests.pipelines.conftest import Lcm
from tests.support.file_server import FileServer, serving_files
from tests.support.small_locomo import write_small_locomo

CHOICES = conf_folder.groups()["dataset"]


def test_every_dataset_is_told_with_licence_origin_and_the_way_to_get_it(lcm: Lcm) -> None:
    finished = lcm("datasets")
    assert finished.code == 0
    told = dict(block.split("\n", 1) for block in finished.stdout.strip().split("\n\n"))
    assert list(told) == [f"dataset={choice}" for choice in CHOICES]
    missing = [
        (choice, fact)
        for choice in CHOICES
        for card in [card_of(choice)]
        for fact in (card.title, card.licence, card.origin, card.how_to_get, *(r.title for r in card.releases))
        if f"  {fact}" not in told[f"dataset={choice}"] and f": {fact}" not in told[f"dataset={choice}"]
    ]
    assert missing == []
    assert lcm("datasets", "locomo").stdout.startswith("dataset=locomo\n")


def test_the_bundled_sample_is_there_and_is_the_pinned_one(lcm: Lcm) -> None:
    said = lcm("datasets", "sample").stdout
    assert f"  expected in    {bundled_directory()}\n" in said
    for file in Sample.card.files:
        assert f"  {file.path}: ok, sha256 {file.sha256}\n" in said


def test_a_dataset_that_is_not_there_is_told_and_not_a_failure(
    lcm: Lcm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "  missing        dataset 'locomo' is not bundled: set LCM_DATASETS_DIR" in lcm("datasets", "locomo").stdout
    monkeypatch.setenv("LCM_DATASETS_DIR", str(tmp_path / "nowhere"))
    finished = lcm("datasets", "locomo")
    assert finished.code == 0
    assert f"means {tmp_path}/nowhere/locomo, which is not a folder" in finished.stdout


def test_a_file_that_is_missing_or_not_the_pinned_one_is_told(
    lcm: Lcm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = copytree(bundled_directory(), tmp_path / "sample")
    (copy / "queries.jsonl").write_text("changed")
    (copy / "transcripts" / "ryokou.json").unlink()
    monkeypatch.setattr("pipelines.datasets.bundled_directory", lambda name: copy)
    finished = lcm("datasets", "sample")
    assert finished.code == 0
    assert f"{copy}/queries.jsonl is not the pinned file: sha256 is " in finished.stdout
    assert f"{copy}/transcripts/ryokou.json is missing" in finished.stdout
    assert "  transcripts/coding.jsonl: ok" in finished.stdout


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FileServer]:
    """A mirror that has a small LoCoMo, and a folder that is to hold datasets."""
    (tmp_path / "published").mkdir()
    write_small_locomo(tmp_path / "published", monkeypatch)
    files = {f"/locomo/{path.name}": path.read_bytes() for path in (tmp_path / "published").iterdir()}
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with serving_files(files) as server:
        yield server


def test_a_dataset_is_got_once_its_licence_is_accepted(
    lcm: Lcm, tmp_path: Path, mirror: FileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LCM_DATASETS_DIR", str(tmp_path / "datasets"))
    refused = lcm("datasets", "get", "locomo", f"base_url={mirror.url}")
    assert refused.code == BAD_INPUT
    assert "licence: CC BY-NC 4.0: for measuring only, not shipped" in refused.stdout
    assert refused.stderr.endswith("say accept_licence=true if you accept it\n")
    assert mirror.asked == []
    monkeypatch.setenv("LCM_DATASETS_URL", mirror.url)
    got = lcm("datasets", "get", "locomo", "accept_licence=true")
    assert (got.code, got.stderr) == (0, "")
    assert f"small: 3 files, all checked by their sha256\nKept: {tmp_path}/datasets/locomo\n" in got.stdout
    told = lcm("datasets", "locomo").stdout
    assert "  release        small: one conversation" in told
    assert "  small: 3 of 3 files are there" in told
    assert lcm("datasets", "get", "locomo", "accept_licence=true").code == 0
    assert len(mirror.asked) == 3  # what is there is not asked for again


@pytest.mark.parametrize(("typed", "code"), [("yes\n", 0), ("no\n", BAD_INPUT), ("", BAD_INPUT)])
def test_a_licence_is_asked_for_where_somebody_can_answer(
    lcm: Lcm, tmp_path: Path, mirror: FileServer, monkeypatch: pytest.MonkeyPatch, typed: str, code: int
) -> None:
    terminal = StringIO(typed)
    terminal.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr("sys.stdin", terminal)
    finished = lcm("datasets", "get", "locomo", f"base_url={mirror.url}", f"into={tmp_path}/mine")
    assert finished.code == code
    assert "Do you accept the licence? Type yes: " in finished.stdout
    assert (tmp_path / "mine" / "talks.json").exists() == (code == 0)


def test_a_ledger_is_told_and_kept(lcm: Lcm, tmp_path: Path, mirror: FileServer) -> None:
    settings = [f"dataset.directory={tmp_path}/published"]
    told = lcm("datasets", "ledger", "locomo", *settings).stdout
    assert [json.loads(line)["question_id"] for line in told.splitlines()] == ["conv-1/0", "conv-1/1", "conv-1/3"]
    kept = lcm("datasets", "ledger", "locomo", "into=ledger.jsonl", *settings)
    assert kept.stdout == "Kept: ledger.jsonl (3 corrections)\n"
    assert (kept.place / "ledger.jsonl").read_text() == told
    assert "into=ledger.jsonl exists" in lcm("datasets", "ledger", "locomo", "into=ledger.jsonl", *settings).stderr


def test_every_release_is_named_once_and_can_be_checked() -> None:
    for choice in CHOICES:
        card = card_of(choice)
        assert len({release.name for release in card.releases}) == len(card.releases), choice
        for release in card.releases:
            assert re.fullmatch(r"[\w.-]+", release.name), release.name
            assert release.url is None or re.fullmatch(r"https://\S+/", release.url), release.name
            assert release.files, release.name
            for pin in release.files:
                assert re.fullmatch(r"[0-9a-f]{64}", pin.sha256), pin
                assert not Path(pin.path).is_absolute(), pin
                assert ".." not in Path(pin.path).parts, pin
