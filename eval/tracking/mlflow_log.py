"""MLflow: a folder is logged from what lies in it, so it can be logged again later."""

import atexit
import getpass
import hashlib
import json
import multiprocessing
import os
import shlex
import shutil
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from filelock import FileLock

from eval.executor import begin_worker, uninterrupted
from eval.ladder.losses import Retrieval
from eval.run import SUMMARY, point_record, read_summary, times_ms
from eval.tracking import entry, place
from eval.tracking.mlflow_traces import log_retrievals
from eval.tracking.tracking import Log, TrackingError
from lcm.checks import check_range
from lcm.consent import refused_host
from lcm.derived import sealed, unsealed
from lcm.errors import LcmError
from lcm.files import write_text
from lcm.given import plain_bytes
from lcm.redaction import redacted, redacted_record

RECEIPT = "mlflow.json"
"""Says where a folder was logged, and what its summary was then; null while others are logged below it and it has none.
"""
_RECEIPT_KEYS = ("uri", "experiment", "summary_sha256", "run_id")
_LOCK = "mlflow.lock"
_KIND, _OF_RUNS = "mlflow.experimentKind", "custom_model_development"
"""Of what kind MLflow's viewer takes an experiment: of one without it asks."""
_AMONG_RUNS = "workflowType=machine_learning"
"""Without it MLflow's viewer shows an experiment as traces of an application, whatever its kind."""
_PARENT, _USER = "mlflow.parentRunId", "mlflow.user"
_MOST_METRICS, _MOST_PARAMS = 1000, 100
"""That MLflow takes in one call."""
GROWING = ("sweep", "study")
"""Kinds of folders to which more is added after they were logged."""


