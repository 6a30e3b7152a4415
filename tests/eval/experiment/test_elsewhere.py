"""Workspaces that are asked apart: dealt whole, put together in order, a failure named."""

from dataclasses import dataclass

import polars as pl
import pytest

from eval.dataset.dataset import Dataset
from eval.dataset.sample import Sample
from eval.executor.none import NoExecutor
from eval.experiment.elsewhere import Apart
from eval.experiment.workspace import WorkspaceResult
from lcm.errors import LcmError

SAMPLE = Sample().load()
WORKSPACES = list(dict.fromkeys(transcript.workspace_id for transcript in SAMPLE.transcripts))
PARTS: list[Dataset] = []


@dataclass(frozen=True)
class Echo:
    """Answers with the workspace and how many of its queries are judged."""

    dataset: Dataset
    refused: str | None

    def answers(self, workspace: str, asked: object) -> WorkspaceResult:
        if workspace == self.refused:
            raise LcmError("the goat\nhas eaten it")
        judged = self.dataset.qrels.select("query_id").unique()
        mine = pl.DataFrame({"query_id": [q.query_id for q in self.dataset.queries if q.workspace_id == workspace]})
        none = pl.DataFrame()
        return WorkspaceResult(workspace, {}, none, mine.join(judged, on="query_id"), none, none, {}, (), (), {})


@dataclass(frozen=True)
class Asked:
    refused: str | None = None

    def __call__(self, part: Dataset) -> Echo:
        PARTS.append(part)
        return Echo(part, self.refused)


def test_every_workspace_is_asked_once_by_one_part_and_given_in_order() -> None:
    PARTS.clear()
    counts: list[int] = []
    found = Apart(NoExecutor(), Asked()).answers(SAMPLE, counts.append)
    assert [one.workspace_id for one in found] == WORKSPACES
    assert sum(counts) == len(SAMPLE.queries)
    assert len(PARTS) == 2
    dealt = [transcript.workspace_id for part in PARTS for transcript in part.transcripts]
    assert sorted(dealt) == sorted(WORKSPACES)
    assert {part.digest for part in PARTS} == {SAMPLE.digest}
    assert sum(len(one.documents) for one in found) == SAMPLE.qrels["query_id"].n_unique()


@pytest.mark.parametrize("refused", WORKSPACES)
def test_the_workspace_that_failed_is_named(refused: str) -> None:
    with pytest.raises(LcmError, match=f"^workspace '{refused}' came to no end: the goat has eaten it$"):
        Apart(NoExecutor(), Asked(refused)).answers(SAMPLE, lambda queries: None)
