"""MLflow: the one place that imports it. A run is logged from its folder, so it can be logged again later."""

import hashlib
import json
import multiprocessing
import os
import re
import shlex
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import yaml
from filelock import FileLock

from eval.run_folder import CONFIG, SUMMARY, read_summary, write_whole
from lcm.errors import LcmError

_REASON_LENGTH = 160
_UNNAMEABLE = re.compile(r"[^\w\-./: ]", re.ASCII)  # what MLflow takes in no metric's name
RECEIPT = "mlflow.json"
"""Says where a run folder was logged, and what its summary was then."""


class TrackingError(LcmError):
    """The server did not take the run; the folder still holds all of it."""


Log = Callable[[Path], str | None]
"""Logs a complete run folder; says where to look, or None where nothing is logged."""


class Tracking(Protocol):
    """A `tracking` choice."""

    def log(self, folder: Path) -> str | None:
        """Log a complete run folder, now and here; says where to look, or None where nothing is logged."""
        ...

    def logger(self) -> AbstractContextManager[Log]:
        """`log`, made ready while something else is done."""
        ...


@dataclass(frozen=True, slots=True)
class Untracked:
    """The run folder is all."""

    def log(self, folder: Path) -> str | None:
        return None

    def logger(self) -> AbstractContextManager[Log]:
        return nullcontext(self.log)


@dataclass(frozen=True, slots=True)
class Mlflow:
    """Logs to a SQLite file or a server. The same folder is logged once to a place, however often it is asked."""

    uri: str = "sqlite:///mlflow.db"
    experiment: str = "lcm"
    timeout_s: int = 10

    def __post_init__(self) -> None:
        for name in ("uri", "experiment"):
            if not getattr(self, name):
                raise ValueError(f"{name} must not be empty")
        if self.timeout_s < 1:
            raise ValueError(f"timeout_s must be >= 1, got {self.timeout_s}")

    def log(self, folder: Path) -> str:
        """Raises TrackingError if MLflow cannot be reached or refuses."""
        summary = read_summary(folder)
        digest = hashlib.sha256((folder / SUMMARY).read_bytes()).hexdigest()
        receipts = _receipts(folder)
        entry = {"uri": self._place(), "experiment": self.experiment, "summary_sha256": digest}
        for known in receipts:
            if entry.items() <= known.items():
                return self._where(known["run_id"])
        self._quieten()
        import mlflow.exceptions  # here, because importing MLflow takes over a second
        from alembic.util import CommandError
        from sqlalchemy.exc import SQLAlchemyError

        try:
            with self._alone():
                run_id = self._log(folder, summary)
        except (mlflow.exceptions.MlflowException, SQLAlchemyError, CommandError, ImportError, OSError) as err:
            reason = " ".join(str(err).split())
            reason = reason if len(reason) <= _REASON_LENGTH else f"{reason[:_REASON_LENGTH]}..."
            elsewhere = "" if self.uri == type(self)().uri else f" {shlex.quote(f'tracking.uri={self.uri}')}"
            raise TrackingError(
                f"tracking.uri={self.uri}: MLflow did not take the run ({reason}); it is whole in {folder}, log it "
                f"later with: lcm log {shlex.quote(str(folder))}{elsewhere}"
            ) from err
        write_whole(folder / RECEIPT, json.dumps([*receipts, {**entry, "run_id": run_id}], indent=2) + "\n")
        return self._where(run_id)

    @contextmanager
    def logger(self) -> Iterator[Log]:
        """`log` in a process of its own.

        Importing MLflow and opening its tables takes as long as a whole run whose embeddings are cached, so it begins
        now, on another core.
        """
        spawn = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(1, mp_context=spawn, initializer=_leave_interrupts_to_the_caller) as beside:
            beside.submit(self._prepare)
            yield lambda folder: beside.submit(self.log, folder).result()

    def _quieten(self) -> None:
        """Settings that MLflow reads from the environment when it is imported."""
        os.environ["MLFLOW_HTTP_REQUEST_MAX_RETRIES"] = "1"
        os.environ["MLFLOW_HTTP_REQUEST_TIMEOUT"] = str(self.timeout_s)
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
        os.environ.setdefault("MLFLOW_LOGGING_LEVEL", "ERROR")  # else it tells of each table that it makes
        os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")

    def _prepare(self) -> None:
        self._quieten()
        from mlflow.tracking import MlflowClient

        if self._database() is not None:  # a server that is away would keep the run waiting twice
            with self._alone():
                MlflowClient(tracking_uri=self.uri).get_experiment_by_name(self.experiment)

    def _log(self, folder: Path, summary: Mapping[str, Any]) -> str:
        from mlflow.entities import Dataset, DatasetInput, InputTag, Metric, Param
        from mlflow.tracking import MlflowClient

        client = MlflowClient(tracking_uri=self.uri)
        found = client.get_experiment_by_name(self.experiment)
        experiment_id = found.experiment_id if found else self._create(client)
        tags = {
            "config_hash": summary["config_hash"],
            "dataset_digest": summary["dataset"]["digest"],
            "commit": summary["commit"] or "unknown",
        }
        where = folder.resolve()
        name = f"{summary['dataset']['name']} {where.parent.name} {where.name}"
        run_id = str(client.create_run(experiment_id, run_name=name, tags=tags).info.run_id)
        status = "FAILED"
        try:
            now = int(time.time() * 1000)
            metrics = [Metric(key, value, now, 0) for key, value in _metrics(summary)]
            params = [Param(key, value) for key, value in _params(folder)]
            for start in range(0, len(params), 100):
                client.log_batch(run_id, params=params[start : start + 100])
            for start in range(0, len(metrics), 1000):
                client.log_batch(run_id, metrics=metrics[start : start + 1000])
            dataset = Dataset(
                name=summary["dataset"]["name"],
                digest=summary["dataset"]["digest"][:36],
                source_type="lcm",
                source=json.dumps(summary["dataset"]),
                profile=json.dumps(summary["counts"]),
            )
            tag = InputTag(key="mlflow.data.context", value="evaluation")
            client.log_inputs(run_id, datasets=[DatasetInput(dataset=dataset, tags=[tag])])
            client.log_artifacts(run_id, str(folder))
            status = "FINISHED"
        finally:
            client.set_terminated(run_id, status=status)
        return run_id

    def _create(self, client: Any) -> str:
        local = self._database()
        location = None if local is None else (local.parent / "mlruns").absolute().as_uri()
        return str(client.create_experiment(self.experiment, artifact_location=location))

    def _alone(self) -> AbstractContextManager[object]:
        """One process at a time makes the tables and the experiment of a local database."""
        local = self._database()
        if local is None:
            return nullcontext()
        local.parent.mkdir(parents=True, exist_ok=True)
        return FileLock(f"{local}.lock")

    def _database(self) -> Path | None:
        return Path(self.uri.removeprefix("sqlite:///")) if self.uri.startswith("sqlite:///") else None

    def _place(self) -> str:
        """The URI, with the whole path where it names a file of the current folder."""
        local = self._database()
        return self.uri if local is None else f"sqlite:///{local.absolute()}"

    def _where(self, run_id: str) -> str:
        return f"MLflow run {run_id} in experiment {self.experiment!r} at {self.uri}"


