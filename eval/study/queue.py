"""The queue of a study: who works on which trial, kept in a database that several processes share.

A study has as many trials as were asked for, whoever makes them. A trial is waiting, running, or finished: complete,
pruned, or failed with a reason. One whose process went away while it ran waits again under its number, with the values
it had been given; one whose machine went away is known by its heartbeat, and its values wait under a new number.
"""

import hashlib
import platform
import sqlite3
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from datetime import datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import optuna
from filelock import FileLock, Timeout
from optuna.distributions import BaseDistribution
from optuna.pruners import BasePruner, NopPruner, SuccessiveHalvingPruner
from optuna.samplers import BaseSampler, NSGAIISampler, RandomSampler, TPESampler
from optuna.storages import RDBStorage, fail_stale_trials
from optuna.study import Study as OptunaStudy
from optuna.trial import FrozenTrial, Trial, TrialState
from sqlalchemy.engine import make_url
from sqlalchemy.exc import SQLAlchemyError

from eval.study.selection import FACTOR
from eval.study.settings import TRIAL_FOLDERS, Study
from lcm.errors import LcmError
from lcm.faults import refuse_emptied, refused
from lcm.redaction import redacted


class Worker:
    """Holds a file locked as long as its process lives: the system lets go of it however the process ends."""

    def __init__(self, folder: Path, name: str) -> None:
        """`name` is one that no other worker has or had."""
        folder.mkdir(parents=True, exist_ok=True)
        self._path = (folder / f"{name}.lock").resolve()
        self._lock = FileLock(self._path)

    @property
    def record(self) -> dict[str, str]:
        """What is kept with a trial, to find out later whether this worker is still there."""
        return {"host": platform.node(), "lock": str(self._path)}

    def __enter__(self) -> Self:
        self._lock.acquire()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._path.unlink(missing_ok=True)
        self._lock.release()


def is_gone(record: Mapping[str, str]) -> bool:
    """Whether a worker of this machine is no longer there; False for one of another, of which nothing is known."""
    if record["host"] != platform.node():
        return False
    path = Path(record["lock"])
    if not path.exists():
        return True
    try:
        with FileLock(path, timeout=0):
            pass
    except Timeout:
        return False
    path.unlink(missing_ok=True)
    return True


