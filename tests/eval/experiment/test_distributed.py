"""Workspaces that are evaluated in other processes: dealt whole, put together in order, a failure named."""

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from eval.dataset.dataset import Dataset
from eval.dataset.sample import Sample
from eval.executor import NoExecutor
from eval.experiment.experiment import evaluate_distributed
from lcm.errors import LcmError

SAMPLE = Sample().load()


@dataclass(frozen=True)
class Echo:
    """Tells of a workspace which queries its part of the dataset asks."""

    dataset: Dataset
    refused: str | None = None

    def evaluate(self, workspace: str, progress: Callable[[int], None]) -> SimpleNamespace:
        if workspace == self.refused:
            raise LcmError("the goat\nhas eaten it")
        return SimpleNamespace(workspace_id=workspace, queries=self.dataset.queries)


def test_every_workspace_is_evaluated_once_with_its_own_part_and_given_in_order() -> None:
    counts: list[int] = []
    found = evaluate_distributed(Echo(SAMPLE), NoExecutor(), counts.append)
    assert [one.workspace_id for one in found] == SAMPLE.workspaces
    assert sum(counts) == len(SAMPLE.queries)
    parts = {one.queries for one in found}
    assert len(parts) == 2
    assert sorted(query.query_id for part in parts for query in part) == sorted(one.query_id for one in SAMPLE.queries)


@pytest.mark.parametrize("refused", SAMPLE.workspaces)
def test_the_workspace_that_failed_is_named(refused: str) -> None:
    with pytest.raises(LcmError, match=f"^workspace '{refused}' came to no end: the goat has eaten it$"):
        evaluate_distributed(Echo(SAMPLE, refused), NoExecutor(), lambda queries: None)
