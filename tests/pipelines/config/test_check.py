"""What is wrong with a command line is told once and with its file; `mistakes.txt` holds what is told together."""

from pathlib import Path

import pytest

from lcm.errors import LcmError
from pipelines.config.command_line import read
from pipelines.config.composition import composed


def test_one_wrong_override_among_many_is_told_alone() -> None:
    overrides = ["system=unified", "fusion.dense_wieght=1", "means.seed=3", "measures.latency.queries=0"]
    with pytest.raises(LcmError) as refused:
        composed(overrides)
    assert str(refused.value).startswith("fusion.dense_wieght: no such key; ")
    assert "; " not in str(refused.value).partition("; ")[2]


def test_a_wrong_choice_beside_a_setting_that_stands_twice_is_told() -> None:
    with pytest.raises(LcmError, match=r"^fusion=: no such choice; choose one of: hybrid_score, "):
        composed(["fusion.dense_weight=0.1", "fusion=", "fusion.dense_weight=0.1"])


def test_choices_of_a_searched_folder_are_known_wherever_the_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "decay").mkdir()
    (tmp_path / "decay" / "mine.yaml").write_text("_target_: lcm.retrieval.decay.NoDecay\n")
    with pytest.raises(LcmError) as refused:
        read(["decay=mine", "means.foo=1", f"hydra.searchpath=[file://{tmp_path}]"])
    assert str(refused.value).startswith("means.foo: no such key")
    assert "decay" not in str(refused.value)


@pytest.mark.parametrize(
    ("group", "text", "told"),
    [
        ("fusion", "- a\n- b\n", "is a list: write _target_: CLASS and its settings there"),
        ("decay", "", "sets nothing: write _target_: CLASS"),
        ("decay", "rate: 3\n", "is no component: write _target_: CLASS"),
        ("arms", "- a\n", "is a list: write NAME: and its settings"),
        ("experiment", "fusion: {k: 3}\n", "is without effect: write KEY: VALUE there, below a first line # @package"),
    ],
)
def test_a_choice_that_is_none_is_told_with_its_file(group: str, text: str, told: str, tmp_path: Path) -> None:
    (tmp_path / group).mkdir()
    (tmp_path / group / "mine.yaml").write_text(text)
    with pytest.raises(LcmError) as caught:
        composed([f"{group}=mine", f"hydra.searchpath=[file://{tmp_path}]"])
    assert str(caught.value).startswith(f"{group}=mine: {tmp_path / group / 'mine.yaml'} {told}")


def test_a_folder_to_search_that_is_not_there_is_refused_without_a_warning_of_hydra(
    tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    with pytest.raises(
        LcmError, match=r"^hydra.searchpath: no such folder '.*/none'; name one .*; decay=mine: no such"
    ):
        composed([f"hydra.searchpath=[file://{tmp_path}/none]", "decay=mine"])
    assert not recwarn.list
