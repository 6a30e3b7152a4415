"""What an arm may be besides a plain ranking."""

from typing import Protocol, runtime_checkable

from eval.dataset.dataset import Dataset
from lcm.retrieval.ranking.pipeline import Ranking


@runtime_checkable
class KnowsDataset(Protocol):
    """An arm that is made of the dataset itself: of its judgements, or of what is recorded of its queries."""

    def ranking(self, dataset: Dataset) -> Ranking: ...
