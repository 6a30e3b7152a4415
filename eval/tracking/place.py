"""Where MLflow's runs are, how it behaves, and why it refuses: its variables, a local database, errors on one line."""

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock

from eval.tracking.tracking import TrackingError
from lcm import faults
from lcm.redaction import redacted

SQLITE = "sqlite:///"
VARIABLES = {"uri": "MLFLOW_TRACKING_URI", "experiment": "MLFLOW_EXPERIMENT_NAME", "run_name": "MLFLOW_RUN_NAME"}
"""Setting -> MLflow's own variable of the environment for it; one that is empty says nothing."""
RUNS = "mlruns"
"""The folder of the files of runs, beside a local database."""
_PREPARED: dict[Path, Path] = {}
"""Database that was not there yet -> its tables, made elsewhere."""
_LONGEST = 160


def of_environment(setting: str) -> str | None:
    return os.environ.get(VARIABLES[setting]) or None


def quieten(timeout_s: int | None = None) -> None:
    """Settings that MLflow reads from the environment.

    Args:
        timeout_s: how long a server may take to answer; None: as it was set before in this process.
    """
    os.environ["MLFLOW_HTTP_REQUEST_MAX_RETRIES"] = "0"  # each would wait as long once more
    if timeout_s is not None:
        os.environ["MLFLOW_HTTP_REQUEST_TIMEOUT"] = str(timeout_s)
    os.environ["MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT"] = "true"  # where a result may be read by a program
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    os.environ.setdefault("MLFLOW_LOGGING_LEVEL", "CRITICAL")  # we tell what it refuses; else it also shows tracebacks
    os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")
    os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")


def database_of(uri: str) -> Path | None:
    """The file that a URI names; None of a server's."""
    return Path(uri.removeprefix(SQLITE)) if uri.startswith(SQLITE) else None


def whole_uri(uri: str) -> str:
    """The URI, with the whole path where it names a file of the current folder: MLflow keeps what it has opened by the
    URI, whichever folder is the current one by then."""
    local = database_of(uri)
    return uri if local is None else f"{SQLITE}{local.absolute()}"


def place_of(uri: str) -> str:
    """The whole URI, without what is secret in it."""
    return redacted(uri) if database_of(uri) is None else whole_uri(uri)


def is_made(local: Path) -> bool:
    """Whether a database is there, and has tables."""
    return local.exists() and local.stat().st_size > 0


def prepare(local: Path, new: Path) -> None:
    """Make the tables of a database that is to come, which takes seconds; `alone` puts them into place."""
    _make_tables(new)
    _PREPARED[local.absolute()] = new


@contextmanager
def alone(local: Path | None) -> Iterator[None]:
    """One process at a time makes the tables and the experiment of a local database; nothing is made on a server.

    Raises:
        TrackingError: if the database is empty, though runs were logged to it.
    """
    if local is None:
        yield
        return
    local.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{local}.lock"):
        if not is_made(local):
            if (runs := local.parent / RUNS).is_dir():
                sign = f"files of runs that were logged to it lie in {runs}"
                remedy = "remove it to begin anew; then `lcm log` logs what is whole on disk"
                faults.refuse_emptied(local, sign, remedy, TrackingError)
            _make_whole(local)
        yield


def _make_whole(local: Path) -> None:
    """Make the tables beside, then put them into place: MLflow cannot go on with those that a kill left half made."""
    # A name of its own each time: MLflow keeps what it has opened by the name, were the file gone by then.
    new = local.with_name(f".{local.name}.{secrets.token_hex(4)}.new")
    for left in local.parent.glob(f".{local.name}.*.new*"):
        left.unlink()
    if (prepared := _PREPARED.pop(local.absolute(), None)) is None:
        _make_tables(new)
    else:
        shutil.copyfile(prepared, new)
    new.replace(local)


def _make_tables(new: Path) -> None:
    from mlflow.tracking import MlflowClient

    MlflowClient(tracking_uri=f"{SQLITE}{new.absolute()}").get_experiment("0")


def complaints() -> tuple[type[Exception], ...]:
    """What MLflow raises where it does not take something, or give it. Importing it takes over a second."""
    from alembic.util import CommandError
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import SQLAlchemyError

    return MlflowException, SQLAlchemyError, CommandError, OSError


def reason_of(error: BaseException, database: Path | None = None) -> str:
    """On one line; what a database refuses with its path and a remedy, which MLflow tells with the statement alone."""
    if is_silence(error):
        return "it does not answer: see whether it runs, and can be reached from here"
    cause: BaseException | None = error
    while cause is not None:
        if fault := faults.told(cause, database):
            return fault
        cause = getattr(cause, "orig", None) or cause.__cause__ or cause.__context__
    reason = " ".join(str(error).split())
    return reason if len(reason) <= _LONGEST else f"{reason[:_LONGEST]}..."


def is_silence(error: BaseException) -> bool:
    """Whether a server did not answer: asked once more, it would be waited for as long again."""
    from requests.exceptions import ConnectionError as NoConnection  # here, because only servers need it
    from requests.exceptions import Timeout

    return isinstance(error.__cause__ or error.__context__, NoConnection | Timeout)