def receipts_of(folder: Path) -> list[dict[str, str | None]]:
    """What a folder says of where it was logged."""
    path = folder / RECEIPT
    if not path.exists():
        return []
    try:
        whole = [unsealed(one, _RECEIPT_KEYS) for one in json.loads(plain_bytes(path))]
    except (ValueError, TypeError, OSError):
        whole = [None]
    if None in whole:
        raise LcmError(f"{path} is damaged: remove it, and the folder is logged anew")
    return [one for one in whole if one is not None]


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
        for name in place.VARIABLES:
            if getattr(self, name) == "":
                raise ValueError(f"{name} must not be empty")
        check_range(self, "timeout_s", ge=1)
        if redacted(self.experiment_name) != self.experiment_name:
            raise ValueError("experiment holds what looks like a key: give it another name")
        is_users = self.address == place.of_environment("uri")
        is_server = urlsplit(self.address).hostname
        if is_server and not is_users and (why := refused_host(self.address)):  # it is shown MLFLOW_TRACKING_TOKEN
            raise ValueError(f"uri: {why}")

    @property
    def address(self) -> str:
        return self.uri or place.of_environment("uri") or f"{place.SQLITE}mlflow.db"

    @property
    def experiment_name(self) -> str:
        return self.experiment or place.of_environment("experiment") or "lcm"

    @property
    def _database(self) -> Path | None:
        return place.database_of(self.address)

    @property
    def _here(self) -> dict[str, str | None]:
        """What a receipt of this place says."""
        return {"uri": place.place_of(self.address), "experiment": self.experiment_name}

    def log(self, folder: Path | Sequence[Path], parent: Path | None = None) -> str:
        """Raises TrackingError if MLflow cannot be reached or refuses; what was logged before that stays."""
        folders = [folder] if isinstance(folder, Path) else folder
        summaries = {one: read_summary(one) for one in folders if not self.has(one)}
        connection = None
        if summaries:
            first = next(iter(summaries))
            usual = type(self)()
            named = {"uri": (self.address, usual.address), "experiment": (self.experiment_name, usual.experiment_name)}
            elsewhere = [f"tracking.{key}={ours}" for key, (ours, theirs) in named.items() if ours != theirs]
            later = f"it is whole in {first}, log it later with: {shlex.join(['lcm', 'log', str(first), *elsewhere])}"
            with self._refusals_told(later), place.alone(self._database):
                began = [began_ms for began_ms, _ in map(times_ms, summaries.values()) if began_ms is not None]
                connection = self._connected(parent, min(began, default=None))
                for one, summary in summaries.items():
                    self._log(one, summary, connection)
        return self._where(str(self._receipt(folders[-1], _digest(folders[-1]))["run_id"]), connection)

    def has(self, folder: Path) -> bool:
        return bool(self._receipt(folder, _digest(folder)))

    def log_retrievals(self, folder: Path, retrievals: Sequence[Retrieval]) -> str:
        """In a process of its own: where MLflow's traces go is a setting of the whole process."""
        where = self.log(folder)
        run_id = str(self._receipt(folder, _digest(folder))["run_id"])
        with _another_process() as beside:
            n = beside.submit(self._log_retrievals, run_id, list(retrievals)).result()
        return f"{n} traces of {where}"

    def _log_retrievals(self, run_id: str, retrievals: Sequence[Retrieval]) -> int:
        with self._refusals_told("the same command logs the traces that are missing"), place.alone(self._database):
            return log_retrievals(place.whole_uri(self.address), run_id, retrievals)

    @contextmanager
    def logger(self) -> Iterator[Log]:
        """`log` in a process of its own.

        Importing MLflow and opening its tables takes as long as a whole run whose embeddings are cached, so it begins
        now, on another core. A database that is not there yet is made elsewhere until something is logged.
        """
        place.quieten(self.timeout_s)  # for runs that are fetched in this process, too
        with TemporaryDirectory() as scratch, _another_process() as beside:
            with uninterrupted():  # the process starts with the first work
                beside.submit(self._prepare, Path(scratch) / "new.db")
            yield lambda folder, parent=None: beside.submit(self.log, folder, parent).result()

    def _prepare(self, new: Path) -> None:
        """Import MLflow, and open a local database, or make the tables of one that is to come."""
        place.quieten(self.timeout_s)
        from mlflow.tracking import MlflowClient

        if (local := self._database) is None:  # a server that is away would keep the run waiting twice
            return
        if place.is_made(local):
            MlflowClient(tracking_uri=place.whole_uri(self.address)).get_experiment_by_name(self.experiment_name)
        else:
            place.prepare(local, new)

    @contextmanager
    def _refusals_told(self, remedy: str) -> Iterator[None]:
        """What MLflow does not take is a `TrackingError` of one line that ends in a remedy."""
        place.quieten(self.timeout_s)
        refused: tuple[type[Exception], ...] = (*place.complaints(), ImportError)
        try:
            yield
        except refused as err:
            reason = place.reason_of(err, self._database)
            raise TrackingError(
                f"tracking.uri={self.address}: MLflow did not take the run ({reason}); {remedy}"
            ) from err

    def _connected(self, parent: Path | None, began_ms: int | None) -> "_Connection":
        """What is the same for all folders that are logged together.

        Args:
            began_ms: when the first of them began, and so the sweep or study that they belong to.
        """
        from mlflow.tracking import MlflowClient

        client = MlflowClient(tracking_uri=place.whole_uri(self.address))
        found = client.get_experiment_by_name(self.experiment_name)
        if found is None:
            local = self._database
            location = None if local is None else (local.parent / place.RUNS).absolute().as_uri()
            experiment_id = str(client.create_experiment(self.experiment_name, location, {_KIND: _OF_RUNS}))
        else:
            experiment_id = found.experiment_id
            if _KIND not in found.tags:
                client.set_experiment_tag(experiment_id, _KIND, _OF_RUNS)
        if parent is None:
            return _Connection(client, experiment_id)
        return _Connection(client, experiment_id, self._parent(client, experiment_id, parent, began_ms))

    def _parent(self, client: Any, experiment_id: str, folder: Path, began_ms: int | None) -> str:
        """The run of a sweep or study, begun here where it is not there yet."""
        with FileLock(folder / _LOCK):
            if known := self._receipt(folder):
                return str(known["run_id"])
            told = {"folder": redacted(str(folder.resolve())).replace("'", "_"), _USER: _user()}
            begun = client.search_runs([experiment_id], f"tags.folder = '{told['folder']}'", max_results=1)
            # What began one that is there was killed before it could write the receipt.
            name = redacted(folder.resolve().name)
            run = begun[0] if begun else client.create_run(experiment_id, began_ms, told, name)
            self._keep_receipt(folder, None, str(run.info.run_id))
            return str(run.info.run_id)

    def _log(self, folder: Path, summary: Mapping[str, Any], connection: "_Connection") -> None:
        client, digest, tables = connection.client, _digest(folder), entry.tables(summary)
        tags = {**entry.tags(summary), _USER: _user(), "summary_sha256": digest}
        tags[entry.NOTE] = entry.note(summary, folder, tables)
        if tables:
            tags[entry.SHOWN_TABLES] = entry.shown_tables([*tables])
        if connection.parent_id is not None:
            tags[_PARENT] = connection.parent_id
        name = entry.run_name(summary, folder, is_nested=connection.parent_id is not None)
        if connection.parent_id is None:
            name = redacted(self.run_name or place.of_environment("run_name") or name)
        began_ms, ended_ms = times_ms(summary)
        params = dict(entry.params(folder, summary))
        metrics = dict(entry.metrics(summary, point_record(folder).get("objectives", ())))
        if run_id := self._begun(connection, folder, summary):
            client.update_run(run_id, status="RUNNING", name=name)
            there = client.get_run(run_id).data.params  # which MLflow lets nobody change, as where a study has grown
            params = {key: value for key, value in params.items() if key not in there}
        else:
            run_id, tags = str(client.create_run(connection.experiment_id, began_ms, tags, name).info.run_id), {}
        try:
            _send(client, run_id, metrics, params, tags)
            if "dataset" in summary:
                _use_dataset(client, run_id, summary)
            _keep_files(client, run_id, folder, summary, tables)
        except Exception as error:
            if not place.is_silence(error):
                client.set_terminated(run_id, "FAILED", ended_ms)
            raise
        client.set_terminated(run_id, "FINISHED", ended_ms)
        self._keep_receipt(folder, digest, run_id)

    def _begun(self, connection: "_Connection", folder: Path, summary: Mapping[str, Any]) -> str | None:
        """The run that this folder has here already: one below which others were logged, one that has grown since, or
        one whose logging was cut short."""
        known = self._receipt(folder)
        if known and (known["summary_sha256"] is None or summary.get("kind") in GROWING):
            return known["run_id"]
        wanted = f"tags.summary_sha256 = '{_digest(folder)}'"
        cut_short = connection.client.search_runs([connection.experiment_id], wanted, max_results=1)
        return str(cut_short[0].info.run_id) if cut_short else None

    def _receipt(self, folder: Path, digest: str | None = None) -> Mapping[str, str | None]:
        """What says that the folder was logged here; empty where nothing does.

        Args:
            digest: of its summary as it was logged; None = whatever it was.
        """
        told = self._here if digest is None else {**self._here, "summary_sha256": digest}
        return next((one for one in receipts_of(folder) if told.items() <= one.items()), {})

    def _keep_receipt(self, folder: Path, digest: str | None, run_id: str) -> None:
        """In place of an earlier one of the same run."""
        told = {**self._here, "summary_sha256": digest, "run_id": run_id}
        others = [one for one in receipts_of(folder) if (one["uri"], one["run_id"]) != (told["uri"], run_id)]
        kept = [sealed(redacted_record(one)) for one in (*others, told)]
        write_text(folder / RECEIPT, json.dumps(kept, indent=2) + "\n")

    def _where(self, run_id: str, connection: "_Connection | None") -> str:
        used = [
            name for key, name in place.VARIABLES.items() if getattr(self, key) is None and place.of_environment(key)
        ]
        of = f", as {', '.join(used)} {'say' if len(used) > 1 else 'says'}" if used else ""
        page = ""
        if connection is not None and urlsplit(self.address).scheme in ("http", "https"):
            page = f": {self.address.rstrip('/')}/#/experiments/{connection.experiment_id}/runs/{run_id}?{_AMONG_RUNS}"
        return f"MLflow run {run_id} in experiment {self.experiment_name!r} at {self.address}{of}{page}"


