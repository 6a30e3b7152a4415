"""What an arm may be besides a plain ranking."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Protocol, runtime_checkable

import polars as pl

from eval.dataset.dataset import Dataset
from lcm.memory.memory import Memory
from lcm.protocols.retrieval import Ranker
from lcm.records.query import Query
from lcm.retrieval.ranking.pipeline import Ranking


@runtime_checkable
class KnowsDataset(Protocol):
    """An arm that is made of the dataset itself: of its judgements, or of what is recorded of its queries."""

    def ranking(self, dataset: Dataset) -> Ranking: ...


@runtime_checkable
class IsCeiling(Protocol):
    """An arm that is measured by the best order of what could be ranked: no other arm passes it."""

    def reachable(self, dataset: Dataset, memory: Memory, queries: Sequence[Query]) -> pl.DataFrame:
        """Rows query_id, document_id: all that may be ranked and covers messages of sessions with evidence.

        Args:
            memory: of one workspace, with all transcripts ingested.
            queries: what that is asked.
        """
        ...


def rankings_of(arms: Mapping[str, Ranker | KnowsDataset], dataset: Dataset) -> dict[str, Ranker]:
    return {arm: one.ranking(dataset) if isinstance(one, KnowsDataset) else one for arm, one in arms.items()}


def ceilings_among(
    arms: Mapping[str, Ranker | KnowsDataset], dataset: Dataset
) -> dict[str, Callable[[Memory, Sequence[Query]], pl.DataFrame]]:
    """Arm that is a ceiling -> what tells of a memory what the arm could have ranked."""
    return {arm: partial(one.reachable, dataset) for arm, one in arms.items() if isinstance(one, IsCeiling)}
