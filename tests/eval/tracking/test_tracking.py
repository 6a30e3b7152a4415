"""What MLflow holds of a run, and what happens where it cannot be reached."""

import getpass
import json
import shutil
import socket
import socketserver
import sqlite3
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest
from sqlalchemy.exc import OperationalError

from eval.measures.retrieval import DEFAULT_NAMES
from eval.run import read_summary, times_ms, write_summary
from eval.tracking import mlflow_log
from eval.tracking.entry import metric_name, note
from eval.tracking.mlflow_log import Mlflow
from eval.tracking.place import alone
from eval.tracking.tracking import TrackingError
from lcm.faults import is_of_machine
from pipelines import cli
from tests.pipelines.conftest import QUICK, Lcm, lcm  # noqa: F401 - a fixture

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("mlflow")]

NAMES = [prefix + name for prefix, name in product(("", "session."), DEFAULT_NAMES)]
ASKED = (
    *("annotation=rules", "admission=balanced", "reranker=remote"),  # some rejected, no key
    *("arms=controls", "measures.latency.queries=2"),
)
PATIENCE_S = 15
NOWHERE = "http://127.0.0.1:9"


@dataclass(frozen=True)
class Logged:
    """A run folder, logged once to a database of its own."""

    folder: Path
    tracking: Mlflow
    said: str

    def runs(self) -> list[Any]:
        from mlflow.tracking import MlflowClient

        client = MlflowClient(self.tracking.address)
        experiment = client.get_experiment_by_name(self.tracking.experiment_name)
        return list(client.search_runs([experiment.experiment_id]))


@pytest.fixture(scope="module")
def logged(tmp_path_factory: pytest.TempPathFactory) -> Logged:
    place = tmp_path_factory.mktemp("tracking")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        patch.setattr("sys.argv", ["lcm"])
        patch.setenv("LCM_CACHE_DIR", str(place / "cache"))
        patch.delenv("JINA_API_KEY", raising=False)
        assert cli.run(["evaluate", *QUICK, *ASKED, "hydra.run.dir=run"]) == 0
    tracking = Mlflow(uri=f"sqlite:///{place}/mlflow.db", experiment="tests")
    return Logged(place / "run", tracking, tracking.log(place / "run"))


@pytest.fixture
def copied(logged: Logged, tmp_path: Path) -> Path:
    """The run folder, not logged yet."""
    folder = tmp_path / "a run"
    shutil.copytree(logged.folder, folder)
    (folder / "mlflow.json").unlink()
    return folder


def test_parameters_are_what_differs_and_metrics_the_headlines(logged: Logged) -> None:
    (run,) = logged.runs()
    asked = [one for one in QUICK if not one.startswith("tracking")]
    told = dict(one.partition("=")[::2] for one in [*asked, *ASKED])
    of_the_preset = {"assembly", "ranking", "fusion", "extraction"}
    params, metrics, summary = run.data.params, run.data.metrics, read_summary(logged.folder)
    assert set(params) <= {key.replace("@", "_at_") for key in told} | of_the_preset
    chosen = {"annotation": "rules", "admission": "balanced", "reranker": "remote", "measures.latency.queries": "2"}
    assert chosen.items() <= params.items()
    assert 20 <= len(metrics) <= 40
    for measure in ("recall@5", "recall@10", "nDCG@10", "MRR", "recall@2000t", "tokens@10", "retained@4000"):
        assert metrics[metric_name(measure)] == summary["measures"][measure]["value"]
    assert not any(name.endswith((".low", ".high")) or name.startswith(("arm/", "category/")) for name in metrics)
    assert metrics["count/unjudged_queries"] == 11
    decided = {action: metrics[f"decision/{action}"] for action in ("create", "reject")}
    counted = pl.read_parquet(logged.folder / "decisions.parquet")["action"].value_counts()
    assert decided == summary["decisions"] == dict(counted.iter_rows())
    assert metrics["incidents"] == sum(summary["incidents"].values()) > 0
    assert metrics["latency/total_p95_ms"] == summary["timing"]["latency_ms"]["total"]["p95_ms"]
    assert metrics["seconds/total"] == summary["timing"]["seconds"]["total"]


