"""Points of a sweep that an executor shares out among its workers."""

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from eval.executor.executor import FailedItem
from eval.executor.local import Local
from eval.executor.none import NoExecutor
from eval.sweep.point_folder import PointFolder
from pipelines.steps import sweep
from pipelines.steps.points_apart import BuiltPoint, PointJob, run_by, shares_points
from tests.pipelines.conftest import Finished, Lcm
from tests.pipelines.test_sweep import COMMAND, assert_same


def test_workers_of_the_executor_give_the_same_numbers(
    lcm: Lcm, swept: Finished, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep, "_run_here", lambda *_: pytest.fail("a point was run here"))
    assert_same(swept, lcm(*COMMAND, "executor=local", place="apart"))


def test_fewer_points_than_workers_are_run_one_after_another() -> None:
    assert shares_points(Local(workers=3), 3)
    assert not shares_points(Local(workers=3), 2)
    assert not shares_points(NoExecutor(), 100)


class Dying:
    """An executor of which a worker dies once, when so many points are done, and no other."""

    def __init__(self, workers: int, done: int, dead: int) -> None:
        self.workers, self.done, self.dead = workers, done, dead
        self.given: list[list[list[str]]] = []

    def map(self, task: Any, items: Any) -> Generator[Any, None, None]:
        self.given.append([[job.folder.name for job in share] for share in items])
        is_dying = len(self.given) == 1
        for job in [job for share in items for job in share][: self.done if is_dying else None]:
            (job.folder / "summary.json").write_text("{}")
            yield None
        if is_dying:
            yield FailedItem(self.dead, "its process ended with exit code -9")


def test_a_worker_that_dies_behind_its_last_point_fails_none(tmp_path: Path) -> None:
    run_by(Dying(1, done=1, dead=0), [PointJob(tmp_path, (), BuiltPoint(None, {}, {}))])  # type: ignore[arg-type]
    assert PointFolder(tmp_path).is_complete() and PointFolder(tmp_path).failure() is None


def test_a_dying_worker_fails_the_point_it_is_at_and_others_take_over_the_rest(tmp_path: Path) -> None:
    jobs = []
    for number in range(6):
        (tmp_path / str(number)).mkdir()
        jobs.append(PointJob(tmp_path / str(number), (), BuiltPoint(None, {}, {})))  # type: ignore[arg-type]
    executor = Dying(2, done=3, dead=1)
    run_by(executor, jobs)  # type: ignore[arg-type]
    assert executor.given == [[["0", "1", "2"], ["3", "4", "5"]], [["4"], ["5"]]]
    failures = [PointFolder(job.folder).failure() for job in jobs]
    assert failures == [None, None, None, "its process ended with exit code -9", None, None]
    assert all(PointFolder(job.folder).is_complete() for job in jobs if job.folder.name != "3")
