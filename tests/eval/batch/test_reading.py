"""Sources of a batch as a worker reads them."""

from pathlib import Path

from eval.batch.sources import opened, shards_of
from lcm.transcript.folders import recorded_files
from tests.lcm.transcript.recordings import write
from tests.lcm.transcript.test_agent_database import header, said


def test_of_an_older_state_a_worker_reads_what_the_newest_does_not_hold(tmp_path: Path) -> None:
    folder = tmp_path / "sessions"
    newest = write(folder / "s.jsonl", header("s"), said("b", None))
    write(folder / "s.jsonl.reset.2026-09-02T10-00-00.000Z", header("s"), said("a", None), said("b", "a"))
    (shard,) = shards_of(recorded_files([folder]), tmp_path / "into", 1, {}, 1)
    read = {piece.conversation_id: len(piece.messages) for one in shard.sources for piece in opened(one, "auto").take()}
    assert read == {"s": 1, "s~a": 1}
    digests = {one.digest for one in shard.sources}
    write(newest, header("s"), said("b", None), said("c", "b"))
    (again,) = shards_of(recorded_files([folder]), tmp_path / "into", 1, {}, 1)
    assert digests.isdisjoint(one.digest for one in again.sources)
