"""A job of continuous integration: a shell script that stops at the first failure, and an MLflow server on loopback."""

import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import pytest
import yaml

from eval.tracking.registry import promote, register
from tests.pipelines.test_regress import BAD, GOOD, UNSURE
from tests.support.run_folders import write_run_folder

ROOT = Path(__file__).parents[2]
WORKFLOWS = ("regress", "sentinel")
"""Of `docs/examples`."""
JOB = """
set -eu
code=0
"$PYTHON" -m pipelines.cli regress "$@" regress.resamples=1000 report=false --json > told.json || code=$?
cat told.json
exit "$code"
"""
SLOW = pytest.mark.slow
"""Of what starts MLflow several times, which takes it seconds."""
NOWHERE = "http://127.0.0.1:9"


@dataclass(frozen=True)
class Ended:
    """How the job ended."""

    code: int
    told: Any
    """What it wrote to standard output, as JSON."""
    stderr: str


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an MLflow server."""
    place = tmp_path_factory.mktemp("server")
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"http://127.0.0.1:{free.getsockname()[1]}"
    command = [sys.executable, "-m", "mlflow", "server", "--backend-store-uri", f"sqlite:///{place}/mlflow.db"]
    command += ["--artifacts-destination", str(place / "runs"), "--workers", "1"]
    command += ["--host", "127.0.0.1", "--port", address.rpartition(":")[2]]
    with (place / "log").open("w") as log, subprocess.Popen(command, stdout=log, stderr=log) as started:
        try:
            until = time.monotonic() + 120
            while not _answers(address):
                assert started.poll() is None and time.monotonic() < until, (place / "log").read_text()
                time.sleep(0.2)
            yield address
        finally:
            started.terminate()


def _answers(address: str) -> bool:
    try:
        with urlopen(f"{address}/health", timeout=1) as reply:
            return bool(reply.status == 200)
    except (URLError, OSError):
        return False


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory, server: str) -> Path:
    """The folder of the job: three runs, the good one logged and promoted to champion."""
    place = tmp_path_factory.mktemp("job")
    for name, values in (("good", GOOD), ("bad", BAD), ("unsure", UNSURE)):
        write_run_folder(place / name, values, changed={})
    command = [sys.executable, "-m", "pipelines.cli", "log", "good", "--json"]
    logged = subprocess.run(command, cwd=place, env=_environment(server), capture_output=True, text=True)
    (line,) = json.loads(logged.stdout)["lines"]
    variables = "MLFLOW_TRACKING_URI, MLFLOW_EXPERIMENT_NAME, MLFLOW_RUN_NAME"
    where = f"in experiment 'ci' at {server}, as {variables} say"
    said = re.fullmatch(
        rf"good: MLflow run (\w+) {where}: {server}/#/experiments/\d+/runs/\1\?workflowType=machine_learning", line
    )
    assert said is not None, line
    promote(server, "unified", register(server, "unified", said[1]))
    return place


def _environment(server: str) -> dict[str, str]:
    told = {"MLFLOW_TRACKING_URI": server, "MLFLOW_EXPERIMENT_NAME": "ci", "MLFLOW_RUN_NAME": "pull request 7"}
    return {**os.environ, **told, "PYTHON": sys.executable, "PYTHONPATH": str(ROOT), "NO_PROXY": "127.0.0.1"}


def _ended(here: Path, server: str, *arguments: str) -> Ended:
    done = subprocess.run(
        ["bash", "-c", JOB, "job", *arguments], cwd=here, env=_environment(server), capture_output=True, text=True
    )
    return Ended(done.returncode, json.loads(done.stdout), done.stderr)


@SLOW
@pytest.mark.parametrize(
    ("candidate", "code", "gate"), [("good", 0, "fine"), ("bad", 1, "regressed"), ("unsure", 3, "cannot tell")]
)
def test_a_job_ends_by_what_the_gate_says(here: Path, server: str, candidate: str, code: int, gate: str) -> None:
    from mlflow.tracking import MlflowClient

    ended = _ended(here, server, "champion", candidate, f"into=gate-{candidate}")
    assert ended.code == code, ended.stderr
    told = ended.told
    assert (told["gate"], told["exit_code"], told["folder"]) == (gate, code, f"gate-{candidate}")
    assert all(isinstance(one, float | int) for one in told["metrics"].values())
    assert (told["params"]["alpha"], told["params"]["resamples"]) == (0.05, 1000)
    client = MlflowClient(server)
    experiment = client.get_experiment_by_name("ci")
    assert experiment.tags["mlflow.experimentKind"] == "custom_model_development"
    (run,) = client.search_runs([experiment.experiment_id], f"tags.gate = '{gate}'")
    assert (run.info.run_name, run.data.tags["mlflow.source.name"]) == ("pull request 7", "lcm regress")
    assert [one.dataset.name for one in run.inputs.dataset_inputs] == ["toy"]
    seconds = told["timing"]["seconds"]
    assert (run.info.start_time, run.info.end_time) == tuple(
        int(1000 * seconds[f"{name}_unix_s"]) for name in ("began", "ended")
    )


@SLOW
@pytest.mark.parametrize(
    ("where", "arguments", "why"),
    [
        pytest.param(None, ("champion", "good", "regress.alhpa=0.1"), "alhpa", id="a typo"),
        pytest.param(None, ("chapmion", "good"), "unified@chapmion: ", id="no such baseline"),
        pytest.param(
            NOWHERE,
            ("champion", "good"),
            "unified@champion: it does not answer: ",
            id="server away",
        ),
    ],
)
def test_a_job_that_cannot_compare_says_why_and_ends_with_2(
    here: Path, server: str, where: str | None, arguments: tuple[str, ...], why: str
) -> None:
    ended = _ended(here, where or server, *arguments, "into=nothing")
    assert (ended.code, ended.told["exit_code"]) == (2, 2)
    assert why in ended.told["error"]
    assert ended.stderr == f"lcm: {ended.told['error']}\n"
    assert not (here / "nothing").exists()


@pytest.mark.parametrize("workflow", WORKFLOWS)
@pytest.mark.parametrize(
    ("code", "inconclusive", "passes"),
    [("0", "fail", True), ("1", "pass", False), ("2", "pass", False), ("3", "fail", False), ("3", "pass", True),
     ("70", "pass", False), ("", "pass", False)],
)  # fmt: skip
def test_a_workflow_lets_what_is_inconclusive_pass_by_choice_and_nothing_else(
    workflow: str, code: str, inconclusive: str, passes: bool
) -> None:
    job = yaml.safe_load((ROOT / "docs" / "examples" / f"{workflow}.yml").read_text())["jobs"][workflow]
    assert job["env"]["INCONCLUSIVE"] == "fail"
    (verdict,) = [step["run"] for step in job["steps"] if step.get("name") == "Verdict"]
    told = {**os.environ, "CODE": code, "INCONCLUSIVE": inconclusive}
    assert (
        subprocess.run(["bash", "-e", "-c", verdict], env=told, stdout=subprocess.DEVNULL).returncode == 0
    ) is passes
