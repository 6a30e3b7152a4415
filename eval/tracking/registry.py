"""MLflow's runs and its model registry: fetch a run, register it under a name, promote a version to an alias.

What is registered is the artifacts of a run, as they are; no model is logged and no flavour is needed.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from eval.run import SUMMARY
from eval.tracking.mlflow_log import receipts_of
from eval.tracking.place import complaints, database_of, place_of, quieten, reason_of, whole_uri
from lcm.errors import LcmError

_RUN_ID = re.compile(r"[0-9a-f]{32}")
_ALIAS = re.compile(r"(?:(?P<name>[^@/\\]+)@)?(?P<alias>[^@/\\.]+)")
_PREFIX = re.compile(r"\A(mlflow:|runs:/|models:/)+")


def is_run_id(text: str) -> bool:
    """Whether this looks like the id of an MLflow run rather than a folder or an alias."""
    return _RUN_ID.fullmatch(text) is not None


def fetch_run(uri: str, run_id: str, into: Path) -> Path:
    """Download the folder of a run.

    Args:
        into: a folder, made where it is missing; files of the run replace those of the same name.
    Returns:
        The folder, which holds the summary of the run and whatever was logged with it.
    Raises:
        LcmError: if there is no such server or run, or the run was not logged by this program.
    """
    with _client(uri, f"run {run_id}") as client:
        client.get_run(run_id)
        if SUMMARY not in {artifact.path for artifact in client.list_artifacts(run_id)}:
            raise LcmError(f"MLflow run {run_id} at {uri} has no {SUMMARY}: name a run that lcm logged")
        into.mkdir(parents=True, exist_ok=True)
        client.download_artifacts(run_id, "", str(into))
    return into


def fetch_named(text: str, uri: str | None, into: Path, what: str, name: str | None = None) -> tuple[str, Path]:
    """Download the run that a text stands for, its id or an alias.

    Args:
        text: `mlflow:`, `runs:/` and `models:/` before it are passed over.
        uri: None where nothing is tracked.
        name: under which an alias is registered that does not say NAME@ALIAS.
    Returns:
        The id of the run, and its folder.
    Raises:
        LcmError: if the text is neither, or stands for nothing.
    """
    run_id = _PREFIX.sub("", text)
    alias = _ALIAS.fullmatch(run_id)
    if not is_run_id(run_id) and (alias is None or not (alias["name"] or name)):
        raise LcmError(f"{what}: no such folder or file; name a run folder, an MLflow run id, or NAME@ALIAS")
    if uri is None:
        raise LcmError(
            f"{what}: no such folder or file, and tracking=none knows no runs: choose tracking=mlflow, or name a run "
            "folder"
        )
    if alias is not None and not is_run_id(run_id):
        run_id = run_of_alias(uri, alias["name"] or str(name), alias["alias"])
    return run_id, fetch_run(uri, run_id, into / f"run-{run_id[:8]}")


def run_of_alias(uri: str, name: str, alias: str) -> str:
    """The run that a registered name and its alias stand for, as `unified` and `champion` may.

    Raises:
        LcmError: if there is no such server, name or alias.
    """
    with _client(uri, f"{name}@{alias}") as client:
        version = client.get_model_version_by_alias(name, alias)
    if not version.run_id:
        raise LcmError(f"{name}@{alias} at {uri} was registered without a run: register it with lcm export register=")
    return str(version.run_id)


def register(uri: str, name: str, run_id: str, tags: Mapping[str, str] | None = None) -> str:
    """Make a run the next version of a registered name.

    Returns:
        The version. A run that is a version of this name already stays that version.
    Raises:
        LcmError: if there is no such server or run, or MLflow refuses the name.
    """
    from mlflow.exceptions import MlflowException

    with _client(uri, f"registered name {name!r}") as client:
        source = f"{client.get_run(run_id).info.artifact_uri}"
        try:
            client.get_registered_model(name)
        except MlflowException as error:
            if error.error_code != "RESOURCE_DOES_NOT_EXIST":
                raise
            client.create_registered_model(name)
        known = [found for found in client.search_model_versions(f"name = '{name}'") if found.run_id == run_id]
        if known:
            return str(min(known, key=lambda found: int(found.version)).version)
        made = client.create_model_version(name, source=source, run_id=run_id, tags=dict(tags or {}))
    return str(made.version)


def promote(uri: str, name: str, version: str, alias: str = "champion") -> None:
    """Let an alias stand for a version from now on, whichever it stood for before.

    Raises:
        LcmError: if there is no such server, name or version.
    """
    with _client(uri, f"{name} version {version}") as client:
        client.set_registered_model_alias(name, alias, version)


def logged_run(uri: str, folder: Path) -> str | None:
    """The run that a folder was logged as at this place, by its receipt; None where it was not."""
    here = place_of(uri)
    told = reversed(receipts_of(folder))
    whole = (known["run_id"] for known in told if known["uri"] == here and known["summary_sha256"])
    return next(whole, None)


def attach(uri: str, run_id: str, folder: Path, place: str) -> None:
    """Add a folder, with all below it, to the artifacts of a run.

    Args:
        place: below which they are kept; empty: among those of the run itself.
    Raises:
        LcmError: if there is no such server or run.
    """
    with _client(uri, f"run {run_id}") as client:
        client.log_artifacts(run_id, str(folder), place or None)


@contextmanager
def _client(uri: str, wanted: str) -> Iterator[Any]:
    """A client of a place that exists; what it refuses becomes one line that names the place and what was wanted."""
    quieten()
    if (path := database_of(uri)) is not None and not path.is_file():
        raise LcmError(f"{wanted}: tracking.uri={uri}: no such file {path}; name the database that runs were logged to")
    from mlflow.tracking import MlflowClient

    refused = complaints()
    try:
        yield MlflowClient(tracking_uri=whole_uri(uri), registry_uri=whole_uri(uri))
    except refused as error:
        raise LcmError(f"tracking.uri={uri}: {wanted}: {reason_of(error)}") from error
