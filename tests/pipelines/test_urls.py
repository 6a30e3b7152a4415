"""Commands over URLs: read there, made here, sent whole, and gone on with from any machine."""

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import fsspec
import polars as pl
import pytest

from eval.batch.shard_work import ShardWork
from eval.batch.sources import Shard
from eval.dataset.sample import bundled_directory
from lcm.errors import LcmError
from pipelines import compact
from pipelines.cli import BAD_INPUT
from pipelines.steps.urls import mirrored
from tests.pipelines.conftest import Finished, Lcm

SAMPLE = bundled_directory() / "transcripts"
COMPACTION = ("compaction.fresh_tail_count=16", "embedder=hashing", "executor=none", "tracking=none")


@pytest.fixture
def memory() -> Iterator[Any]:
    """A storage within this process that holds the bundled sessions."""
    files = fsspec.filesystem("memory")
    files.put(f"{SAMPLE}/", "/bucket/sessions/", recursive=True)
    yield files
    files.rm("/bucket", recursive=True)


def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """From now on this is another machine: it has nothing of what was fetched or kept."""
    monkeypatch.setenv("LCM_CACHE_DIR", str(tmp_path / "another machine"))


def test_sessions_are_compacted_from_a_url_into_a_url_and_another_machine_goes_on(
    lcm: Lcm, memory: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked = ("compact", "memory://bucket/sessions", "into=memory://bucket/stores", *COMPACTION)
    first = lcm(*asked, "shards=2")
    assert (first.code, list(first.place.iterdir())) == (0, [])
    assert "Sent: 10 files to memory://bucket/stores" in first.stdout
    with memory.open("/bucket/stores/report.parquet") as file:
        assert pl.read_parquet(file)["summaries_by_depth"].list.sum().sum() > 0
    names = json.loads(memory.cat_file("/bucket/stores/plan.json"))["files"]
    assert all(name.startswith("memory://bucket/sessions/") for name in names)
    elsewhere(monkeypatch, tmp_path)
    again = lcm(*asked)
    assert (again.code, "Nothing is left to do" in again.stdout) == (0, True)
    found = lcm("grep", "kettle", "store=memory://bucket/stores/shard-000.db", "limit=1")
    assert found.code == 0
    memory.pipe_file("/bucket/sessions/new.jsonl", b'{"role": "user", "content": "the kettle is blue"}\n')
    grown = lcm(*asked)
    assert (grown.code, "│ new " in grown.stdout) == (0, True)


@dataclass(frozen=True)
class Away:
    """The work on shards on another machine, which has neither the folder of the stores nor the transcripts."""

    work: ShardWork
    cache: Path

    def earlier_reports(self, shard: Shard) -> None:
        """Nothing is there yet."""

    def __call__(self, shard: Shard) -> list[Any]:
        nowhere = tuple(replace(source, path=Path("/nowhere") / source.path.name) for source in shard.sources)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("LCM_CACHE_DIR", str(self.cache))
            return list(replace(self.work, into=Path("/nowhere"))(replace(shard, sources=nowhere)))


def test_a_shard_is_worked_on_where_nothing_of_it_lies(
    lcm: Lcm, memory: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    here = lcm("compact", str(SAMPLE), "into=stores", "shards=2", *COMPACTION)
    monkeypatch.setattr(compact, "ShardWork", lambda *given: Away(ShardWork(*given), tmp_path / "worker"))
    there = lcm("compact", "memory://bucket/sessions", "into=memory://bucket/stores", "shards=2", *COMPACTION)
    assert there.code == 0, there.stderr
    columns = ["conversation_id", "messages", "tokens_before", "tokens_after", "summaries_by_depth"]
    with memory.open("/bucket/stores/report.parquet") as file:
        told = pl.read_parquet(file, columns=columns).sort("conversation_id")
    expected = pl.read_parquet(here.place / "stores" / "report.parquet", columns=columns).sort("conversation_id")
    assert told.equals(expected)
    assert sorted(path.name for path in (tmp_path / "worker").rglob("shard-*.db")) == ["shard-000.db", "shard-001.db"]


SURVIVAL = (
    *("measures=survival", "measures.survival.budgets=[2000]", "system=hybrid", "embedder=hashing"),
    *("arms=none", "tracking=none", "report=false", "means.resamples=20"),
)


def evaluated(lcm: Lcm, *more: str) -> Finished:
    return lcm("evaluate", "memory://bucket/sessions", *SURVIVAL, *more)


def test_a_run_lies_at_its_url_whole_and_is_told_by_the_url_of_its_sessions(lcm: Lcm, memory: Any) -> None:
    run = evaluated(lcm, "hydra.run.dir=memory://bucket/run")
    assert run.code == 0, run.stderr
    summary = json.loads(memory.cat_file("/bucket/run/summary.json"))
    beside = lcm("evaluate", str(SAMPLE), *SURVIVAL)
    assert summary["survival"] == beside.summary["survival"]
    assert b"memory://bucket/sessions" in memory.cat_file("/bucket/run/config.yaml")
    page = lcm("report", "memory://bucket/run")
    assert (page.code, b"<html" in memory.cat_file("/bucket/run/report.html")[:300]) == (0, True)
    again = evaluated(lcm, "hydra.run.dir=memory://bucket/run")
    assert (again.code, "holds a complete run" in again.stderr) == (BAD_INPUT, True)


def test_a_sweep_goes_on_from_what_lies_at_its_url(
    lcm: Lcm, memory: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked = ("-m", "compaction.fresh_tail_count=8,16", "compaction=lossless", "hydra.sweep.dir=memory://bucket/sweep")
    assert evaluated(lcm, *asked).code == 0
    points = [name for name in memory.find("/bucket/sweep") if name.endswith("/summary.json")]
    memory.rm(max(points, key=len))
    runs = [name for name in memory.find("/bucket/sweep") if name.endswith("/run.parquet")]
    made = {name: memory.info(name)["created"] for name in runs}
    elsewhere(monkeypatch, tmp_path)
    assert evaluated(lcm, *asked).code == 0
    assert sum(memory.info(name)["created"] != made[name] for name in made) == 1


def test_what_was_made_until_an_error_is_sent_and_the_error_told(
    memory: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("LCM_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("LCM_ALLOWED_HOSTS", "bucket")
    with (
        pytest.raises(LcmError, match="the model is gone"),
        mirrored(
            "compact", ["memory://bucket/sessions", "into=memory://bucket/stores", "a.b=s3://left/alone"]
        ) as placed,
    ):
        sessions, into, setting = placed
        assert (Path(sessions).name, setting) == ("sessions", "a.b=s3://left/alone")
        stores = Path(into.removeprefix("into="))
        stores.mkdir()
        (stores / "shard-000.db").write_text("as far as it went")
        raise LcmError("the model is gone")
    assert memory.cat_file("/bucket/stores/shard-000.db") == b"as far as it went"


SERVER = """
import logging, sys
from moto.server import ThreadedMotoServer
logging.getLogger("werkzeug").setLevel(logging.ERROR)
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print("http://{}:{}".format(*server.get_host_and_port()), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def s3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """An S3 server on loopback that holds the bundled sessions, in a process of its own: it loads 200 MB."""
    if importlib.util.find_spec("moto") is None:
        pytest.skip("moto, a stand-in for S3, is not installed")
    server = subprocess.Popen([sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    for name, value in (("ACCESS_KEY_ID", "any"), ("SECRET_ACCESS_KEY", "any"), ("DEFAULT_REGION", "us-east-1")):
        monkeypatch.setenv(f"AWS_{name}", value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.stdout.readline().strip())
    files = fsspec.filesystem("s3", skip_instance_cache=True)
    files.mkdir("bucket")
    files.put(f"{SAMPLE}/", "bucket/sessions/", recursive=True)
    yield files
    server.communicate()  # it ends where its input does


@pytest.mark.slow
def test_s3_holds_sessions_stores_and_runs(lcm: Lcm, s3: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked = ("compact", "s3://bucket/sessions", "into=s3://bucket/stores", "shards=2", *COMPACTION)
    assert lcm(*asked).code == 0
    elsewhere(monkeypatch, tmp_path)
    assert "Nothing is left to do" in lcm(*asked).stdout
    run = lcm("evaluate", "s3://bucket/sessions", *SURVIVAL, "hydra.run.dir=s3://bucket/run")
    assert (run.code, s3.exists("bucket/run/summary.json")) == (0, True), run.stderr
    assert (
        lcm("evaluate", "s3://bucket/nothing", "measures=survival").stderr
        == "lcm: s3://bucket/nothing: no such file or folder\n"
    )
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    refused = lcm("grep", "kettle", "store=s3://bucket/stores/shard-000.db")
    assert (refused.code, refused.stderr.count("\n")) == (BAD_INPUT, 1)
    assert "its storage refuses" in refused.stderr


@pytest.mark.usefixtures("ray_of_two")
@pytest.mark.full
@pytest.mark.xdist_group("ray")
def test_workers_of_ray_share_nothing_but_the_url(lcm: Lcm, s3: Any, tmp_path: Path) -> None:
    worker = tmp_path / "worker"
    # A worker that has neither this process's cache nor its folder: Ray gives it the server, the cache is its own.
    environment = {"LCM_CACHE_DIR": str(worker), **{k: v for k, v in os.environ.items() if k.startswith("AWS_")}}
    given = ",".join(f"{name}:'{value}'" for name, value in environment.items())
    asked = ("compact", "s3://bucket/sessions", "into=s3://bucket/stores", "shards=2", *COMPACTION)
    finished = lcm(*asked, "executor=ray", f"+executor.runtime_env.env_vars={{{given}}}")
    assert finished.code == 0, finished.stderr
    assert s3.exists("bucket/stores/shard-001.db")
    assert "Nothing is left to do" in lcm(*asked).stdout
