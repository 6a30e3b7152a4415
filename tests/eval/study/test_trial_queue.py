"""The queue: as many trials as were asked for, whoever makes them, and none lost with its process."""

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import optuna
import pytest
from filelock import FileLock
from optuna.trial import Trial, TrialState

from eval.study.queue import WORKER, TrialQueue, Worker, is_gone, quieten
from eval.study.settings import TRIAL_FOLDERS, Study
from lcm.errors import LcmError

SETTINGS = Study([{"measure": "recall@10", "direction": "maximize"}], trials=6, startup_trials=3)

PLACES = ("whole", "stopped", "other")


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[Worker]:
    with Worker(tmp_path / "workers", "one") as there:
        yield there


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with its tables, which take longer to make than all else."""
    path = tmp_path_factory.mktemp("tables") / "study.db"
    optuna.storages.RDBStorage(f"sqlite:///{path}").engine.dispose()
    return path


@pytest.fixture(autouse=True)
def ready(tables: Path, tmp_path: Path) -> None:
    quieten()
    for place in (tmp_path, *(tmp_path / name for name in PLACES)):
        place.mkdir(exist_ok=True)
        shutil.copy(tables, place / "study.db")


def opened(place: Path, worker: Worker, settings: Study = SETTINGS) -> TrialQueue:
    return TrialQueue(settings, f"sqlite:///{place / 'study.db'}", worker)


def value(trial: Trial) -> float:
    return -((trial.suggest_float("x", 0.0, 1.0) - 0.3) ** 2) + trial.suggest_int("n", 1, 5)


def claimed(queue: TrialQueue) -> Trial:
    trial = queue.claimed()
    assert trial is not None
    return trial


def made(queue: TrialQueue, trials: int | None = None) -> list[dict[str, float]]:
    """Make trials until there are no more."""
    found = []
    while len(found) != trials and (trial := queue.claimed()):
        queue.complete(trial, [value(trial)], {})
        found.append(trial.params)
    return found


def test_there_are_as_many_trials_as_were_asked_for(tmp_path: Path, worker: Worker) -> None:
    queue = opened(tmp_path, worker)
    assert len(made(queue)) == 6
    assert queue.claimed() is None
    more = replace(SETTINGS, trials=8)
    queue = opened(tmp_path, worker, more)
    running = claimed(queue)
    with Worker(tmp_path / "workers", "two") as second:  # a trial at work counts, and its worker is left alone
        assert len(made(opened(tmp_path, second, more))) == 1
    queue.complete(running, [value(running)], {})
    assert [trial.state for trial in queue.trials()] == [TrialState.COMPLETE] * 8


def test_the_trial_of_a_process_that_is_gone_keeps_its_number_and_values(tmp_path: Path, worker: Worker) -> None:
    with Worker(tmp_path / "workers", "gone") as gone:
        cut_short = claimed(opened(tmp_path, gone))
        drawn = cut_short.suggest_float("x", 0.0, 1.0)
    queue = opened(tmp_path, worker)
    again = claimed(queue)
    assert (again.number, again.suggest_float("x", 0.0, 1.0)) == (cut_short.number, drawn)
    silent = queue.study.ask()  # taken, and no more said of it
    again = claimed(queue)
    assert (again.number, again.user_attrs[WORKER]) == (silent.number, worker.record)


def test_a_study_that_was_stopped_goes_on_as_it_would_have(tmp_path: Path, worker: Worker) -> None:
    whole = made(opened(tmp_path / "whole", worker))
    stopped = made(opened(tmp_path / "stopped", worker), 2)
    with Worker(tmp_path / "workers", "gone") as gone:
        cut_short = claimed(opened(tmp_path / "stopped", gone))
        cut_short.suggest_float("x", 0.0, 1.0)  # and n was not drawn yet
    assert stopped + made(opened(tmp_path / "stopped", worker)) == whole
    assert len({tuple(params.items()) for params in whole}) == 6


def test_a_trial_is_claimed_when_no_other_process_of_this_machine_claims_one(tmp_path: Path, worker: Worker) -> None:
    queue = opened(tmp_path, worker)
    with ThreadPoolExecutor(1) as other:
        with FileLock(f"{tmp_path / 'study.db'}.lock"):
            claiming = other.submit(claimed, queue)
            with pytest.raises(TimeoutError):
                claiming.result(timeout=0.3)
        assert claiming.result(timeout=60).number == 0


def test_the_last_trial_claimed_from_two_machines_is_made_once(
    tmp_path: Path, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no lock is shared, both may have counted before either had claimed."""
    queue = opened(tmp_path, worker, replace(SETTINGS, trials=1))
    monkeypatch.setattr(queue, "_file", None)  # as of a server
    claimed(queue)
    counted = queue.begun
    before_they_did = iter([[]])
    monkeypatch.setattr(queue, "begun", lambda: next(before_they_did, counted()))
    assert queue.claimed() is None
    assert [trial.state for trial in queue.trials()] == [TrialState.RUNNING, TrialState.WAITING]


