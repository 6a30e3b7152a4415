"""A summarizer that fails at any request: the batch goes on to where it would have come without that."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from eval.batch.replay import ReplayParts
from eval.batch.shard_work import ShardProgress, SourceReport
from lcm.errors import ModelError
from lcm.protocols.compaction import Summarizer
from lcm.records.summary import SummaryRequest, SummaryResult
from tests.faults.batch import outcome, parts, work, write_files


@dataclass
class Unsteady:
    """Fails once, at the n-th request."""

    summarizer: Summarizer
    fails_at: int
    asked: int = 0

    def summarize(self, requests: Sequence[SummaryRequest], *, incidents: Counter[str]) -> list[SummaryResult]:
        return [self._result(request) for request in requests]

    def _result(self, request: SummaryRequest) -> SummaryResult:
        self.asked += 1
        if self.asked == self.fails_at:
            return SummaryResult("", 0.0, "unsteady", failure=ModelError("away for a moment"))
        return self.summarizer.summarize([request], incidents=Counter())[0]


def unsteady(fails_at: int) -> tuple[ReplayParts, Unsteady]:
    steady = parts()
    summarizer = Unsteady(steady.compaction.summarizer, fails_at)
    return steady._replace(compaction=replace(steady.compaction, summarizer=summarizer)), summarizer


def failures(said: Sequence[ShardProgress | SourceReport]) -> list[str]:
    return [failure for one in said if isinstance(one, SourceReport) for failure in one.failures]


def test_compacted_turn_by_turn_it_comes_to_the_same_whichever_request_failed(tmp_path: Path) -> None:
    shard = write_files(tmp_path)
    whole = tmp_path / "whole"
    whole.mkdir()
    made, counting = unsteady(0)
    assert not failures(work(whole, shard, "per_turn", lambda: made))
    undisturbed = outcome(whole, shard)
    assert all(undisturbed["done"])
    assert counting.asked > 10
    for fails_at in range(1, counting.asked + 1, 3):
        into = tmp_path / str(fails_at)
        into.mkdir()
        made, _ = unsteady(fails_at)
        assert failures(work(into, shard, "per_turn", lambda made=made: made)) == ["away for a moment"]
        halted = outcome(into, shard)
        assert sorted(halted["done"]) == [False, True]
        assert "away for a moment" in {cell for row in halted["report"] for cell in row if isinstance(cell, str)}
        assert not failures(work(into, shard, "per_turn"))
        assert outcome(into, shard) == undisturbed
