"""`lcm datasets`: what there is, where it should be, and whether it is the real thing."""

from pathlib import Path
from shutil import copytree

import pytest

from eval.dataset.sample import Sample, bundled_directory
from pipelines.cli import BAD_INPUT
from pipelines.config import building, composition, conf_folder
from tests.pipelines.conftest import Lcm

CHOICES = conf_folder.groups()["dataset"]


@pytest.mark.parametrize("choice", CHOICES)
def test_every_dataset_is_told_with_licence_origin_and_the_way_to_get_it(lcm: Lcm, choice: str) -> None:
    card = building.build(composition.composed([f"dataset={choice}"]), "dataset").card
    said = lcm("datasets", choice).stdout
    assert said.startswith(f"dataset={choice}\n")
    for fact in (card.title, card.licence, card.origin, card.how_to_get):
        assert f"  {fact}\n" in said


def test_all_datasets_are_listed_without_a_name(lcm: Lcm) -> None:
    finished = lcm("datasets")
    assert finished.code == 0
    assert [line for line in finished.stdout.splitlines() if line[:1] not in ("", " ")] == [
        f"dataset={choice}" for choice in CHOICES
    ]


def test_the_bundled_sample_is_there_and_is_the_pinned_one(lcm: Lcm) -> None:
    said = lcm("datasets", "sample").stdout
    assert f"  expected in    {bundled_directory()}\n" in said
    for file in Sample.card.files:
        assert f"  {file.path}: ok, sha256 {file.sha256}\n" in said


def test_a_dataset_without_a_place_is_told_and_not_a_failure(lcm: Lcm) -> None:
    finished = lcm("datasets", "locomo")
    assert finished.code == 0
    assert "  missing        dataset 'locomo' is not bundled: set LCM_DATASETS_DIR" in finished.stdout


def test_a_missing_folder_is_told_with_its_path(lcm: Lcm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    monkeypatch.setattr("pipelines.datasets.bundled_directory", lambda: copy)
    finished = lcm("datasets", "sample")
    assert finished.code == 0
    assert f"{copy}/queries.jsonl is not the pinned file: sha256 is " in finished.stdout
    assert f"{copy}/transcripts/ryokou.json is missing" in finished.stdout
    assert "  transcripts/coding.jsonl: ok" in finished.stdout


def test_an_unknown_name_is_one_line_with_the_choices(lcm: Lcm) -> None:
    finished = lcm("datasets", "sampel")
    assert finished.code == BAD_INPUT
    assert finished.stderr == f"lcm: no such dataset: 'sampel'; choose one of: {', '.join(CHOICES)}\n"
    assert finished.stdout == ""
