"""MLflow: a folder is logged from what lies in it, so it can be logged again later."""

import getpass
import hashlib
import json
import multiprocessing
import os
import shlex
import signal
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from filelock import FileLock

from eval.executor import begin_worker, uninterrupted
from eval.ladder.losses import Retrieval
from eval.run import SUMMARY, point_record, read_summary, times_ms
from eval.tracking import entry, naming
from eval.tracking.artifacts import keep_files
from eval.tracking.environment import SQLITE, VARIABLES, of_environment, place_of, quieten, whole_uri
from eval.tracking.local_database import RUNS, alone, is_made, prepare
from eval.tracking.mlflow_traces import log_retrievals
from eval.tracking.receipts import keep_receipts, receipts_of
from eval.tracking.refusal import is_silence, reason_of
from eval.tracking.tables import TAG, tables, tag
from eval.tracking.tracking import Log, TrackingError
from lcm.checks import check_range
from lcm.consent import refused_host
from lcm.given import plain_bytes
from lcm.redaction import redacted

_LOCK = "mlflow.lock"
_KIND, _OF_RUNS = "mlflow.experimentKind", "custom_model_development"
"""Of what kind MLflow's viewer takes an experiment: of one without it asks."""
_AMONG_RUNS = "workflowType=machine_learning"
"""Without it MLflow's viewer shows an experiment as traces of an application, whatever its kind."""
_PARENT, _USER = "mlflow.parentRunId", "mlflow.user"
_BELOW: dict[str, dict[str, str]] = {}
"""Run of a sweep or study -> digest of a summary -> the run below it whose logging was begun by an earlier process."""
_MOST_METRICS, _MOST_PARAMS = 1000, 100
"""That MLflow takes in one call."""
GROWING = ("sweep", "study")
"""Kinds of folders to which more is added after they were logged."""