class _Connection(NamedTuple):
    """A client, and where folders go: an experiment, and the run of the sweep or study that they belong to."""

    client: Any
    experiment_id: str
    parent_id: str | None = None


def _digest(folder: Path) -> str:
    return hashlib.sha256(plain_bytes(folder / SUMMARY)).hexdigest()


def _user() -> str:
    """Who logs; a container may run under a number that has no name."""
    try:
        return redacted(getpass.getuser())
    except (KeyError, OSError):
        return str(os.getuid())


def _send(
    client: Any, run_id: str, metrics: Mapping[str, float], params: Mapping[str, str], tags: Mapping[str, str]
) -> None:
    """In as few calls as MLflow allows: one, for all but runs without a headline."""
    from mlflow.entities import Metric, Param, RunTag

    now = int(time.time() * 1000)
    kept = [Metric(key, value, now, 0) for key, value in metrics.items()]
    named = [Param(key, value) for key, value in params.items()]
    marked = [RunTag(key, value) for key, value in tags.items()]
    while kept or named or marked:
        client.log_batch(run_id, kept[:_MOST_METRICS], named[:_MOST_PARAMS], marked)
        kept, named, marked = kept[_MOST_METRICS:], named[_MOST_PARAMS:], []


def _use_dataset(client: Any, run_id: str, summary: Mapping[str, Any]) -> None:
    from mlflow.entities import Dataset, DatasetInput, InputTag

    about = summary["dataset"]
    profile = json.dumps(summary.get("counts", {}))
    dataset = Dataset(about["name"], about["digest"][:36], "lcm", json.dumps(about), profile=profile)
    client.log_inputs(run_id, datasets=[DatasetInput(dataset, [InputTag("mlflow.data.context", "evaluation")])])


