"""`lcm evaluate -m`: points are checked first, run once, found again, and told side by side."""

import json
import random
import shutil
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from eval.dataset.sample import Sample, bundled_directory
from eval.study.gain import PAIRED
from eval.study.point import FAILURE, POINT
from lcm.derived import sealed
from pipelines.cli import BAD_INPUT
from pipelines.config import building, command_line, composition, conf_folder
from pipelines.config.composition import CompositionCache
from pipelines.config.presets import asked_of
from pipelines.steps import point as points_module
from pipelines.steps import sweep
from pipelines.steps.interruption import INTERRUPTED
from pipelines.steps.point import PARTS
from tests.pipelines.conftest import QUICK, Finished, Lcm
from tests.pipelines.test_cli import assert_refused
from tests.pipelines.test_evaluate import other_numbers, start
from tests.support.looked_at import NO_CONTEXTS, SWEPT

COMMAND = ("evaluate", "-m", *SWEPT)
SMALL = (*QUICK, NO_CONTEXTS)
DEFAULT = 0.7  # the weight that nobody asks for, run beside the points


@pytest.fixture
def folder(swept: Finished, tmp_path: Path) -> Path:
    """A copy of the folder of the sweep, where the same command finds it."""
    shutil.copytree(swept.place / "runs", tmp_path / "here" / "runs")
    (found,) = (tmp_path / "here" / "runs" / "sweeps").iterdir()
    return found


READY = sorted(path.stem for path in (conf_folder.conf_dir() / "sweep").glob("*.yaml"))


def points(folder: Path) -> list[Path]:
    """The folders of the points, by name."""
    return sorted(path.parent for path in folder.glob(f"*/{POINT}"))


def dense_weight(point: Path) -> float:
    """As the point's own configuration has it."""
    return float((point / "config.yaml").read_text().partition("dense_weight: ")[2].partition("\n")[0])


