"""Workspaces that are evaluated in other processes: dealt whole, put together in order, a failure named."""

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from eval.dataset.dataset import Dataset
from eval.dataset.sample import Sample
from eval.executor.none import NoExecutor
from eval.experiment.distributed import evaluate_distributed
from lcm.errors import LcmError

SAMPLE = Sample().load()


@dataclass(frozen=True)
class Echo:
    """Finds in a workspace how many of its queries the part of the dataset judges; notes the parts."""

    dataset: Dataset
    refused: str | None = None
    parts: list[Dataset] = field(default_factory=list)

    def evaluate(self, workspace: str, progress: Callable[[int], None]) -> SimpleNamespace:
        if workspace == self.refused:
            raise LcmError("the goat\nhas eaten it")
        if not any(part is self.dataset for part in self.parts):
            self.parts.append(self.dataset)
        asked = {query.query_id for query in self.dataset.queries if query.workspace_id == workspace}
        return SimpleNamespace(workspace_id=workspace, judged=len(asked & set(self.dataset.qrels["query_id"])))


def test_every_workspace_is_evaluated_once_with_its_own_part_and_given_in_order() -> None:
    counts: list[int] = []
    echo = Echo(SAMPLE)
    found = evaluate_distributed(echo, NoExecutor(), counts.append)
    assert [one.workspace_id for one in found] == SAMPLE.workspaces
    assert sum(counts) == len(SAMPLE.queries)
    assert len(echo.parts) == 2
    dealt = [workspace for part in echo.parts for workspace in part.workspaces]
    assert sorted(dealt) == sorted(SAMPLE.workspaces)
    assert {part.digest for part in echo.parts} == {SAMPLE.digest}
    assert sum(one.judged for one in found) == SAMPLE.qrels["query_id"].n_unique()


@pytest.mark.parametrize("refused", SAMPLE.workspaces)
def test_the_workspace_that_failed_is_named(refused: str) -> None:
    with pytest.raises(LcmError, match=f"^workspace '{refused}' came to no end: the goat has eaten it$"):
        evaluate_distributed(Echo(SAMPLE, refused), NoExecutor(), lambda queries: None)