def _keep_files(client: Any, run_id: str, folder: Path, summary: Mapping[str, Any], tables: Mapping[str, str]) -> None:
    """All files of a folder, and the tables, by one call: each finds out anew where artifacts lie."""
    with TemporaryDirectory(dir=folder, prefix=".mlflow.") as name:
        beside = Path(name)
        for path in folder.iterdir():
            if path.is_file() and path.name != RECEIPT and path.suffix != ".lock":
                _put(path, beside / path.name)
            elif path.is_dir() and path != beside and summary.get("kind") == "preset":  # a folder for each group
                shutil.copytree(path, beside / path.name, copy_function=_put)
        for table, text in tables.items():
            write_text(beside / entry.TABLES / table, text)
        client.log_artifacts(run_id, str(beside))


def _put(file: str | Path, to: str | Path) -> None:
    """Into another folder, without a copy where the disk allows it."""
    try:
        os.link(file, to)
    except OSError:
        shutil.copyfile(file, to)


def _another_process() -> ProcessPoolExecutor:
    spawn = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(1, mp_context=spawn, initializer=_live_with, initargs=(os.getpid(),))


def _live_with(caller: int) -> None:
    """Leave interrupts to the caller, and end where it is killed: else this process would wait for work for ever.

    It ends at once when all is logged: to take MLflow down in order takes Python a second, for which the caller waits.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    atexit.register(os._exit, 0)
    begin_worker(caller)