class NumberedSampler(BaseSampler):
    """Draws a trial's values by the seed, its number, the key, and the trials that are finished.

    A sampler that keeps its own generator starts again from the seed in each process, so that a study which goes on
    would propose what it has, and two processes the same. Here a study of one process that was stopped and goes on
    makes the very trials that it would have made.
    """

    def __init__(self, settings: Study) -> None:
        self._settings = settings
        self._first = self._seeded(0, "")
        """Draws nothing, and remembers which keys all trials have: else each looks at all that were before."""

    def infer_relative_search_space(self, study: OptunaStudy, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        return self._first.infer_relative_search_space(study, trial)

    def sample_relative(
        self, study: OptunaStudy, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        return self._seeded(trial.number, "").sample_relative(study, trial, search_space)

    def sample_independent(
        self, study: OptunaStudy, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        own = self._seeded(trial.number, param_name)
        return own.sample_independent(study, trial, param_name, param_distribution)

    def _seeded(self, number: int, key: str) -> BaseSampler:
        settings = self._settings
        digest = hashlib.sha256(f"{settings.seed} {number} {key}".encode()).digest()
        seed = int.from_bytes(digest[:4], "big")
        match settings.sampler:
            case "tpe":
                return TPESampler(seed=seed, n_startup_trials=settings.startup_trials)
            case "random":
                return RandomSampler(seed=seed)
            case _:
                return NSGAIISampler(seed=seed, population_size=max(2, settings.startup_trials))


def pruner(settings: Study) -> BasePruner:
    """Stops a trial at a rung unless it is among the best one in `FACTOR` of those that have reached it."""
    if settings.pruner == "none":
        return NopPruner()
    return SuccessiveHalvingPruner(min_resource=1, reduction_factor=FACTOR)


def quieten() -> None:
    """Optuna tells of each trial and of each experimental part; the progress of a study is told by others."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)
    warnings.filterwarnings("ignore", message="The reported value is ignored")  # of a trial that is made again
    warnings.filterwarnings("ignore", message="Heartbeat of storage is supposed to be used")


WORKER, ERROR, SETUP, STOPPED_AT = "worker", "error", "setup", "stopped_at"
"""Attributes: who runs a trial; why it failed; what the study is a study of; the share at which a trial was stopped."""
_SQLITE = "sqlite:///"
_BUSY_S = 60
_GRACE = 3
"""Heartbeats after which a worker that was not heard of is gone."""


class TrialQueue:
    """A study in its database, and this process's part in it."""

    def __init__(self, settings: Study, storage: str, worker: Worker) -> None:
        """Open the study, or begin it.

        Raises:
            LcmError: if the database cannot be used.
        """
        self._settings = settings
        self._worker = worker
        self.known: Sequence[FrozenTrial] = ()
        """The trials that were begun when this process last claimed one: to ask anew takes as long as to rank some
        queries."""
        self._file = Path(storage.removeprefix(_SQLITE)) if storage.startswith(_SQLITE) else None
        try:
            with self._alone():
                self._refuse_emptied()
                self._storage = RDBStorage(
                    storage,
                    engine_kwargs={"connect_args": {"timeout": _BUSY_S, "factory": _Connection}}
                    if self._file
                    else None,
                    heartbeat_interval=settings.heartbeat_s,
                    grace_period=_GRACE * settings.heartbeat_s,
                    heartbeat_stale_trial_callback=_wait_again,
                )
                self.study = optuna.create_study(
                    storage=self._storage,
                    sampler=NumberedSampler(settings),
                    pruner=pruner(settings),
                    study_name=settings.name,
                    directions=[one.direction for one in settings.wanted()],
                    load_if_exists=True,
                )
        except (
            *(SQLAlchemyError, ImportError, OSError, RuntimeError, optuna.exceptions.OptunaError),
            AssertionError,  # Optuna's own, where it cannot list its migrations, as with too many open files
        ) as error:
            if (fault := refused(error, self._file or _shown(storage))) is not None:
                raise fault from error
            if isinstance(error, AssertionError):
                raise
            reason = " ".join(str(error).split()).partition(" (Background on")[0]
            raise LcmError(f"study.storage={_shown(storage)} cannot be used ({reason}); name another") from error

    def begin(self, setup: Mapping[str, Any], first: Mapping[str, Any] | None) -> Mapping[str, Any]:
        """Say what the study is a study of, unless somebody has; returns what was said first.

        Args:
            first: the values of the first trial; None = as the sampler draws them.
        """
        with self._alone():
            known: Mapping[str, Any] | None = self.study.user_attrs.get(SETUP)
            if known is not None:
                return known
            if first is not None:
                self.study.enqueue_trial(dict(first), skip_if_exists=True)
            self.study.set_user_attr(SETUP, dict(setup))
            return setup

    def claimed(self) -> Trial | None:
        """The next trial for this process; None where all are finished, or others are at work on what is left."""
        with self._alone():
            if self._file is None:
                fail_stale_trials(self.study)
            self.known = begun = self.begun()
            gone = [trial for trial in begun if trial.state == TrialState.RUNNING and self._has_lost_its_process(trial)]
            for trial in gone:
                self.give_back(trial.number)
            if len(begun) - len(gone) >= self._settings.trials:
                return None
            claimed = self.study.ask()
            claimed.set_user_attr(WORKER, self._worker.record)
        if self._file is None:  # another machine, which no lock keeps out, may have claimed the last at the same moment
            before = [one for one in self.begun() if one.number < claimed.number]
            if len(before) >= self._settings.trials:
                self.give_back(claimed.number)
                return None
        return claimed

    def give_back(self, number: int) -> None:
        """Let a trial that runs wait again, with the values that it was given."""
        trial_id = self._trial_id(number)
        self._storage.set_trial_user_attr(trial_id, WORKER, None)
        self._storage.set_trial_state_values(trial_id, TrialState.WAITING)

    def complete(self, trial: Trial, values: Sequence[float], attributes: Mapping[str, Any]) -> None:
        for name, value in attributes.items():
            trial.set_user_attr(name, value)
        self.study.tell(trial, list(values), skip_if_finished=True)

    def prune(self, trial: Trial, share: str) -> None:
        """`share`: of the judged queries, at which it was stopped."""
        trial.set_user_attr(STOPPED_AT, share)
        self.study.tell(trial, state=TrialState.PRUNED, skip_if_finished=True)

    def fail(self, trial: Trial, reason: str) -> None:
        trial.set_user_attr(ERROR, redacted(reason))
        self.study.tell(trial, state=TrialState.FAIL, skip_if_finished=True)

    def trials(self, *states: TrialState) -> list[FrozenTrial]:
        """Those of the study, in the order of their numbers; one that was cut short and is made again is none."""
        found = self.study.get_trials(deepcopy=False, states=states or None)
        return [trial for trial in found if trial.state != TrialState.FAIL or ERROR in trial.user_attrs]

    def begun(self) -> list[FrozenTrial]:
        """Those that are finished or at work."""
        return [trial for trial in self.trials() if trial.state != TrialState.WAITING]

    @contextmanager
    def heartbeat(self, trial: Trial) -> Iterator[None]:
        """Let other machines know that the trial is worked on; processes that share a file know it by a lock."""
        if self._file is not None:
            yield
            return
        trial_id = self._trial_id(trial.number)
        stopped = threading.Event()

        def beat() -> None:
            while not stopped.wait(self._settings.heartbeat_s):
                self._storage.record_heartbeat(trial_id)
            self._storage.remove_session()

        self._storage.record_heartbeat(trial_id)
        thread = threading.Thread(target=beat, daemon=True)
        thread.start()
        try:
            yield
        finally:
            stopped.set()
        thread.join()  # not after Ctrl-C, which may leave the database locked to the beat until this process ends

    def close(self) -> None:
        self._storage.remove_session()
        self._storage.engine.dispose()

    def _refuse_emptied(self) -> None:
        if self._file is not None and (trials := self._file.parent / TRIAL_FOLDERS).is_dir():
            refuse_emptied(self._file, f"trials of its study lie in {trials}", "remove it to begin the study anew")

    def _has_lost_its_process(self, trial: FrozenTrial) -> bool:
        """Whether nobody works on a trial that runs, as far as this machine knows."""
        if (record := trial.user_attrs.get(WORKER)) is not None:
            return is_gone(record)
        # Stopped between taking it and saying so, which is done under the lock where there is one.
        old = timedelta(seconds=_GRACE * self._settings.heartbeat_s)
        started = trial.datetime_start
        return self._file is not None or started is None or datetime.now().astimezone() - started.astimezone() > old

    def _trial_id(self, number: int) -> int:
        study_id = self._storage.get_study_id_from_name(self.study.study_name)
        return self._storage.get_trial_id_from_study_id_trial_number(study_id, number)

    def _alone(self) -> Any:
        """One process of this machine at a time, where the database is a file."""
        if self._file is None:
            return nullcontext()
        self._file.parent.mkdir(parents=True, exist_ok=True)
        return FileLock(f"{self._file}.lock")


class _Connection(sqlite3.Connection):
    """To a database that a process may be killed at: a trial is thirty transactions, too many to wait for the disk."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.execute("PRAGMA journal_mode = WAL")
        self.execute("PRAGMA synchronous = NORMAL")


def _wait_again(study: optuna.Study, trial: FrozenTrial) -> None:
    """Let the values of a trial whose machine went away wait under a new number."""
    study.add_trial(
        optuna.create_trial(state=TrialState.WAITING, params=trial.params, distributions=trial.distributions)
    )


def _shown(storage: str) -> str:
    """Without a password."""
    try:
        return make_url(storage).render_as_string(hide_password=True)
    except SQLAlchemyError:
        return "..."
