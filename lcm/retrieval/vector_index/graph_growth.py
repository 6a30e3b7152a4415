"""How a graph of hnswlib takes in rows, as many as come."""

from typing import Protocol

import hnswlib
import numpy as np

from lcm.protocols.models import Vectors

SMALLEST_CAPACITY = 1024


class GraphBuildSettings(Protocol):
    """What a graph is built by, as `lcm.retrieval.vector_index.hnsw.Hnsw` explains it."""

    @property
    def m(self) -> int: ...

    @property
    def ef_construction(self) -> int: ...

    @property
    def seed(self) -> int: ...


def add_rows(graph: hnswlib.Index, settings: GraphBuildSettings, rows: Vectors, start: int) -> None:
    """Add rows under the labels from `start` on; the first ones make the graph, and it doubles where it is full."""
    end = start + len(rows)
    if not start:
        graph.init_index(
            max(end, SMALLEST_CAPACITY),
            M=settings.m,
            ef_construction=settings.ef_construction,
            random_seed=settings.seed,
        )
    elif end > graph.get_max_elements():
        graph.resize_index(max(end, 2 * graph.get_max_elements()))
    graph.add_items(rows, np.arange(start, end), num_threads=1)
