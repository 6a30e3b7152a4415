"""kill -9 in the middle of a study: what is made in the end is what would have been made, each trial once."""

import json
import random
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import optuna
import polars as pl
import pytest
from optuna.trial import TrialState

from tests.faults.forking import warm

SEED = 20260107
ARGUMENTS = (
    "embedder=hashing", "tracking=none", "means.resamples=5", "study.startup_trials=4",
    "system=hybrid", "space=fusion", "space.system=null", "space.fusion.choices=null",
    "space.fusion.floor_ratio=null", "space.fusion.floor_from=null",
    "space.fusion.k=null", "space.ranking=null",
)  # fmt: skip

Tuned = Callable[..., list[dict[str, Any]]]


@pytest.fixture(scope="module")
def tuned(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tuned]:
    """Run `lcm tune` in forked processes side by side, each killed at an event or, at 0, never."""
    cache = str(tmp_path_factory.mktemp("cache"))
    environment = {"LCM_CACHE_DIR": cache, "MPLCONFIGDIR": cache, "OMP_NUM_THREADS": "1"}
    with warm(root, "tests.faults.killed_study", **environment) as children:

        def run(place: Path, trials: int, *kill_at: int) -> list[dict[str, Any]]:
            place.mkdir(exist_ok=True)
            arguments = [*ARGUMENTS, f"study.trials={trials}"]
            ended = children(*({"place": str(place), "arguments": arguments, "at": at} for at in kill_at))
            expected = [-signal.SIGKILL if at else 0 for at in kill_at]
            assert [one["status"] for one in ended] == expected, (place / "told.txt").read_text()
            return ended

        yield run


def require_each_once(place: Path, trials: int) -> list[optuna.trial.FrozenTrial]:
    """Those in the database, numbered without a gap and complete, in the table and, unless repeated, in folders."""
    study = place / "runs" / "tune" / "study"
    found = optuna.load_study(study_name="study", storage=f"sqlite:///{study / 'study.db'}").trials
    assert [trial.number for trial in found] == list(range(trials))
    assert {trial.state for trial in found} == {TrialState.COMPLETE}
    assert rows(place)["number"].to_list() == list(range(trials))
    evaluated = {trial.number for trial in found if "same_as" not in trial.user_attrs}
    assert {int(folder.name) for folder in (study / "trials").iterdir()} == evaluated
    return found


def rows(place: Path) -> pl.DataFrame:
    """What the study says of its trials, but for times."""
    return pl.read_parquet(place / "runs" / "tune" / "study" / "study.parquet").drop("seconds")


@pytest.mark.slow
@pytest.mark.parametrize(("trials", "kills"), [(5, 2), pytest.param(12, 5, marks=pytest.mark.full)])
def test_a_study_killed_five_times_makes_every_trial_once_and_those_it_would_have_made(
    trials: int, kills: int, tuned: Tuned, tmp_path: Path
) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    events = len(tuned(whole, trials, 0)[0]["said"])
    rng = random.Random(SEED)
    for _ in range(kills):
        tuned(killed, trials, rng.randrange(events // (4 * kills), events // (kills + 1)))
    tuned(killed, trials, 0)
    require_each_once(killed, trials)
    assert rows(killed).equals(rows(whole))
    one, other = (
        json.loads((place / "runs" / "tune" / "study" / "summary.json").read_text()) | {"commit": "whichever"}
        for place in (killed, whole)
    )
    assert one == other


@pytest.mark.full
def test_two_processes_make_the_trials_together_though_one_is_killed(tuned: Tuned, tmp_path: Path) -> None:
    tuned(tmp_path / "shared", 4, 150, 0)
    tuned(tmp_path / "shared", 6, 0, 0)
    trials = require_each_once(tmp_path / "shared", 6)
    assert len({tuple(sorted(trial.params.items())) for trial in trials}) == 6
