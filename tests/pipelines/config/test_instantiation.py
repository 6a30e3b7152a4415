"""Plain data becomes the components that Hydra makes of it."""

import pytest
from hydra.utils import get_object, instantiate
from omegaconf import OmegaConf

from pipelines.config import composition, conf_folder
from pipelines.config.building import RefusedError, instantiated
from pipelines.config.trust import component, refusals
from pipelines.steps.point import PARTS

SYSTEMS = [None, *conf_folder.groups()["system"]]


@pytest.mark.parametrize("system", SYSTEMS)
def test_parts_equal_those_that_hydra_makes(system: str | None) -> None:
    config = composition.composed(["embedder=hashing", *([f"system={system}"] if system else [])])
    for part in PARTS:
        plain = OmegaConf.to_container(config[part], resolve=True)
        assert not list(refusals(plain, part))
        assert repr(instantiated(plain, part, component)) == repr(instantiate(config[part], _convert_="all"))


def test_a_refusal_names_the_node_and_has_its_cause() -> None:
    plain = {"a": [{"_target_": "lcm.retrieval.ranking.stages.selection.Limit", "n": 0}]}
    with pytest.raises(RefusedError) as refused:
        instantiated(plain, "top", get_object)
    assert refused.value.path == "top.a[0]"
    assert str(refused.value.__cause__) == "n must be >= 1, got 0"
