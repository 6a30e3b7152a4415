"""Where runs are logged to: what is set, else what MLflow's own variables say, else the usual."""

import pytest

from eval.tracking.mlflow_log import Mlflow, _Connection
from eval.tracking.place import quieten

NAMES = ("MLFLOW_TRACKING_URI", "MLFLOW_EXPERIMENT_NAME")


def test_what_is_set_comes_before_the_environment_and_that_before_the_usual(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (Mlflow().address, Mlflow().experiment_name) == ("sqlite:///mlflow.db", "lcm")
    for name, value in zip(NAMES, ("http://mlflow.invalid:5000", "theirs"), strict=True):
        monkeypatch.setenv(name, value)
    assert (Mlflow().address, Mlflow().experiment_name) == ("http://mlflow.invalid:5000", "theirs")
    ours = Mlflow(uri="sqlite:///ours.db", experiment="ours")
    assert (ours.address, ours.experiment_name) == ("sqlite:///ours.db", "ours")


def test_a_variable_that_is_empty_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a workflow sets one whose value nobody gave it."""
    for name in NAMES:
        monkeypatch.setenv(name, "")
    assert (Mlflow().address, Mlflow().experiment_name) == ("sqlite:///mlflow.db", "lcm")


def test_a_server_of_the_environment_is_the_users_own_and_another_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is shown the token that stands in the environment."""
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "https://mlflow.invalid")
    Mlflow()
    with pytest.raises(ValueError, match=r"^uri: "):
        Mlflow(uri="https://elsewhere.invalid")


def test_mlflow_prints_no_addresses_and_waits_as_long_as_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SUPPRESS_PRINTING_URL_TO_STDOUT", "HTTP_REQUEST_TIMEOUT", "HTTP_REQUEST_MAX_RETRIES"):
        monkeypatch.delenv(f"MLFLOW_{name}", raising=False)
    from mlflow.environment_variables import (
        MLFLOW_HTTP_REQUEST_MAX_RETRIES,
        MLFLOW_HTTP_REQUEST_TIMEOUT,
        MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT,
    )

    quieten(7)
    quieten()
    assert MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT.get()
    assert (MLFLOW_HTTP_REQUEST_TIMEOUT.get(), MLFLOW_HTTP_REQUEST_MAX_RETRIES.get()) == (7, 0)


def test_the_address_of_a_run_is_among_runs() -> None:
    """Else the viewer shows it among the traces of an application."""
    where = Mlflow(uri="http://127.0.0.1:9/")._where("abc", _Connection(None, "7"))
    assert where.endswith(": http://127.0.0.1:9/#/experiments/7/runs/abc?workflowType=machine_learning")
