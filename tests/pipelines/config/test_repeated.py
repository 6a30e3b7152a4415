"""Overrides that choose again what a kept configuration holds."""

import pytest
from omegaconf import OmegaConf

from pipelines.config import building, composition
from pipelines.config.presets import repeated_dataset


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ([], ["dataset=sample"]),
        (
            [
                "dataset=own",
                "dataset.paths=[talk a,'b,c']",
                "dataset.questions='what=$\\{is\\}.jsonl'",
                "dataset.strict=true",
            ],
            None,
        ),
        (["dataset=locomo", "dataset.only=[conv-26]"], ["dataset=locomo", 'dataset.only=["conv-26"]']),
        (["dataset=beir", "dataset.directory=null", "dataset.split=dev"], ["dataset=beir", 'dataset.split="dev"']),
        (["+dataset.size=3"], ["dataset=sample", "+dataset.size=3"]),
        (
            [
                "replay.haystack=pooled",
                "replay.distractors=9",
                "+dataset@distractors.old=beam",
                "distractors.old.size=1M",
            ],
            [
                "dataset=sample",
                "replay=bulk",
                'replay.haystack="pooled"',
                "replay.distractors=9",
                "+dataset@distractors.old=beam",
                'distractors.old.size="1M"',
            ],
        ),
    ],
)
def test_they_compose_to_the_same(asked: list[str], told: list[str] | None) -> None:
    kept = OmegaConf.create(building.resolved_text(building.resolved(composition.composed(asked))))
    found = repeated_dataset(kept)
    assert found is not None
    again, before = building.resolved(composition.composed(found)), building.resolved(kept)
    for group in ("dataset", "replay", "distractors"):
        assert again[group] == before[group]
    if told is not None:
        assert found == told


def test_a_class_of_no_choice_cannot_be_chosen_again() -> None:
    kept = composition.composed(["dataset._target_=mine.Loader"])
    assert repeated_dataset(kept) is None