def test_a_failure_with_a_reason_counts_and_one_of_a_lost_machine_does_not(tmp_path: Path, worker: Worker) -> None:
    queue = opened(tmp_path, worker, replace(SETTINGS, trials=2))
    queue.fail(claimed(queue), "no such thing")
    queue.study.tell(queue.study.ask(), state=TrialState.FAIL)
    assert len(made(queue)) == 1
    assert [one.number for one in queue.trials()] == [0, 2]


def test_the_first_trial_is_what_the_study_begins_with(tmp_path: Path, worker: Worker) -> None:
    queue = opened(tmp_path, worker)
    assert queue.begin({"dataset": "a"}, {"x": 0.25, "n": 2}) == {"dataset": "a"}
    assert queue.begin({"dataset": "b"}, {"x": 0.5, "n": 1}) == {"dataset": "a"}
    assert made(queue, 2)[0] == {"x": 0.25, "n": 2}


def test_the_heart_of_a_trial_beats_in_a_database_that_machines_share(
    tmp_path: Path, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = opened(tmp_path, worker)
    monkeypatch.setattr(queue, "_file", None)  # as of a server
    with queue.heartbeat(claimed(queue)):
        pass
    storage = optuna.storages.RDBStorage(f"sqlite:///{tmp_path / 'study.db'}")
    with storage.engine.connect() as connection:
        assert connection.exec_driver_sql("select count(*) from trial_heartbeats").scalar() == 1


def test_an_emptied_database_of_a_study_that_has_trials_is_no_new_one(tmp_path: Path, worker: Worker) -> None:
    database = tmp_path / "study.db"
    database.write_bytes(b"")
    opened(tmp_path, worker).close()  # a study that was stopped before its first trial
    database.write_bytes(b"")
    (tmp_path / TRIAL_FOLDERS / "0").mkdir(parents=True)
    told = rf"^{database} is empty, but trials of its study lie in {tmp_path / 'trials'}: restore a copy, or remove it"
    with pytest.raises(LcmError, match=told):
        opened(tmp_path, worker)
    database.unlink()
    opened(tmp_path, worker).close()


def test_a_database_that_cannot_be_used_is_told_in_a_line_without_its_password(worker: Worker) -> None:
    with pytest.raises(
        LcmError, match=r"^study.storage=nosuch://REDACTED@host/db cannot be used \(.*\); name another$"
    ):
        TrialQueue(SETTINGS, "nosuch://me:secret@host/db", worker)


def test_a_worker_is_there_as_long_as_it_holds_its_file(tmp_path: Path) -> None:
    with Worker(tmp_path, "a") as there:
        assert not is_gone(there.record)
    assert is_gone(there.record)
    (tmp_path / "killed.lock").touch()
    assert is_gone({**there.record, "lock": str(tmp_path / "killed.lock")})
    assert not is_gone({"host": "another machine", "lock": str(tmp_path / "nowhere")})
