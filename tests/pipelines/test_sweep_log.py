"""What a sweep cannot log is told once, and tried no more."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from eval.tracking.tracking import Log, TrackingError
from pipelines.steps.sweep import SweepLog


class Places:
    """Takes so many folders, and then no more."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.asked: list[tuple[str, str | None]] = []
        self.batches: list[int] = []
        self.opened = 0

    def has(self, folder: Path) -> bool:
        return folder.name in ("there", *(name for name, _ in self.asked[: self.room]))

    def log(self, folder: Path | Sequence[Path], parent: Path | None = None) -> str | None:
        folders = [folder] if isinstance(folder, Path) else folder
        self.batches.append(len(folders))
        for one in folders:
            self.asked.append((one.name, parent and parent.name))
            if len(self.asked) > self.room:
                raise TrackingError("full")
        return f"at {folders[-1].name}"

    @contextmanager
    def logger(self) -> Iterator[Log]:
        self.opened += 1
        yield self.log


def test_points_are_logged_below_the_sweep_which_comes_last(tmp_path: Path) -> None:
    places = Places(9)
    with SweepLog(places, tmp_path / "sweep") as logs:
        for name in ("one", "there", "two"):
            logs.submit(tmp_path / name)
        assert logs.finish() == ("at sweep", None)
    assert places.asked == [("one", "sweep"), ("two", "sweep"), ("sweep", None)]
    assert places.opened == 1


def test_after_a_refusal_the_rest_is_counted_and_not_tried(tmp_path: Path) -> None:
    places = Places(1)
    with SweepLog(places, tmp_path / "sweep") as logs:
        for name in ("one", "two", "three"):
            logs.submit(tmp_path / name)
        assert logs.finish() == (None, "2 points were not logged: full")
    assert [name for name, _ in places.asked] == ["one", "two"]


def test_points_are_logged_several_at_a_time(tmp_path: Path) -> None:
    places = Places(99)
    with SweepLog(places, tmp_path / "sweep") as logs:
        for number in range(19):
            logs.submit(tmp_path / f"point {number}")
        assert logs.finish() == ("at sweep", None)
    assert places.batches == [8, 8, 3, 1]
    assert [name for name, _ in places.asked] == [*(f"point {number}" for number in range(19)), "sweep"]


def test_what_is_logged_already_opens_nothing(tmp_path: Path) -> None:
    places = Places(9)
    with SweepLog(places, tmp_path / "there") as logs:
        logs.submit(tmp_path / "there")
        assert logs.finish() == ("at there", None)
    assert places.opened == 0
