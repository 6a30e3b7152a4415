"""Overrides that choose again what a kept configuration holds."""

import pytest
from omegaconf import OmegaConf

from pipelines.config import building, composition
from pipelines.config.repeated import repeated


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
    ],
)
def test_they_compose_to_the_same(asked: list[str], told: list[str] | None) -> None:
    kept = OmegaConf.create(building.resolved_text(composition.composed(asked)))
    found = repeated(kept, "dataset")
    assert found is not None
    again = building.resolved(composition.composed(found))["dataset"]
    assert again == building.resolved(kept)["dataset"]
    if told is not None:
        assert found == told


def test_a_class_of_no_choice_cannot_be_chosen_again() -> None:
    kept = composition.composed(["dataset._target_=mine.Loader"])
    assert repeated(kept, "dataset") is None
