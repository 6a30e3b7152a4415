"""What is composed faster is what Hydra composes by itself."""

import subprocess
import sys
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from pipelines.config import hydra_speed
from pipelines.config.composition import composed

_PLAIN = """
import sys
from contextlib import nullcontext
from omegaconf import OmegaConf
from pipelines.config import hydra_speed
hydra_speed.sped_up = nullcontext
from pipelines.config.composition import composed
for overrides in sys.argv[1:]:
    print(OmegaConf.to_yaml(composed(overrides.split()), resolve=False), end="---\\n")
"""


@pytest.mark.slow
def test_hydra_alone_composes_the_same(tmp_path: Path) -> None:
    (tmp_path / "system").mkdir()
    asked_for = "# @package _global_\ndefaults:\n  - override /decay: weibull_fast\n  - _self_\nfusion:\n  k: 7\n"
    (tmp_path / "system" / "mine.yaml").write_text(asked_for)
    asked = ["", "system=libravdb", "system=lossless_claw decay=none", "ranking=neighbours embedder=hashing"]
    asked.append(f"hydra.searchpath=[file://{tmp_path}] system=mine ++fusion.k=8")
    done = subprocess.run([sys.executable, "-c", _PLAIN, *asked], capture_output=True, text=True, check=True)
    fast = [OmegaConf.to_yaml(composed(overrides.split()), resolve=False) for overrides in asked]
    assert done.stdout.split("---\n")[:-1] == fast


def test_an_interpolated_choice_is_found(tmp_path: Path) -> None:
    (tmp_path / "experiment").mkdir()
    text = "# @package _global_\ndefaults:\n  - /decay@other: ${experiment}\n"
    (tmp_path / "experiment" / "weibull_fast.yaml").write_text(text)
    whole = composed([f"hydra.searchpath=[file://{tmp_path}]", "experiment=weibull_fast", "decay=weibull_fast"])
    assert whole.other == whole.decay


def test_a_yaml_that_changed_is_read_anew(tmp_path: Path) -> None:
    (tmp_path / "decay").mkdir()
    choice = tmp_path / "decay" / "mine.yaml"
    halves = []
    for half in (3, 5):
        choice.write_text(f"defaults: [exponential]\nhalf_life_days: {half}\n")
        halves.append(composed(["decay=mine", f"hydra.searchpath=[file://{tmp_path}]"]).decay.half_life_days)
    assert halves == [3, 5]


def test_a_yaml_is_parsed_once() -> None:
    composed(["decay=weibull_fast"])
    before = hydra_speed._parsed.cache_info()
    composed(["decay=weibull_fast"])
    after = hydra_speed._parsed.cache_info()
    assert after.misses == before.misses
    assert after.hits > before.hits + 20
