"""`executor` changes where work is done and no number: evaluate and compact, by processes and by a Ray of two."""

import json
from pathlib import Path

import polars as pl
import pytest

from eval.batch.shard_work import ShardWork
from eval.batch.sources import Shard
from eval.executor import FailedItem, NoExecutor
from lcm.store.store import Store
from tests.pipelines.conftest import Finished, Lcm
from tests.support.looked_at import COMPACTED, CONTROLLED


def frames(finished: Finished) -> dict[str, pl.DataFrame]:
    return {path.name: pl.read_parquet(path) for path in sorted(finished.folder.glob("*.parquet"))}


def assert_equal_frames(here: Finished, apart: Finished) -> None:
    found = frames(apart)
    assert frames(here).keys() == found.keys()
    for name, frame in frames(here).items():
        assert frame.equals(found[name], null_equal=True), name


@pytest.mark.slow
def test_workers_find_what_one_process_finds_bit_for_bit(lcm: Lcm, evaluated: Finished) -> None:
    untimed = (word for word in CONTROLLED if not word.startswith("measures.latency"))
    apart = lcm("evaluate", *untimed, "measures.latency.queries=0", "report=false", "executor=local")
    assert apart.code == 0, apart.stderr
    assert_equal_frames(evaluated, apart)
    for part in ("measures", "arms", "categories", "counts", "interval", "definitions"):
        assert apart.summary[part] == evaluated.summary[part]


def stored(finished: Finished) -> dict[str, object]:
    """Conversation -> its messages, summaries and context, of all stores."""
    found: dict[str, object] = {}
    for path in sorted((finished.place / "out").glob("shard-*.db")):
        with Store(path) as store:
            for name in store.conversations()["conversation_id"]:
                found[name] = (store.messages(name), store.summaries(name), store.context(name))
    return found


@pytest.mark.slow
@pytest.mark.usefixtures("ray_of_two")
@pytest.mark.xdist_group("ray")
def test_ray_writes_the_stores_that_other_workers_write_and_these_go_on_with_them(
    lcm: Lcm, compacted: Finished
) -> None:
    apart = lcm(*COMPACTED, "executor=ray")
    assert apart.code == 0, apart.stderr
    assert stored(apart) == stored(compacted)
    assert len(stored(apart)) == 4
    assert any(summaries for _, summaries, _ in stored(apart).values())  # type: ignore[misc]
    report, other = (
        pl.read_parquet(one.place / "out" / "report.parquet")
        .drop("duration_ms", "seconds", strict=False)
        .sort("conversation_id")
        for one in (compacted, apart)
    )
    assert report.equals(other, null_equal=True)
    before = {path: path.read_bytes() for path in (apart.place / "out").glob("shard-*.db")}
    again = lcm(*COMPACTED, "executor=none")
    assert again.code == 0, again.stderr
    assert {path: path.read_bytes() for path in before} == before


def test_a_folder_that_a_worker_does_not_see_is_named(tmp_path: Path) -> None:
    work = ShardWork(tmp_path / "away", lambda: json, "at_end")  # type: ignore[arg-type, return-value]  # never built
    (failed,) = NoExecutor().map(work, [Shard(0, ())])
    assert isinstance(failed, FailedItem)
    assert failed.reason.startswith(f"{tmp_path / 'away'} is not there where shard-000 is worked on")