def of_weight(folder: Path, weight: float) -> Path:
    (point,) = [point for point in points(folder) if dense_weight(point) == weight]
    return point


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The weight of each point that is run."""
    weights: list[float] = []
    real = points_module.evaluated

    def evaluated(config: Any, *rest: Any) -> Any:
        weights.append(config.fusion.dense_weight)
        return real(config, *rest)

    monkeypatch.setattr(points_module, "evaluated", evaluated)
    return weights


def test_every_point_is_kept_whole_and_shown_beside_the_others(swept: Finished, folder: Path) -> None:
    assert folder.name.startswith("fusion.dense_weight-")
    assert sorted(map(dense_weight, points(folder))) == [0.2, 0.4, DEFAULT]
    table = swept.stdout[swept.stdout.index("the system, by point") :]
    assert "│ 0 fusion.dense_weight=0.2 │ 91 │" in table
    assert "│ 1 fusion.dense_weight=0.4 │ 91 │" in table
    assert "embedder=hashing" not in table  # what all points have in common tells none from another
    assert f"2 of 2 points kept: runs/sweeps/{folder.name}\nKeep the default: none of 2 settings is " in table
    assert "against the default, " in table
    assert "│ arm" not in swept.stdout  # no report of each point


def test_a_default_that_is_no_point_stands_in_no_table_and_the_best_is_held_against_it(
    swept: Finished, folder: Path
) -> None:
    best = json.loads((folder / "summary.json").read_text())["best"]
    assert best["is_default"]
    assert best["baseline"] not in pl.read_parquet(folder / "points.parquet")["folder"]
    assert dense_weight(folder / best["baseline"]) == DEFAULT
    assert len(pl.read_parquet(folder / PAIRED)) == 2
    told = f"runs/sweeps/{folder.name}"
    assert best["verdict"] == "cannot tell" and not {"recall@10", "nDCG@10"} & set(best["stars"])
    assert f"\nnext: lcm compare {told}\n" in swept.stdout
    assert "lcm export" not in swept.stdout


def test_the_folder_holds_the_table_as_parquet_and_markdown_and_a_plot(folder: Path) -> None:
    frame = pl.read_parquet(folder / "points.parquet")
    assert frame["state"].to_list() == ["finished", "finished"]
    assert frame["fusion.dense_weight"].to_list() == [0.2, 0.4]
    for row in frame.iter_rows(named=True):
        kept = json.loads((folder / row["folder"] / "summary.json").read_text())["measures"]["recall@10"]
        assert (row["recall@10"], row["recall@10.low"]) == (kept["value"], kept["low"])
    assert f"| {max(frame['recall@10']):.3f} |" in (folder / "sweep.md").read_text()
    assert (folder / "sweep.png").read_bytes().startswith(b"\x89PNG")
    summary = json.loads((folder / "summary.json").read_text())
    assert (summary["kind"], summary["metrics"]["finished"]) == ("sweep", 2)
    default = json.loads((folder / summary["best"]["baseline"] / "summary.json").read_text())["measures"]["recall@10"]
    assert summary["metrics"]["best/recall@10"] == default["value"], "no point is better"
    assert summary["tags"]["swept/fusion.dense_weight"] == "0.2,0.4"


def written(folder: Path) -> dict[Path, int]:
    """When each file was written, but for the page and for what processes lock."""
    files = (path for path in folder.rglob("*.*") if path.suffix not in (".lock", ".html"))
    return {path: path.stat().st_mtime_ns for path in files}


def test_the_same_command_runs_nothing_again(lcm: Lcm, swept: Finished, folder: Path, ran: list[float]) -> None:
    before = written(folder)
    again = lcm(*COMMAND)
    assert (again.code, ran) == (0, [])
    told = f"2 of 2 points are finished in runs/sweeps/{folder.name}, nothing is left to run; hydra.sweep.dir=FOLDER"
    assert again.stdout.startswith(told)
    assert again.stdout.endswith(swept.stdout)
    assert written(folder) == before


def test_a_larger_grid_runs_what_is_new_and_what_is_of_other_code(lcm: Lcm, folder: Path, ran: list[float]) -> None:
    outdated = of_weight(folder, 0.2) / POINT
    origin = {**json.loads(outdated.read_text()), "code": "before"}
    del origin["sha256"]
    outdated.write_text(json.dumps(sealed(origin)))
    larger = ("fusion.dense_weight=0.5,0.2,0.4", "fusion.floor_ratio=0.92", f"hydra.sweep.dir={folder}")
    done = lcm("evaluate", "-m", *SMALL, *larger)
    assert sorted(ran) == [0.2, 0.5]
    assert f"3 of 3 points kept: {folder}" in done.stdout
    assert done.stderr == "lcm: warning: 1 of 3 points come from other code, data or files, and are run again\n"
    assert json.loads(outdated.read_text())["code"] != "before"


def test_points_that_another_lcm_named_are_no_other_sweep(lcm: Lcm, folder: Path, ran: list[float]) -> None:
    """Nor where the sweep's folder is named now, or was moved."""
    of_weight(folder, 0.2).rename(folder / "0123456789ab")
    done = lcm(*COMMAND, f"hydra.sweep.dir={folder}")
    assert (done.code, ran) == (0, [0.2])


def test_the_folder_of_another_sweep_is_refused(lcm: Lcm, folder: Path) -> None:
    """Other values, another setting beside the same values, another key: nothing there is touched."""
    before = written(folder)
    for other in (
        ["fusion.dense_weight=0.8,0.9"],
        ["fusion.dense_weight=0.2,0.4", "ranking.stages.limit.n=7"],
        ["fusion.lexical_weight=0.2,0.4"],
    ):
        done = lcm("evaluate", "-m", *other, *SMALL, f"hydra.sweep.dir={folder}")
        assert done.code == BAD_INPUT
        assert done.stderr.startswith(f"lcm: hydra.sweep.dir={folder} holds 2 points of another sweep, as ")
        assert done.stderr.endswith("name another folder, or sweep over them too\n")
    assert written(folder) == before


def test_equal_points_run_once(capsys: pytest.CaptureFixture[str]) -> None:
    wanted = [(*QUICK, f"fusion.dense_weight={weight}") for weight in ("0.7", "0.70", "0.5")]
    assert [point.label for point in sweep.checked_points(wanted, CompositionCache())] == [
        "fusion.dense_weight=0.7",
        "fusion.dense_weight=0.5",
    ]
    assert capsys.readouterr().err == "lcm: warning: 1 of 3 points are the same as others: each runs once\n"


def test_a_point_equals_the_run_by_itself(lcm: Lcm, folder: Path) -> None:
    alone = lcm("evaluate", "fusion.dense_weight=0.2", *SMALL, place="alone").folder
    assert other_numbers(of_weight(folder, 0.2), alone) == set()


