"""Whether a point is to be run again: only if what its numbers come from has changed."""

import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from eval.study.point import Origin, PointFolder, origin_of, point_name
from lcm.errors import LcmError

CONFIG: dict[str, Any] = {
    "fusion": {"_target_": "lcm.retrieval.fusion.WeightedSum", "dense_weight": 0.7},
    "latency": {"queries": 3},
    "tracking": {"uri": "here"},
    "cache": True,
    "stages": {"directory": None},
    "executor": {"_target_": "eval.executor.NoExecutor"},
}
ORIGIN = origin_of(CONFIG, "digest")


def test_only_what_changes_no_number_makes_no_other_point() -> None:
    for beside in (
        {"tracking": {"uri": "there"}},
        {"cache": False},
        {"stages": {"directory": "there"}},
        {"executor": {"_target_": "eval.executor.LocalExecutor", "workers": 2}},
    ):
        elsewhere = {**CONFIG, **beside}
        assert (point_name(elsewhere), origin_of(elsewhere, "digest")) == (point_name(CONFIG), ORIGIN), beside
    for change in ({"latency": {"queries": 4}}, {"fusion": {**CONFIG["fusion"], "dense_weight": 0.6}}):
        changed = {**CONFIG, **change}
        assert point_name(changed) != point_name(CONFIG)
        assert origin_of(changed, "digest").config_hash != ORIGIN.config_hash
        assert origin_of(changed, "digest").code == ORIGIN.code


def test_the_code_is_that_of_the_components_which_are_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "first_of_theirs.py").write_text("class Theirs: ...\n")
    (tmp_path / "second_of_theirs.py").write_text("class Theirs: 'other'\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("LCM_TRUST", "first_of_theirs,second_of_theirs")
    theirs = {name: {**CONFIG, "decay": {"_target_": f"{name}_of_theirs.Theirs"}} for name in ("first", "second")}
    first, second = (origin_of(config, "digest").code for config in theirs.values())
    assert len({first, second, ORIGIN.code}) == 3
    other = {**CONFIG, "source": {"_target_": "lcm.retrieval.source.by_scope.ByScope"}}
    assert origin_of(other, "digest").code != ORIGIN.code


def test_a_point_is_of_one_origin(tmp_path: Path) -> None:
    point = PointFolder(tmp_path / "point")
    assert not point.is_of(ORIGIN)
    point.begin(ORIGIN, ["a=1"])
    assert point.is_of(ORIGIN)
    for name in ("config_hash", "dataset_digest", "code", "files"):
        assert not point.is_of(replace(ORIGIN, **{name: "other"})), name


def test_a_point_begins_empty_and_takes_no_folder_of_others(tmp_path: Path) -> None:
    point = PointFolder(tmp_path / "point")
    point.begin(ORIGIN, [])
    point.fail("it said no")
    (point.path / "half.parquet").write_text("")
    assert point.failure() == "it said no"
    point.begin(Origin("a", "b", "c", "d"), [])
    assert [path.name for path in point.path.iterdir()] == ["point.json"]
    mine = PointFolder(tmp_path / "mine")
    mine.path.mkdir()
    (mine.path / "letter.txt").write_text("dear")
    told = "mine holds something else than a point of a sweep: name another hydra.sweep.dir"
    for _ in range(2):  # having failed there makes it no folder of a sweep
        with pytest.raises(LcmError, match=told):
            mine.begin(ORIGIN, [])
        mine.fail("it is mine")
    assert [path.name for path in mine.path.iterdir()] == ["letter.txt"]


def test_a_file_that_a_setting_names_is_part_of_the_origin(tmp_path: Path) -> None:
    rules = tmp_path / "rules.md"
    rules.write_text("be kind")
    config = {**CONFIG, "authored": {"paths": [str(tmp_path / "*.md")]}}
    before = origin_of(config, "digest")
    assert origin_of(config, "digest") == before
    rules.write_text("be kind and brief")
    after = origin_of(config, "digest")
    assert after == replace(before, files=after.files) != before
    assert point_name(config) == before.config_hash[:12]  # run again in the same folder
    elsewhere = {**CONFIG, "dataset": {"directory": str(tmp_path)}}  # its own digest is that of what is read
    assert origin_of(elsewhere, "digest").files == ORIGIN.files


class Killed(BaseException):
    """No code can go on after it."""


CALLS = 6
"""More of them than `begin` makes of any function."""


@pytest.mark.parametrize("name", ["os.replace", "os.unlink", "os.rmdir", "os.mkdir", "os.open", "os.fsync"])
@pytest.mark.parametrize("is_done", [False, True])
def test_a_point_whose_beginning_was_killed_can_begin_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, is_done: bool
) -> None:
    kills = 0
    for n in range(CALLS):
        point = PointFolder(tmp_path / f"point{n}")
        point.begin(ORIGIN, [])
        for file in ("a.parquet", "summary.json", "z.parquet"):
            (point.path / file).write_text("{}")
        kills += _killed(monkeypatch, name, n, is_done, partial(point.begin, replace(ORIGIN, code="new"), []))
        assert not (point.is_complete() and point.is_of(replace(ORIGIN, code="new")))
        assert not list(tmp_path.glob(".*/summary.json"))
        point.begin(replace(ORIGIN, code="newer"), ["a=1"])
        assert point.is_of(replace(ORIGIN, code="newer"))
        assert [path.name for path in point.path.iterdir()] == ["point.json"]
    assert 0 < kills < CALLS


def _killed(monkeypatch: pytest.MonkeyPatch, name: str, n: int, is_done: bool, begin: Callable[[], None]) -> bool:
    """Kill `begin` before or after the n-th call of a function; whether there was one."""
    real = getattr(os, name.removeprefix("os."))
    calls = 0

    def counted(*arguments: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == n + 1 and not is_done:
            raise Killed
        told = real(*arguments, **options)
        if calls == n + 1:
            raise Killed
        return told

    with monkeypatch.context() as here:
        here.setattr(name, counted)
        try:
            begin()
        except Killed:
            return True
    return False