@dataclass(frozen=True, slots=True)
class Mlflow:
    """Logs to a SQLite file or a server. The same folder is logged once to a place, however often it is asked.

    What is null is what MLflow's own variable of the environment says, `VARIABLES`, and else the usual.
    """

    uri: str | None = None
    experiment: str | None = None
    run_name: str | None = None
    timeout_s: int = 10

    def __post_init__(self) -> None:
        for name in VARIABLES:
            if getattr(self, name) == "":
                raise ValueError(f"{name} must not be empty")
        check_range(self, "timeout_s", ge=1)
        if redacted(self.experiment_name) != self.experiment_name:
            raise ValueError("experiment holds what looks like a key: give it another name")
        is_users = self.address == of_environment("uri")
        is_server = urlsplit(self.address).hostname
        if is_server and not is_users and (why := refused_host(self.address)):  # it is shown MLFLOW_TRACKING_TOKEN
            raise ValueError(f"uri: {why}")

    @property
    def address(self) -> str:
        return self.uri or of_environment("uri") or f"{SQLITE}mlflow.db"

    @property
    def experiment_name(self) -> str:
        return self.experiment or of_environment("experiment") or "lcm"

    def log(self, folder: Path | Sequence[Path], parent: Path | None = None) -> str:
        """Raises TrackingError if MLflow cannot be reached or refuses; what was logged before that stays."""
        folders = [folder] if isinstance(folder, Path) else folder
        summaries = {one: summary for one in folders if (summary := read_summary(one)) and self._receipt(one) is None}
        place = None
        if summaries:
            first = next(iter(summaries))
            usual = type(self)()
            named = {"uri": (self.address, usual.address), "experiment": (self.experiment_name, usual.experiment_name)}
            elsewhere = [f"tracking.{key}={ours}" for key, (ours, theirs) in named.items() if ours != theirs]
            later = f"it is whole in {first}, log it later with: {shlex.join(['lcm', 'log', str(first), *elsewhere])}"
            with self._refusals_told(later), alone(self._database()):
                place = self._place(parent, _first(summaries.values()))
                for one, summary in summaries.items():
                    self._log_one(one, summary, place)
        known = self._receipt(folders[-1])
        assert known is not None, "it was logged"
        return self._where(str(known["run_id"]), place)

    def _log_one(self, folder: Path, summary: Mapping[str, Any], place: "_Place") -> None:
        here, digest, receipts = self._here(), _summary_digest(folder), receipts_of(folder)
        run_id = self._log(folder, summary, digest, place)
        kept = [known for known in receipts if not (here.items() <= known.items() and known["run_id"] == run_id)]
        keep_receipts(folder, [*kept, {**here, "summary_sha256": digest, "run_id": run_id}])

    def log_retrievals(self, folder: Path, retrievals: Sequence[Retrieval]) -> str:
        """In a process of its own: where MLflow's traces go is a setting of the whole process."""
        where = self.log(folder)
        known = self._receipt(folder)
        assert known is not None, "it was logged"
        spawn = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(1, mp_context=spawn, initializer=_live_with, initargs=(os.getpid(),)) as beside:
            n = beside.submit(self._log_retrievals, str(known["run_id"]), list(retrievals)).result()
        return f"{n} traces of {where}"

    def _log_retrievals(self, run_id: str, retrievals: Sequence[Retrieval]) -> int:
        with self._refusals_told("the same command logs the traces that are missing"), alone(self._database()):
            return log_retrievals(whole_uri(self.address), run_id, retrievals)

    @contextmanager
    def _refusals_told(self, remedy: str) -> Iterator[None]:
        """What MLflow does not take is a `TrackingError` of one line that ends in a remedy."""
        quieten(self.timeout_s)
        import mlflow.exceptions  # here, because importing MLflow takes over a second
        from alembic.util import CommandError
        from sqlalchemy.exc import SQLAlchemyError

        try:
            yield
        except (mlflow.exceptions.MlflowException, SQLAlchemyError, CommandError, ImportError, OSError) as err:
            reason = reason_of(err, self._database())
            raise TrackingError(
                f"tracking.uri={self.address}: MLflow did not take the run ({reason}); {remedy}"
            ) from err

    def has(self, folder: Path) -> bool:
        return self._receipt(folder) is not None

    @contextmanager
    def logger(self) -> Iterator[Log]:
        """`log` in a process of its own.

        Importing MLflow and opening its tables takes as long as a whole run whose embeddings are cached, so it begins
        now, on another core. A database that is not there yet is made elsewhere until something is logged.
        """
        quieten(self.timeout_s)  # for runs that are fetched in this process, too
        spawn = multiprocessing.get_context("spawn")
        with (
            TemporaryDirectory() as scratch,
            ProcessPoolExecutor(1, mp_context=spawn, initializer=_live_with, initargs=(os.getpid(),)) as beside,
        ):
            with uninterrupted():  # the process starts with the first work
                beside.submit(self._prepare, Path(scratch) / "new.db")
            yield lambda folder, parent=None: beside.submit(self.log, folder, parent).result()

    def _prepare(self, new: Path) -> None:
        """Import MLflow, and open a local database, or make the tables of one that is to come."""
        quieten(self.timeout_s)
        from mlflow.tracking import MlflowClient

        local = self._database()
        if local is None:  # a server that is away would keep the run waiting twice
            return
        if is_made(local):
            MlflowClient(tracking_uri=whole_uri(self.address)).get_experiment_by_name(self.experiment_name)
        else:
            prepare(local, new)

    def _place(self, parent: Path | None, first_began_ms: int | None) -> "_Place":
        """Where folders go: found out once for all that are logged together.

        Args:
            first_began_ms: when the first of them began, and so the sweep or study that they belong to.
        """
        from mlflow.tracking import MlflowClient

        client = MlflowClient(tracking_uri=whole_uri(self.address))
        found = client.get_experiment_by_name(self.experiment_name)
        experiment_id = found.experiment_id if found else self._create(client)
        if found and _KIND not in found.tags:
            client.set_experiment_tag(experiment_id, _KIND, _OF_RUNS)
        if parent is None:
            return _Place(client, experiment_id)
        parent_id = self._parent(client, experiment_id, parent, first_began_ms)
        if parent_id not in _BELOW:  # only this process adds to it from now on
            _BELOW[parent_id] = dict(_runs_below(client, experiment_id, parent_id))
        return _Place(client, experiment_id, parent_id)

    def _log(self, folder: Path, summary: Mapping[str, Any], digest: str, place: "_Place") -> str:
        client, experiment_id, parent_id = place
        told = tables(summary)
        tags = {**entry.tags(summary), _USER: _user(), "summary_sha256": digest}
        tags[naming.NOTE] = naming.note(summary, folder, [*told])
        if told:
            tags[TAG] = tag([*told])
        if parent_id is not None:
            tags[_PARENT] = parent_id
        name = naming.run_name(summary, folder, is_nested=parent_id is not None)
        if parent_id is None:
            name = redacted(self.run_name or of_environment("run_name") or name)
        began_ms, ended_ms = times_ms(summary)
        run_id = self._begun(place, folder, digest, grows=summary.get("kind") in GROWING)
        there: Collection[str] = ()
        if run_id is None:
            run_id = str(client.create_run(experiment_id, began_ms, tags, name).info.run_id)
        else:
            client.update_run(run_id, status="RUNNING", name=name)
            there = client.get_run(run_id).data.params  # which MLflow lets nobody change, as where a study has grown
            _send(client, run_id, tags=tags)
        try:
            objectives = point_record(folder).get("objectives", ())
            params = {key: value for key, value in entry.params(folder, summary) if key not in there}
            _send(client, run_id, dict(entry.metrics(summary, objectives)), params)
            if "dataset" in summary:
                _use_dataset(client, run_id, summary)
            keep_files(client, run_id, folder, summary, told)
        except Exception as error:
            if not is_silence(error):
                client.set_terminated(run_id, "FAILED", ended_ms)
            raise
        client.set_terminated(run_id, "FINISHED", ended_ms)
        return run_id

    def _begun(self, place: "_Place", folder: Path, digest: str, *, grows: bool) -> str | None:
        """The run that this folder has here already: one below which others were logged, one that has grown since, or
        one whose logging was cut short."""
        for known in receipts_of(folder):
            if self._here().items() <= known.items() and (grows or known["summary_sha256"] is None):
                return str(known["run_id"])
        if place.parent_id is not None:
            return _BELOW[place.parent_id].get(digest)
        wanted = f"tags.summary_sha256 = '{digest}'"
        cut_short = place.client.search_runs([place.experiment_id], wanted, max_results=1)
        return str(cut_short[0].info.run_id) if cut_short else None

    def _parent(self, client: Any, experiment_id: str, folder: Path, began_ms: int | None) -> str:
        """The run of a sweep or study, begun here where it is not there yet."""
        with FileLock(folder / _LOCK):
            receipts = receipts_of(folder)
            for known in receipts:
                if self._here().items() <= known.items():
                    return str(known["run_id"])
            place = redacted(str(folder.resolve())).replace("'", "_")
            begun = client.search_runs([experiment_id], f"tags.folder = '{place}'", max_results=1)
            if begun:  # and was killed before it could write the receipt
                run_id = str(begun[0].info.run_id)
            else:
                name = redacted(folder.resolve().name)
                run = client.create_run(experiment_id, began_ms, {"folder": place, _USER: _user()}, name)
                run_id = str(run.info.run_id)
            keep_receipts(folder, [*receipts, {**self._here(), "summary_sha256": None, "run_id": run_id}])
            return run_id

    def _receipt(self, folder: Path) -> dict[str, str | None] | None:
        """What says that the folder, as it is, was logged here."""
        told = {**self._here(), "summary_sha256": _summary_digest(folder)}
        return next((known for known in receipts_of(folder) if told.items() <= known.items()), None)

    def _here(self) -> dict[str, str | None]:
        return {"uri": place_of(self.address), "experiment": self.experiment_name}

    def _create(self, client: Any) -> str:
        local = self._database()
        location = None if local is None else (local.parent / RUNS).absolute().as_uri()
        return str(client.create_experiment(self.experiment_name, location, {_KIND: _OF_RUNS}))

    def _database(self) -> Path | None:
        return Path(self.address.removeprefix(SQLITE)) if self.address.startswith(SQLITE) else None

    def _where(self, run_id: str, place: "_Place | None") -> str:
        used = [variable for key, variable in VARIABLES.items() if getattr(self, key) is None and of_environment(key)]
        of = f", as {', '.join(used)} {'say' if len(used) > 1 else 'says'}" if used else ""
        page = ""
        if place is not None and urlsplit(self.address).scheme in ("http", "https"):
            page = f": {self.address.rstrip('/')}/#/experiments/{place.experiment_id}/runs/{run_id}?{_AMONG_RUNS}"
        return f"MLflow run {run_id} in experiment {self.experiment_name!r} at {self.address}{of}{page}"


