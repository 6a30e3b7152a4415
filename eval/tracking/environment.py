"""MLflow's variables of the environment: where its runs are, and how it behaves; and the whole of an address."""

import os
from pathlib import Path

from lcm.redaction import redacted

SQLITE = "sqlite:///"
VARIABLES = {"uri": "MLFLOW_TRACKING_URI", "experiment": "MLFLOW_EXPERIMENT_NAME", "run_name": "MLFLOW_RUN_NAME"}
"""Setting -> MLflow's own variable of the environment for it; one that is empty says nothing."""


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
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    os.environ["MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT"] = "true"  # where a result may be read by a program
    os.environ.setdefault("MLFLOW_LOGGING_LEVEL", "CRITICAL")  # we tell what it refuses; else it also shows tracebacks
    os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")
    os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")


def whole_uri(uri: str) -> str:
    """The URI, with the whole path where it names a file of the current folder: MLflow keeps what it has opened by the
    URI, whichever folder is the current one by then."""
    return f"{SQLITE}{Path(uri.removeprefix(SQLITE)).absolute()}" if uri.startswith(SQLITE) else uri


def place_of(uri: str) -> str:
    """The whole URI, without what is secret in it."""
    return whole_uri(uri) if uri.startswith(SQLITE) else redacted(uri)