def test_an_experiment_can_hold_the_sweep(lcm: Lcm, tmp_path: Path) -> None:
    (tmp_path / "more" / "experiment").mkdir(parents=True)
    (tmp_path / "more" / "experiment" / "limits.yaml").write_text(
        "# @package _global_\nhydra:\n  sweeper:\n    params:\n      ranking.stages.limit.n: 10,0\n"
    )
    finished = lcm("evaluate", "-m", "experiment=limits", f"hydra.searchpath=[file://{tmp_path}/more]", *QUICK)
    assert_refused(finished, ["ranking.stages.limit.n must be >= 1, got 0 (in ranking.stages.limit.n=0)"])


def test_a_ready_sweep_can_be_narrowed() -> None:
    narrowed = ["decay.recency_half_life_days=3.0,90.0", "decay.search_boost_min=0.3"]
    found = command_line.multirun(command_line.command(["-m", "sweep=decay", *narrowed])).points
    days = [one.partition("=")[2] for point in found for one in point if one.startswith("decay.recency_half_life_days")]
    assert sorted(map(float, days)) == [3.0, 90.0]
    assert all(narrowed[1] in point for point in found)


def test_a_point_that_fails_stops_no_other_and_is_tried_again(lcm: Lcm, tmp_path: Path, ran: list[float]) -> None:
    elsewhere, swept = tmp_path / "elsewhere", tmp_path / "swept"
    command = ("evaluate", *SMALL, "-m", f"dataset.directory={elsewhere},null", f"hydra.sweep.dir={swept}")
    finished = lcm(*command)
    assert finished.code == BAD_INPUT
    (said,) = [line for line in finished.stdout.splitlines() if line.startswith("point 0 failed: ")]
    assert said.startswith(f"point 0 failed: dataset.directory={elsewhere}: dataset 'sample':")
    assert "1 of 2 points kept" in finished.stdout
    assert finished.stderr == "lcm: 1 of 2 points failed, each said why above; the same command tries them again\n"
    (failure,) = swept.rglob(FAILURE)
    assert said.endswith(json.loads(failure.read_text())["error"])
    assert "- point 0 failed: dataset 'sample':" in (swept / "sweep.md").read_text()
    shutil.copytree(bundled_directory(), elsewhere)
    again = lcm(*command)
    assert (again.code, again.stderr) == (0, "")
    assert "2 of 2 points kept" in again.stdout
    assert list(swept.rglob(FAILURE)) == []
    assert ran == [0.7, 0.7]


def test_a_defect_in_a_point_is_told_as_one(lcm: Lcm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Sample, "load", lambda self: {}["x"])
    finished = lcm("evaluate", *SMALL, "-m", "fusion.dense_weight=0.5,0.6")
    assert finished.code == BAD_INPUT
    assert finished.stdout.count("KeyError: 'x' (a defect; run this point by itself with --debug)") == 2


