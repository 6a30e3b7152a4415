"""`executor` changes where work is done and no number: evaluate and compact, by processes and by a Ray of two."""

import json
from pathlib import Path

import polars as pl
import pytest

from eval.batch.shard_work import ShardWork
from eval.batch.sharding import Shard
from eval.dataset.sample import bundled_directory
from eval.executor.executor import FailedItem
from eval.executor.none import NoExecutor
from lcm.store.store import Store
from pipelines.cli import BAD_INPUT
from tests.pipelines.conftest import QUICK, Finished, Lcm
from tests.support.ray_of_two import RAY_OF_TWO, ray_of_two  # noqa: F401 - fixture

APART = [
    pytest.param("local", marks=pytest.mark.full),
    pytest.param("ray", marks=RAY_OF_TWO),
]
SYSTEM = (
    *QUICK,
    "arms=controls",
    "compaction=lossless",
    "compaction.budget_tokens=1000",
    "measures.retention.budgets=[1000]",
)


@pytest.fixture
def executor(request: pytest.FixtureRequest) -> str:
    if request.param == "ray":
        request.getfixturevalue("ray_of_two")
    return str(request.param)


def frames(finished: Finished) -> dict[str, pl.DataFrame]:
    return {path.name: pl.read_parquet(path) for path in sorted(finished.folder.glob("*.parquet"))}


@pytest.mark.parametrize("executor", APART, indirect=True)
def test_workers_find_what_one_process_finds_bit_for_bit(lcm: Lcm, executor: str) -> None:
    here = lcm("evaluate", *SYSTEM, "cache=false", place="one")
    apart = lcm("evaluate", *SYSTEM, "cache=false", f"executor={executor}", place="apart")
    assert (here.code, apart.code) == (0, 0), apart.stderr
    assert len(frames(here)["compression.parquet"]["workspace_id"].unique()) == 4
    assert frames(here).keys() == frames(apart).keys()
    for name, frame in frames(here).items():
        assert frame.equals(frames(apart)[name], null_equal=True), name
    summaries = [{key: value for key, value in one.summary.items() if "timing" not in key} for one in (here, apart)]
    assert summaries[0] == summaries[1]


@pytest.mark.full
def test_background_compaction_in_workers_is_that_of_one_process(lcm: Lcm) -> None:
    asynchronous = (
        *("scheduling=asynchronous", "scheduling.budget_tokens=1000", "scheduling.replayed.seconds_a_turn=2"),
        *("replay=per_turn", "compaction.leaf_chunk_tokens=300", "compaction.min_leaf_tokens=0", "cache=false"),
        *("compaction.fresh_tail_count=4", "arms=none"),
    )
    here = lcm("evaluate", *SYSTEM, *asynchronous, place="one")
    apart = lcm("evaluate", *SYSTEM, *asynchronous, "executor=local", place="apart")
    assert (here.code, apart.code) == (0, 0), apart.stderr
    assert frames(here).keys() == frames(apart).keys()
    for name, frame in frames(here).items():
        assert frame.equals(frames(apart)[name], null_equal=True), name
    turns = frames(apart)["waiting.parquet"]
    waited = dict(turns.group_by("arm").agg(pl.col("waited_seconds").sum()).iter_rows())
    assert 0 < waited["asynchronous"] < waited["synchronous"]
    assert turns.filter(pl.col("arm") == "asynchronous", "is_compacted").height > 1


@pytest.mark.parametrize("executor", ["local", "ray"])
def test_queries_are_not_timed_while_workers_share_the_machine(lcm: Lcm, executor: str) -> None:
    finished = lcm("evaluate", *QUICK, "measures.latency.queries=3", f"executor={executor}")
    assert finished.code == BAD_INPUT
    assert "measures.latency.queries=3: queries cannot be timed while workers share the machine" in finished.stderr
    assert not finished.summaries


def stored(finished: Finished) -> dict[str, object]:
    """Conversation -> its messages, summaries and context, of all stores."""
    found: dict[str, object] = {}
    for path in sorted((finished.place / "out").glob("shard-*.db")):
        with Store(path) as store:
            for name in store.conversations()["conversation_id"]:
                found[name] = (store.messages(name), store.summaries(name), store.context(name))
    return found


def compacted(lcm: Lcm, executor: str, place: str, *more: str) -> Finished:
    finer = ("compaction.leaf_chunk_tokens=500", "compaction.min_leaf_tokens=0", "compaction.fresh_tail_count=4")
    return lcm(
        *("compact", str(bundled_directory() / "transcripts"), "into=out", "shards=2", "tracking=none", *finer),
        *("embedder=hashing", f"executor={executor}", *more),
        place=place,
    )


@pytest.mark.parametrize("executor", [pytest.param("ray", marks=RAY_OF_TWO)], indirect=True)
def test_ray_writes_the_stores_that_one_process_writes_and_goes_on_with_them(lcm: Lcm, executor: str) -> None:
    here, apart = compacted(lcm, "none", "one"), compacted(lcm, executor, "apart")
    assert (here.code, apart.code) == (0, 0), apart.stderr
    assert stored(here) == stored(apart)
    assert len(stored(apart)) == 4
    assert any(summaries for _, summaries, _ in stored(apart).values())  # type: ignore[misc]
    timed = ("duration_ms", "seconds")
    report, other = (
        pl.read_parquet(one.place / "out" / "report.parquet").drop(*timed, strict=False).sort("conversation_id")
        for one in (here, apart)
    )
    assert report.equals(other, null_equal=True)
    before = {path: path.read_bytes() for path in (apart.place / "out").glob("shard-*.db")}
    again = compacted(lcm, "none", "apart")
    assert again.code == 0, again.stderr
    assert {path: path.read_bytes() for path in before} == before


def test_a_folder_that_a_worker_does_not_see_is_named(tmp_path: Path) -> None:
    work = ShardWork(tmp_path / "away", lambda: json, "at_end")  # type: ignore[arg-type, return-value]  # never built
    (failed,) = NoExecutor().map(work, [Shard(0, ())])
    assert isinstance(failed, FailedItem)
    assert failed.reason.startswith(f"{tmp_path / 'away'} is not there where shard-000 is worked on")
