"""Points that an executor shares out among its workers."""

from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import pytest

from eval.executor import FailedItem, NoExecutor
from eval.study.point import POINT, Origin, PointFolder
from lcm.errors import LcmError
from pipelines.steps import point as points
from pipelines.steps.point import Point, PointJob, run_points
from tests.pipelines.conftest import Finished, Lcm
from tests.pipelines.test_sweep import COMMAND, assert_same
from tests.support.ray_of_two import RAY_OF_TWO


@pytest.mark.parametrize("executor", ["local", pytest.param("ray", marks=RAY_OF_TWO)])
def test_workers_of_the_executor_give_the_same_numbers(
    executor: str, lcm: Lcm, swept: Finished, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    if executor == "ray":
        request.getfixturevalue("ray_of_two")
    monkeypatch.setattr(points, "evaluated", lambda *_: pytest.fail("a point was run here"))
    assert_same(swept, lcm(*COMMAND, f"executor={executor}", place="apart"))


def begun(folder: Path) -> PointJob:
    PointFolder(folder).begin(Origin("a", "b", "c", "d"), [folder.name], folder.name)
    point = Point(folder.name, "", (), None, {"dataset": "x"}, {"executor": Dying(3)})  # type: ignore[arg-type]
    return PointJob(point, folder, (folder / POINT).read_bytes())


class Dying:
    """An executor of which a worker dies once, when so many points are done, and no other."""

    def __init__(self, workers: int, done: int = 99, dead: int = 0) -> None:
        self.workers, self.done, self.dead = workers, done, dead
        self.given: list[list[list[str]]] = []

    def map(self, task: Any, items: Any) -> Generator[Any, None, None]:
        self.given.append([[job.folder.name for job in share] for _, share in items])
        left = self.done if len(self.given) == 1 else 99
        for number, share in items:
            yield from task((number, share[:left]))
            left -= min(left, len(share))
        if len(self.given) == 1 and self.done < 99:
            yield FailedItem(self.dead, "its process ended with exit code -9")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The executor that each point shares its workspaces out by; a point named `bad` fails."""
    executors: list[Any] = []

    def evaluated(config: Any, folder: Path, show: Any, dataset: Any, parts: Any, *rest: Any) -> None:
        executors.append(parts["executor"])
        if folder.name == "bad":
            raise LcmError("it said no")
        (folder / "run.parquet").write_bytes(b"rows")
        (folder / "summary.json").write_text("{}")

    monkeypatch.setattr(points, "evaluated", evaluated)
    return executors


def told(executor: Any, jobs: Sequence[PointJob]) -> dict[str, str | None]:
    datasets: Any = {jobs[0].point.dataset: None}
    return {job.folder.name: reason for job, reason in run_points(executor, jobs, datasets, lambda *_: None)}


def test_fewer_points_than_workers_are_run_one_after_another_by_the_workers_of_each(
    tmp_path: Path, asked: list[Any]
) -> None:
    assert told(Dying(3), [begun(tmp_path / "0"), begun(tmp_path / "1")]) == {"0": None, "1": None}
    assert [executor.workers for executor in asked] == [3, 3]
    assert told(Dying(3), [begun(tmp_path / str(number)) for number in range(2, 5)]).keys() == {"2", "3", "4"}
    assert asked[2:] == [NoExecutor()] * 3


def test_a_point_that_fails_says_why_and_stops_no_other(tmp_path: Path, asked: list[Any]) -> None:
    jobs = [begun(tmp_path / name) for name in ("bad", "good")]
    assert told(NoExecutor(), jobs) == {"bad": "it said no", "good": None}
    assert PointFolder(tmp_path / "bad").failure() == "it said no"


def test_a_worker_that_dies_behind_its_last_point_fails_none(tmp_path: Path, asked: list[Any]) -> None:
    assert told(Dying(1, done=1), [begun(tmp_path / "0")]) == {"0": None}
    assert PointFolder(tmp_path / "0").is_complete()


def test_a_dying_worker_fails_the_point_it_is_at_and_others_take_over_the_rest(
    tmp_path: Path, asked: list[Any]
) -> None:
    executor = Dying(2, done=3, dead=1)
    jobs = [begun(tmp_path / str(number)) for number in range(6)]
    found = told(executor, jobs)
    assert executor.given == [[["0", "1", "2"], ["3", "4", "5"]], [["4"], ["5"]]]
    assert found == dict.fromkeys("01245") | {"3": "its process ended with exit code -9"}
    assert PointFolder(tmp_path / "3").failure() == found["3"]
    assert all(PointFolder(job.folder).is_complete() for job in jobs if job.folder.name != "3")


def test_a_worker_that_does_not_see_the_folder_of_a_point_sends_its_files(
    tmp_path: Path, asked: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    job = begun(tmp_path / "0")
    seen = Path.is_file
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(Path, "is_file", lambda path: path != job.folder / POINT and seen(path))
        assert told(NoExecutor(), [job]) == {"0": None}
    assert (job.folder / "run.parquet").read_bytes() == b"rows"
    assert PointFolder(job.folder).is_complete() and (job.folder / POINT).read_bytes() == job.record
