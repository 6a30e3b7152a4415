"""What a saved configuration names is found where it stands today, and nothing else is."""

import pytest

from lcm.errors import LcmError
from lcm.token_estimator import CodePoints
from pipelines.config.trust import component


def test_a_component_is_found_though_its_module_became_part_of_another() -> None:
    assert component("lcm.token_estimator.code_points.CodePoints") is CodePoints


@pytest.mark.parametrize(
    "target",
    [
        "lcm.token_estimator.code_points.Nothing",  # no such component
        "lcm.code_points.CodePoints",  # of another package
        "lcm.retrieval.llm.Llm",  # several of that name
        "os.code_points.CodePoints",
    ],
)
def test_what_no_package_holds_is_no_component(target: str) -> None:
    with pytest.raises(LcmError, match="is no component"):
        component(target)
