"""A local database of MLflow: its tables are there whole or not at all, and made when something is logged."""

import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock

from eval.tracking.environment import SQLITE
from eval.tracking.tracking import TrackingError
from lcm.faults import refuse_emptied

RUNS = "mlruns"
"""The folder of the files of runs, beside a local database."""
_PREPARED: dict[Path, Path] = {}
"""Database that was not there yet -> its tables, made elsewhere."""


def is_made(local: Path) -> bool:
    """Whether a database is there, and has tables."""
    return local.exists() and local.stat().st_size > 0


def prepare(local: Path, new: Path) -> None:
    """Make the tables of a database that is to come, which takes seconds; `alone` puts them into place.

    Args:
        new: where they are made.
    """
    _make_tables(new)
    _PREPARED[local.absolute()] = new


@contextmanager
def alone(local: Path | None) -> Iterator[None]:
    """One process at a time makes the tables and the experiment of a local database; nothing is made on a server.

    Args:
        local: None where runs are logged to a server.
    Raises:
        TrackingError: if the database is empty, though runs were logged to it.
    """
    if local is None:
        yield
        return
    local.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{local}.lock"):
        if not is_made(local):
            _refuse_emptied(local)
            _make_whole(local)
        yield


def _refuse_emptied(local: Path) -> None:
    if (runs := local.parent / RUNS).is_dir():
        refuse_emptied(
            local,
            f"files of runs that were logged to it lie in {runs}",
            "remove it to begin anew; then `lcm log` logs what is whole on disk",
            TrackingError,
        )


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
