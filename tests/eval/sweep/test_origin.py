"""Whether a point is to be run again: only if what its numbers come from has changed."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from eval.sweep.origin import Origin, origin_of, point_name
from eval.sweep.point_folder import PointFolder
from lcm.errors import LcmError

CONFIG: dict[str, Any] = {
    "fusion": {"_target_": "lcm.fusion.weighted_sum.WeightedSum", "dense_weight": 0.7},
    "latency": {"queries": 3},
    "tracking": {"uri": "here"},
}
ORIGIN = origin_of(CONFIG, "digest")


def test_where_runs_are_logged_makes_no_other_point() -> None:
    elsewhere = {**CONFIG, "tracking": {"uri": "there"}}
    assert point_name(elsewhere) == point_name(CONFIG)
    assert origin_of(elsewhere, "digest") == ORIGIN


@pytest.mark.parametrize("change", [{"latency": {"queries": 4}}, {"fusion": {**CONFIG["fusion"], "dense_weight": 0.6}}])
def test_every_other_setting_does(change: dict[str, Any]) -> None:
    changed = {**CONFIG, **change}
    assert point_name(changed) != point_name(CONFIG)
    assert origin_of(changed, "digest").config_hash != ORIGIN.config_hash
    assert origin_of(changed, "digest").code == ORIGIN.code


def test_the_code_is_that_of_the_components_which_are_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "first_of_theirs.py").write_text("class Theirs: ...\n")
    (tmp_path / "second_of_theirs.py").write_text("class Theirs: 'other'\n")
    monkeypatch.syspath_prepend(tmp_path)
    theirs = {name: {**CONFIG, "decay": {"_target_": f"{name}_of_theirs.Theirs"}} for name in ("first", "second")}
    first, second = (origin_of(config, "digest").code for config in theirs.values())
    assert len({first, second, ORIGIN.code}) == 3
    other = {**CONFIG, "fusion": {"_target_": "lcm.fusion.reciprocal_rank.ReciprocalRank"}}
    assert origin_of(other, "digest").code != ORIGIN.code


@pytest.mark.parametrize("name", ["config_hash", "dataset_digest", "code"])
def test_a_point_is_of_one_origin(tmp_path: Path, name: str) -> None:
    point = PointFolder(tmp_path / "point")
    assert not point.is_of(ORIGIN)
    point.begin(ORIGIN, ["a=1"])
    assert point.is_of(ORIGIN)
    assert not point.is_of(replace(ORIGIN, **{name: "other"}))


def test_a_point_begins_empty_and_takes_no_folder_of_others(tmp_path: Path) -> None:
    point = PointFolder(tmp_path / "point")
    point.begin(ORIGIN, [])
    point.fail("it said no")
    (point.path / "half.parquet").write_text("")
    assert point.failure() == "it said no"
    point.begin(Origin("a", "b", "c"), [])
    assert [path.name for path in point.path.iterdir()] == ["point.json"]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    with pytest.raises(
        LcmError, match=r"mine holds something else than a point of a sweep: name another hydra.sweep.dir"
    ):
        PointFolder(tmp_path / "mine").begin(ORIGIN, [])
