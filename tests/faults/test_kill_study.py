"""kill -9 in the middle of a study: what is made in the end is what would have been made, each trial once."""

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import optuna
import polars as pl
import pytest
from optuna.trial import TrialState

SEED = 20260107
KILLS = 5
TRIALS = 12
FEW = 4
"""Trials that two processes share."""
ARGUMENTS = (
    "embedder=hashing", "tracking=none", "means.resamples=5", "study.startup_trials=4",
    "system=hybrid", "space=fusion", "space.system=null", "space.fusion.choices=null",
    "space.fusion.floor_ratio=null", "space.fusion.floor_from=null",
    "space.fusion.k=null", "space.ranking=null",
)  # fmt: skip

Children = Callable[..., list[dict[str, Any]]]


@pytest.fixture(scope="module")
def children(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Children]:
    """Run `lcm tune` in forked processes side by side, each killed at an event or never."""
    cache = tmp_path_factory.mktemp("cache")
    with subprocess.Popen(
        [sys.executable, "-m", "tests.faults.study_zygote"],
        cwd=root,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "LCM_CACHE_DIR": str(cache), "MPLCONFIGDIR": str(cache), "OMP_NUM_THREADS": "1"},
    ) as zygote:

        def run(
            place: Path, *kill_at: int, arguments: Sequence[str] = (*ARGUMENTS, f"study.trials={TRIALS}")
        ) -> list[dict[str, Any]]:
            place.mkdir(exist_ok=True)
            asked = {"place": str(place), "arguments": list(arguments), "kill_at": kill_at or (0,)}
            zygote.stdin.write(json.dumps(asked) + "\n")
            zygote.stdin.flush()
            return json.loads(zygote.stdout.readline())

        yield run
        zygote.stdin.close()


def rows(place: Path) -> pl.DataFrame:
    """What the study says of its trials, but for times."""
    return pl.read_parquet(place / "runs" / "tune" / "study" / "study.parquet").drop("seconds")


def in_database(place: Path) -> list[optuna.trial.FrozenTrial]:
    path = place / "runs" / "tune" / "study" / "study.db"
    return optuna.load_study(study_name="study", storage=f"sqlite:///{path}").trials


def folders(place: Path) -> set[int]:
    """Those of trials, whole or not."""
    return {int(folder.name) for folder in (place / "runs" / "tune" / "study" / "trials").iterdir()}


@pytest.mark.full
def test_a_study_killed_five_times_makes_every_trial_once_and_those_it_would_have_made(
    children: Children, tmp_path: Path
) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    ((undisturbed),) = children(whole)
    assert undisturbed["status"] == 0, (whole / "told.txt").read_text()
    rng = random.Random(SEED)
    events = undisturbed["events"]
    for _ in range(KILLS):
        (ended,) = children(killed, rng.randrange(events // 20, events // 7))
        assert ended["status"] == -signal.SIGKILL, (killed / "told.txt").read_text()
    (ended,) = children(killed)
    assert ended["status"] == 0, (killed / "told.txt").read_text()
    trials = in_database(killed)
    assert [trial.number for trial in trials] == list(range(TRIALS))
    assert {trial.state for trial in trials} == {TrialState.COMPLETE}
    assert rows(killed).equals(rows(whole))
    evaluated = {trial.number for trial in trials if "same_as" not in trial.user_attrs}
    assert folders(killed) == evaluated
    summary = json.loads((killed / "runs" / "tune" / "study" / "summary.json").read_text())
    assert summary == json.loads((whole / "runs" / "tune" / "study" / "summary.json").read_text())


@pytest.mark.full
def test_two_processes_make_the_trials_together_though_one_is_killed(children: Children, tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    ended = children(shared, 150, 0, arguments=[*ARGUMENTS, f"study.trials={FEW}"])
    assert [one["status"] for one in ended] == [-signal.SIGKILL, 0], (shared / "told.txt").read_text()
    ended = children(shared, 0, 0, arguments=[*ARGUMENTS, f"study.trials={FEW + 2}"])
    assert [one["status"] for one in ended] == [0, 0], (shared / "told.txt").read_text()
    trials = in_database(shared)
    assert [trial.number for trial in trials] == list(range(FEW + 2))
    assert {trial.state for trial in trials} == {TrialState.COMPLETE}
    assert len({tuple(sorted(trial.params.items())) for trial in trials}) == FEW + 2
    assert folders(shared) == set(range(FEW + 2))
    assert rows(shared)["number"].to_list() == list(range(FEW + 2))