def _receipts(folder: Path) -> list[dict[str, str]]:
    path = folder / RECEIPT
    receipts: list[dict[str, str]] = json.loads(path.read_text()) if path.is_file() else []
    return receipts


def _leave_interrupts_to_the_caller() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def metric_name(measure: str) -> str:
    """`recall@10` as MLflow can write it, `recall_at_10`; `measure_name` maps back."""
    return measure.replace("@", "_at_")


def measure_name(metric: str) -> str:
    return metric.replace("_at_", "@")


def _metrics(summary: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    yield from _named("", summary["measures"])
    for arm, measures in summary["arms"].items():
        yield from _named(f"arm/{arm}/", measures)
    for category, measures in summary["categories"].items():
        yield from _named(f"category/{category}/", measures)
    for key, value in summary["counts"].items():
        yield f"count/{key}", float(value)
    for key, value in summary.get("compression", {}).items():
        yield f"compression/{key}", float(value)
    for arm, measures in summary.get("summary_quality", {}).items():
        yield from _named(f"summary/{arm}/", measures)
    for action, times in summary.get("decisions", {}).items():
        yield f"decision/{action}", float(times)
    for what, times in summary.get("incidents", {}).items():
        yield f"incident/{_UNNAMEABLE.sub('_', what)}", float(times)
    for part, values in summary["timing"]["latency_ms"].items():
        yield from ((f"latency/{part}_{key}", float(value)) for key, value in values.items())
    for phase, value in summary["timing"]["seconds"].items():
        yield f"seconds/{phase}", float(value)


def _named(prefix: str, measures: Mapping[str, Mapping[str, float | None]]) -> Iterator[tuple[str, float]]:
    for measure, entry in measures.items():
        for key, suffix in (("value", ""), ("low", ".low"), ("high", ".high")):
            value = entry[key]
            if value is not None:
                yield f"{_UNNAMEABLE.sub('_', prefix)}{metric_name(measure)}{suffix}", float(value)


def _params(folder: Path) -> Iterator[tuple[str, str]]:
    """The resolved configuration, one parameter a leaf; the whole file is an artifact besides."""
    leaves = _leaves("", yaml.safe_load((folder / CONFIG).read_text()))
    return ((key, str(value)[:6000]) for key, value in leaves)


def _leaves(prefix: str, node: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(node, dict) and node:
        for key, value in node.items():
            yield from _leaves(f"{prefix}.{key}" if prefix else str(key), value)
    else:
        yield prefix, node