def test_ctrl_c_says_how_to_go_on(lcm: Lcm, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(points_module, "evaluated", interrupted)
    finished = lcm("evaluate", *SMALL, "-m", "fusion.dense_weight=0.2,0.4,0.6", f"hydra.sweep.dir={folder}")
    assert finished.code == INTERRUPTED
    assert finished.stderr == (
        f"lcm: warning: interrupted: 2 of 3 points are kept in {folder}; the same command goes on from there\n"
    )


def test_two_processes_do_not_run_one_sweep(lcm: Lcm, folder: Path) -> None:
    with sweep._alone(folder):
        finished = lcm(*COMMAND)
    assert finished.code == BAD_INPUT
    assert finished.stderr.startswith(f"lcm: runs/sweeps/{folder.name}: another process is at work on this sweep; ")


@pytest.mark.parametrize(
    "ready", [pytest.param(ready, marks=[] if ready == "decay" else pytest.mark.full) for ready in READY]
)
def test_every_point_of_a_ready_sweep_can_be_built(ready: str) -> None:
    theirs = ["summarizer.model=t5-small"] if ready == "summarizers_t5" else []  # weights are the user's to get
    command = command_line.command(["-m", f"sweep={ready}", "embedder=hashing", *theirs])
    wanted = command_line.multirun(command).points
    built = sweep.checked_points(wanted, CompositionCache())
    assert 3 < len(built) == len(wanted)


def assert_same(swept: Finished, there: Finished) -> None:
    assert (there.code, there.stdout) == (0, swept.stdout), there.stderr
    (folder,) = (swept.place / "runs" / "sweeps").iterdir()
    ours, theirs = points(folder), points(there.place / "runs" / "sweeps" / folder.name)
    assert [point.name for point in ours] == [point.name for point in theirs]
    for one, other in zip(ours, theirs, strict=True):
        assert other_numbers(one, other) == set()


def test_a_point_is_composed_and_built_once_and_its_dataset_loaded_once(
    lcm: Lcm, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: Counter[str] = Counter()

    def counting(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **settings: Any) -> Any:
            calls[name] += 1
            return real(*arguments, **settings)

        return counted

    monkeypatch.setattr(CompositionCache, "composed", counting("composed", CompositionCache.composed))
    monkeypatch.setattr(composition, "compose", counting("composed from files", composition.compose))
    monkeypatch.setattr(building, "build", counting("built", building.build))
    monkeypatch.setattr(Sample, "load", counting("loaded", Sample.load))
    command = ("evaluate", "-m", "fusion.dense_weight=0.6,0.7", *SMALL)
    asked_of(composition.composed(SMALL), SMALL)  # what is changed against the defaults is composed once a process
    calls.clear()
    assert lcm(*command).code == 0
    files = 2  # what the command chooses, with Hydra's settings; and what its points choose
    expected = {"composed": 3, "composed from files": files, "built": 2 * len(PARTS), "loaded": 1}
    assert calls == expected


@pytest.mark.parametrize("launcher", ["hydra/launcher=joblib", "hydra.launcher.n_jobs=2"])
def test_a_launcher_of_hydras_is_refused_with_what_shares_points_out(lcm: Lcm, launcher: str) -> None:
    refused = lcm(*COMMAND, launcher)
    assert_refused(refused, launcher)
    assert "executor=local" in refused.stderr and "executor=ray" in refused.stderr


def kill_after(n: int, arguments: Sequence[str], place: Path) -> None:
    """Run in a process of its own, and kill it when n more points are complete."""
    wanted, end = complete(place) + n, time.monotonic() + 300
    process = start(place, *arguments)
    try:
        while complete(place) < wanted:
            assert process.poll() is None and time.monotonic() < end
            time.sleep(0.02)
    finally:
        process.kill()
        process.communicate()


def complete(place: Path) -> int:
    return len(list(place.glob("sweep/*/summary.json")))


@pytest.mark.full
@pytest.mark.xdist_group("mlflow")
def test_a_sweep_killed_five_times_has_every_point_once(lcm: Lcm, tmp_path: Path) -> None:
    weights = [round(0.02 * i, 2) for i in range(30)]
    overrides = [override for override in SMALL if not override.startswith("tracking")] + ["hydra.sweep.dir=sweep"]
    swept = f"fusion.dense_weight={','.join(map(str, weights))}"
    arguments = ["evaluate", "-m", *overrides, f"tracking.uri=sqlite:///{tmp_path}/runs.db", swept]
    place = tmp_path / "here"
    moments = random.Random(7)
    for executor in ("none", "local", "none", "local", "none"):
        kill_after(moments.randint(1, 5), [*arguments, f"executor={executor}"], place)
    killed = complete(place)
    assert 5 <= killed < 30
    finished = lcm(*arguments)
    assert finished.code == 0, finished.stderr
    assert finished.stdout.startswith(f"{killed} of 30 points are finished in sweep\n")
    assert "30 of 30 points kept" in finished.stdout
    assert sorted(map(dense_weight, points(place / "sweep"))) == sorted([*weights, DEFAULT])
    with closing(sqlite3.connect(tmp_path / "runs.db")) as database:
        statuses = database.execute("SELECT status, count(*) FROM runs GROUP BY status").fetchall()
        ids = "SELECT run_uuid FROM tags WHERE key = 'kind' AND value = 'sweep'"
        parents = [row[0] for row in database.execute(ids)]
        below = "SELECT run_uuid FROM tags WHERE key = 'mlflow.parentRunId' AND value = ?"
        weight = f"SELECT value FROM params WHERE key = 'fusion.dense_weight' AND run_uuid IN ({below})"
        logged = sorted(float(row[0]) for row in database.execute(weight, parents))
    assert statuses == [("FINISHED", 32)]
    assert len(parents) == 1
    assert logged == weights  # of the default nothing is told but what is not as by default