class _Place(NamedTuple):
    """Where folders are logged to: an experiment, and the run of the sweep or study that they belong to."""

    client: Any
    experiment_id: str
    parent_id: str | None = None


def _user() -> str:
    """Who logs; a container may run under a number that has no name."""
    try:
        return redacted(getpass.getuser())
    except (KeyError, OSError):
        return str(os.getuid())


def _first(summaries: Iterable[Mapping[str, Any]]) -> int | None:
    """When the first of them began, in milliseconds."""
    return min((began for began, _ in map(times_ms, summaries) if began is not None), default=None)


def _runs_below(client: Any, experiment_id: str, parent_id: str) -> Iterator[tuple[str, str]]:
    """The digest of the summary of each run below another, and its id."""
    token = None
    while True:
        page = client.search_runs([experiment_id], f"tags.`{_PARENT}` = '{parent_id}'", page_token=token)
        yield from ((run.data.tags["summary_sha256"], str(run.info.run_id)) for run in page)
        if not (token := page.token):
            return


def _send(
    client: Any,
    run_id: str,
    metrics: Mapping[str, float] = MappingProxyType({}),
    params: Mapping[str, str] = MappingProxyType({}),
    tags: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """In as few calls as MLflow allows: one, for all but runs without a headline."""
    from mlflow.entities import Metric, Param, RunTag

    now = int(time.time() * 1000)
    kept = [Metric(key, value, now, 0) for key, value in metrics.items()]
    named = [Param(key, value) for key, value in params.items()]
    marked = [RunTag(key, value) for key, value in tags.items()]
    for i in range(max(-(-len(kept) // _MOST_METRICS), -(-len(named) // _MOST_PARAMS), bool(marked))):
        client.log_batch(
            run_id,
            metrics=kept[i * _MOST_METRICS : (i + 1) * _MOST_METRICS],
            params=named[i * _MOST_PARAMS : (i + 1) * _MOST_PARAMS],
            tags=marked if i == 0 else (),
        )


def _use_dataset(client: Any, run_id: str, summary: Mapping[str, Any]) -> None:
    from mlflow.entities import Dataset, DatasetInput, InputTag

    dataset = Dataset(
        name=summary["dataset"]["name"],
        digest=summary["dataset"]["digest"][:36],
        source_type="lcm",
        source=json.dumps(summary["dataset"]),
        profile=json.dumps(summary.get("counts", {})),
    )
    tag = InputTag(key="mlflow.data.context", value="evaluation")
    client.log_inputs(run_id, datasets=[DatasetInput(dataset=dataset, tags=[tag])])


def _summary_digest(folder: Path) -> str:
    return hashlib.sha256(plain_bytes(folder / SUMMARY)).hexdigest()


def _live_with(caller: int) -> None:
    """Leave interrupts to the caller, and end where it is killed: else this process would wait for work for ever."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    begin_worker(caller)
