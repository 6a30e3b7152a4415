"""A vector index that notes what it is asked, and how each answer was found."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from lcm.memory.memory import Memory
from lcm.protocols.models import Vectors
from lcm.protocols.retrieval import Approximate, IndexAnswer, Tiered
from lcm.retrieval.indexes import Indexes
from lcm.retrieval.indexing import Ranked


class NotedSearch(NamedTuple):
    """What an index was asked, and what it gave."""

    vectors: Vectors
    k: int
    allowed: Sequence[str] | None
    answers: list[IndexAnswer]


class NotedIndex:
    """Stands for a vector index that may miss documents; all but its searches is the index's own."""

    def __init__(self, index: Approximate) -> None:
        self.index = index
        self.searches: list[NotedSearch] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.index, name)

    def __len__(self) -> int:
        return len(cast(Any, self.index))

    def search(self, vectors: Vectors, k: int, allowed: Sequence[str] | None = None) -> list[Ranked]:
        return [(one.ids, one.cosines) for one in self._noted(vectors, k, allowed)]

    def _noted(self, vectors: Vectors, k: int, allowed: Sequence[str] | None) -> list[IndexAnswer]:
        answers = self.index.answers(vectors, k, allowed)
        self.searches.append(NotedSearch(vectors, k, allowed, answers))
        return answers


class _NotedTiers(NotedIndex):
    """The same of an index with several widths."""

    def search_tiers(
        self, vectors: Vectors, k: int, allowed: Sequence[str] | None = None
    ) -> list[tuple[list[str], list[float], int]]:
        return [(one.ids, one.cosines, one.width) for one in self._noted(vectors, k, allowed)]


def noted(index: Approximate) -> NotedIndex:
    return _NotedTiers(index) if isinstance(index, Tiered) else NotedIndex(index)


def way(answer: IndexAnswer) -> str:
    """How an answer was found, as reports name it: `graph_64`, `scan_384`."""
    return f"{'graph' if answer.is_by_graph else 'scan'}_{answer.width}"


@dataclass
class _NotedIndexes:
    """The indexes of a memory, the one of vectors noting."""

    indexes: Indexes
    vector_index: NotedIndex

    def __getattr__(self, name: str) -> Any:
        return getattr(self.indexes, name)


@contextmanager
def noting(memory: Memory) -> Iterator[list[NotedSearch]]:
    """Note every search of a memory whose vector index may miss documents."""
    indexes = memory.live.indexes
    index = noted(cast(Approximate, indexes.vector_index))
    memory.live.indexes = cast(Indexes, _NotedIndexes(indexes, index))
    try:
        yield index.searches
    finally:
        memory.live.indexes = indexes
