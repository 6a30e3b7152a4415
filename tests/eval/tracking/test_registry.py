"""Runs and registered names that are not there are told of in one line."""

from pathlib import Path

import pytest

from eval.tracking.registry import fetch_run, is_run_id, logged_run, promote, register, run_of_alias
from lcm.errors import LcmError

NO_RUN = "0" * 32
NOWHERE = "http://127.0.0.1:9"


@pytest.fixture
def logged(tmp_path: Path) -> tuple[str, str]:
    """A database with one run and nothing registered, and the run's id."""
    place = f"sqlite:///{tmp_path}/mlflow.db"
    return place, made(place, (tmp_path / "runs").as_uri())


def made(place: str, artifacts: str | None = None) -> str:
    """Make a run in a database; returns its id."""
    from mlflow.tracking import MlflowClient

    client = MlflowClient(tracking_uri=place)
    experiment = client.create_experiment("tests", artifact_location=artifacts)
    run_id = str(client.create_run(experiment).info.run_id)
    client.set_terminated(run_id)
    return run_id


def test_an_id_is_told_from_a_name() -> None:
    assert is_run_id("0123456789abcdef" * 2)
    assert not is_run_id("memory@champion")


@pytest.mark.slow
@pytest.mark.xdist_group("mlflow")
def test_a_run_is_one_version_an_alias_moves_and_what_is_not_there_is_told_of_in_one_line(
    logged: tuple[str, str], tmp_path: Path
) -> None:
    uri, run_id = logged
    for ask, problem in (
        (lambda: fetch_run(uri, NO_RUN, tmp_path / "got"), f"run {NO_RUN}.*not found"),
        (lambda: fetch_run(uri, run_id, tmp_path / "got"), "has no summary.json: name a run that lcm logged"),
        (lambda: run_of_alias(uri, "memory", "champion"), "memory@champion: .*not found"),
        (lambda: promote(uri, "memory", "7"), "memory version 7: .*not found"),
        (lambda: register(uri, "a/b", run_id), "registered name 'a/b'"),
        (lambda: register(uri, "memory", NO_RUN), "not found"),
        (lambda: run_of_alias(NOWHERE, "memory", "champion"), "tracking.uri=http://127.0.0.1:9"),
    ):
        with pytest.raises(LcmError, match=problem) as refused:
            ask()
        assert "\n" not in str(refused.value)
    assert register(uri, "memory", run_id) == "1"
    assert register(uri, "memory", run_id) == "1"  # it is one already
    promote(uri, "memory", "1")
    assert run_of_alias(uri, "memory", "champion") == run_id


@pytest.mark.slow
@pytest.mark.xdist_group("mlflow")
def test_a_relative_place_is_that_of_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in (tmp_path / "one", tmp_path / "two"):
        folder.mkdir()
        run_id = made(f"sqlite:///{folder}/mlflow.db")
        monkeypatch.chdir(folder)
        assert register("sqlite:///mlflow.db", "memory", run_id) == "1"


def test_a_database_that_is_not_there_is_not_made_and_a_folder_without_a_receipt_was_logged_nowhere(
    tmp_path: Path,
) -> None:
    with pytest.raises(LcmError, match="no such file"):
        fetch_run(f"sqlite:///{tmp_path}/none.db", NO_RUN, tmp_path / "got")
    assert not (tmp_path / "none.db").exists()
    assert logged_run("sqlite:///mlflow.db", tmp_path) is None