def test_every_mean_stands_in_the_tables_that_the_viewer_shows(logged: Logged, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", logged.tracking.uri)  # the client looks for tables there, whichever it is
    from mlflow.tracking import MlflowClient

    (run,) = logged.runs()
    summary = read_summary(logged.folder)
    shown = [one["path"] for one in json.loads(run.data.tags["mlflow.loggedArtifacts"])]
    assert shown == ["tables/arms.json", "tables/categories.json", "tables/intervals.json"]
    client = MlflowClient(logged.tracking.uri)
    found = client.load_table(run.info.experiment_id, "tables/intervals.json", [run.info.run_id])
    told = {tuple(row[:3]): tuple(row[3:]) for row in found.itertuples(index=False)}
    places = {("system", "all"): summary["measures"]}
    places |= {(arm, "all"): measures for arm, measures in summary["arms"].items()}
    places |= {("system", category): measures for category, measures in summary["categories"].items()}
    assert len(places) == 1 + 6 + 5
    for place, measures in places.items():
        for measure, entry in measures.items():
            expected = [entry[name] for name in ("value", "low", "high", "n")]
            found_here = [None if pd.isna(one) else one for one in told[(*place, measure)]]
            assert found_here == pytest.approx(expected, abs=1e-12)  # what pandas reads is no bit for bit
    arms = client.load_table(run.info.experiment_id, "tables/arms.json", [run.info.run_id])
    assert list(arms["arm"]) == ["system", *summary["arms"]]


def test_name_description_dataset_and_tags_say_what_was_run_and_the_whole_folder_is_kept(logged: Logged) -> None:
    (run,) = logged.runs()
    summary, tags = read_summary(logged.folder), run.data.tags
    assert run.info.run_name.startswith("hybrid · sample · ")
    assert "admission=balanced" in run.info.run_name
    value = summary["measures"]["recall@10"]["value"]
    for words in (
        f"| system | {value:.3f} [",
        "| arm | recall@10 | nDCG@10 |",
        "its numbers prove nothing",
        "lcm evalu",
    ):
        assert words in tags["mlflow.note.content"]
    (used,) = run.inputs.dataset_inputs
    assert (used.dataset.name, len(used.dataset.digest)) == ("sample", 36)  # as long as MLflow allows
    assert summary["dataset"]["digest"].startswith(used.dataset.digest)
    assert json.loads(used.dataset.source) == summary["dataset"]
    assert (run.info.status, tags["dataset_digest"]) == ("FINISHED", summary["dataset"]["digest"])
    assert (tags["config_hash"], tags["commit"]) == (summary["config_hash"], summary["commit"] or "unknown")
    seconds = summary["timing"]["seconds"]
    assert (run.info.start_time, run.info.end_time) == times_ms(summary)
    assert run.info.end_time - run.info.start_time == pytest.approx(1000 * seconds["total"], abs=500)
    assert (tags["mlflow.user"], tags["mlflow.source.name"]) == (getpass.getuser(), "lcm evaluate")
    assert (run.info.user_id, tags.get("mlflow.source.git.commit")) == (getpass.getuser(), plain_commit(summary))
    kept = Path(run.info.artifact_uri.removeprefix("file://"))
    assert kept.is_relative_to(logged.folder.parent)  # beside the database, wherever the command was given
    for name in ("config.yaml", "per_query.parquet", "run.parquet", "summary.json"):
        assert (kept / name).read_bytes() == (logged.folder / name).read_bytes()


def plain_commit(summary: Any) -> str | None:
    return summary["commit"] and summary["commit"].removesuffix("+")


def test_words_of_data_are_no_markdown_of_a_description() -> None:
    dataset = {"name": "![a](http://evil.invalid/a.png)", "protocol": "a|b <script>", "digest": "0"}
    summary = {"dataset": dataset, "counts": {}, "measures": {}, "overrides": ["a=`b`"], "changed": {}}
    told = note(summary, Path("nowhere"), [])
    assert "![" not in told.replace("!\\[", "")
    assert "<script>" not in told
    assert "a\\|b" in told


def test_a_folder_is_known_by_where_it_was_logged_and_by_what_it_held(logged: Logged, copied: Path) -> None:
    """Another experiment has not seen it; a new run in the same folder is a new run."""
    assert logged.tracking.log(logged.folder) == logged.said
    assert len(logged.runs()) == 1
    here, there = Mlflow(logged.tracking.uri, "one"), Mlflow(logged.tracking.uri, "another")
    first, second = here.log(copied), there.log(copied)
    assert (here.log(copied), there.log(copied)) == (first, second)
    write_summary(copied, read_summary(copied) | {"notes": ["a later run"]})
    assert len({first, second, here.log(copied)}) == 3


@pytest.mark.parametrize("is_below", [False, True])
def test_a_logging_that_was_killed_is_gone_on_with(
    logged: Logged, copied: Path, monkeypatch: pytest.MonkeyPatch, is_below: bool
) -> None:
    """Wherever that was: the run is there, or all of it but the receipt of its folder."""
    tracking = Mlflow(logged.tracking.uri, f"killed {is_below}")
    parent = copied.parent if is_below else None

    def kill(*_: object) -> None:
        raise KeyboardInterrupt

    for place, name in ((Mlflow, "_keep_receipt"), (mlflow_log, "_keep_files"), (Mlflow, "_keep_receipt")):
        with monkeypatch.context() as patch:
            patch.setattr(place, name, kill)
            with pytest.raises(KeyboardInterrupt):
                tracking.log(copied, parent)
    tracking.log(copied, parent)
    runs = Logged(copied, tracking, "").runs()
    assert [run.info.status for run in runs if "kind" in run.data.tags] == ["FINISHED"]
    assert len(runs) == 1 + is_below


def test_an_experiment_has_a_kind_though_it_was_made_without(logged: Logged, copied: Path) -> None:
    from mlflow.tracking import MlflowClient

    client = MlflowClient(logged.tracking.address)
    client.create_experiment("older")
    Mlflow(logged.tracking.uri, "older").log(copied)
    for name in ("tests", "older"):
        assert client.get_experiment_by_name(name).tags["mlflow.experimentKind"] == "custom_model_development"


def test_the_name_of_the_environment_is_that_of_the_run(
    logged: Logged, copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("TRACKING_URI", logged.tracking.address), ("EXPERIMENT_NAME", "ci"), ("RUN_NAME", "pr-7")):
        monkeypatch.setenv(f"MLFLOW_{name}", value)
    said = Mlflow().log(copied)
    (run,) = Logged(copied, Mlflow(), "").runs()
    assert run.info.run_name == "pr-7"
    assert said.endswith(", as MLFLOW_TRACKING_URI, MLFLOW_EXPERIMENT_NAME, MLFLOW_RUN_NAME say")


def test_a_server_that_never_answers_is_waited_for_once(copied: Path) -> None:
    asked = 0

    class Mute(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            nonlocal asked
            asked += 1
            is_over.wait(PATIENCE_S)

    is_over = threading.Event()
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Mute) as mute:
        threading.Thread(target=mute.serve_forever, daemon=True).start()
        with pytest.raises(TrackingError, match="log it later"):
            Mlflow(uri=f"http://127.0.0.1:{mute.server_address[1]}", timeout_s=1).log(copied)
        is_over.set()
        mute.shutdown()
    assert asked == 1


@pytest.mark.parametrize("behaviour", ["is not there", "answers 500", "never answers"])
def test_a_server_that_fails_is_given_up_soon(copied: Path, behaviour: str, servers: dict[str, str]) -> None:
    """Told in time with the way to log it later; the folder is left as it was."""
    uri = servers[behaviour]
    before = {path: path.read_bytes() for path in copied.iterdir()}
    started = time.monotonic()
    with pytest.raises(TrackingError, match=f"tracking.uri={uri}: .* log it later with: lcm log '{copied}'") as caught:
        Mlflow(uri=uri, timeout_s=1).log(copied)
    assert time.monotonic() - started < PATIENCE_S
    assert "\n" not in str(caught.value)
    assert {path: path.read_bytes() for path in copied.iterdir()} == before


def test_an_export_waits_for_a_server_as_long_as_it_is_told(
    lcm: Lcm,  # noqa: F811 - the fixture
    servers: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("MLFLOW_HTTP_REQUEST_TIMEOUT", raising=False)
    started = time.monotonic()
    uri = servers["never answers"]
    done = lcm("export", "unified@champion", "to=preset", f"tracking.uri={uri}", "tracking.timeout_s=1")
    assert time.monotonic() - started < PATIENCE_S
    assert (done.code, done.stderr.count("\n")) == (2, 1)
    assert "unified@champion: it does not answer: " in done.stderr


@pytest.fixture
def servers() -> Iterator[dict[str, str]]:
    """URIs of a server that answers everything with 500, and of one that takes a connection and says nothing."""

    class Broken(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(500)

        do_POST = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Broken) as broken, socket.create_server(("127.0.0.1", 0)) as mute:
        threading.Thread(target=broken.serve_forever, daemon=True).start()
        ports = {"answers 500": broken.server_port, "never answers": mute.getsockname()[1]}
        yield {"is not there": NOWHERE} | {name: f"http://127.0.0.1:{port}" for name, port in ports.items()}
        broken.shutdown()


@pytest.mark.slow
def test_a_run_outlives_its_server_and_is_logged_later(
    logged: Logged,
    lcm: Lcm,  # noqa: F811 - the fixture
) -> None:
    quick = [override for override in QUICK if not override.startswith("tracking")]
    finished = lcm("evaluate", *quick, f"tracking.uri={NOWHERE}", "tracking.timeout_s=1")
    assert finished.code == 0
    assert finished.stderr.count("\n") == 1
    assert finished.stderr.startswith(f"lcm: warning: tracking.uri={NOWHERE}: ")
    assert finished.stderr.endswith(f"lcm log {finished.folder} tracking.uri=http://127.0.0.1:9\n")

    later = [f"tracking.uri={logged.tracking.uri}", "tracking.experiment=later"]
    said = lcm("log", str(finished.folder), *later)
    assert said.code == 0
    assert said.stdout.startswith(f"{finished.folder}: MLflow run ")
    assert lcm("log", *later).stdout.endswith(said.stdout.partition(": ")[2])  # every run under runs/, none twice
    assert len(Logged(finished.folder, Mlflow(logged.tracking.uri, "later"), "").runs()) == 1


def test_tracking_none_logs_nowhere(logged: Logged, lcm: Lcm) -> None:  # noqa: F811 - the fixture
    assert lcm("log", str(logged.folder), "tracking=none").stdout == f"{logged.folder}: tracking=none logs nowhere\n"


def test_a_metric_leads_back_to_its_measure() -> None:
    metrics = [metric_name(name) for name in NAMES]
    assert [name.replace("_at_", "@") for name in metrics] == NAMES
    assert not [name for name in metrics if "@" in name], "which MLflow cannot write"


def test_settings_out_of_range_are_refused() -> None:
    for settings, message in (
        ({"uri": ""}, "uri must not be empty"),
        ({"experiment": ""}, "experiment must not be empty"),
        ({"timeout_s": 0}, "timeout_s must be >= 1, got 0"),
    ):
        with pytest.raises(ValueError, match=message):
            Mlflow(**settings)


def test_where_nothing_is_logged_no_database_is_left(copied: Path, tmp_path: Path) -> None:
    """As where a command looks at what it was asked for, and refuses."""
    place = tmp_path / "place"
    place.mkdir()
    tracking = Mlflow(uri=f"sqlite:///{place}/mlflow.db")
    with tracking.logger():
        pass
    assert not list(place.iterdir())
    with tracking.logger() as log:
        log(copied)
    assert [run.data.tags["kind"] for run in Logged(copied, tracking, "").runs()] == ["run"]


def test_an_emptied_database_is_no_new_one(tmp_path: Path) -> None:
    (tmp_path / "mlruns").mkdir()
    database = tmp_path / "mlflow.db"
    database.touch()
    told = rf"^{database} is empty, but .* restore a copy, or remove it"
    with pytest.raises(TrackingError, match=told), alone(database):
        pass


def test_a_full_disk_is_told_with_the_database_and_the_remedy(
    copied: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> str:
        full = sqlite3.OperationalError("database or disk is full")
        full.sqlite_errorcode = sqlite3.SQLITE_FULL
        raise OperationalError("CREATE TABLE experiments", None, full)

    monkeypatch.setattr(Mlflow, "_log", refuse)
    database = tmp_path / "full.db"
    told = rf"\({database}: the disk is full \(database or disk is full\); make room and .*\); it is whole in"
    with pytest.raises(TrackingError, match=told) as caught:
        Mlflow(uri=f"sqlite:///{database}").log(copied)
    assert "CREATE TABLE" not in str(caught.value)
    assert is_of_machine(caught.value)
