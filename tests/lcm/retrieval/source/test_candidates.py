"""How the answers of two indexes become candidate rows."""

from dataclasses import replace

import polars as pl

from lcm.clock import EPOCH
from lcm.protocols.retrieval import Batch
from lcm.retrieval.source.indexes import branch, merge
from tests.golden.components import documents_batch

WorkspaceResult = list[tuple[list[str], list[float]]]


def batch(*query_ids: str) -> Batch:
    n = len(query_ids)
    return replace(
        documents_batch([]),
        queries=pl.DataFrame({"query_id": query_ids, "asked_at": [EPOCH] * n, "text": [""] * n}),
    )


def merged(dense: WorkspaceResult, lexical: WorkspaceResult, *query_ids: str) -> list[tuple[object, ...]]:
    branches = branch(dense, "cosine", "dense_rank"), branch(lexical, "bm25", "lexical_rank")
    frame = merge(batch(*query_ids), *branches)
    return frame.select("query_id", "document_id", "cosine", "bm25", "dense_rank", "lexical_rank").rows()


def test_rows_that_only_words_found_stand_last_with_their_own_query() -> None:
    rows = merged(
        [(["b", "a"], [0.9, 0.8]), (["c"], [0.7])],
        [(["d", "a"], [4.0, 3.0]), (["e", "c"], [2.0, 1.0])],
        "second by name",
        "first by name",
    )
    assert rows == [
        ("second by name", "b", 0.9, None, 1, None),
        ("second by name", "a", 0.8, 3.0, 2, 2),
        ("second by name", "d", None, 4.0, None, 1),
        ("first by name", "c", 0.7, 1.0, 1, 2),
        ("first by name", "e", None, 2.0, None, 1),
    ]


def test_an_id_named_twice_keeps_its_first_place_and_takes_its_last_score_and_rank() -> None:
    frame = branch([(["a", "b", "a"], [0.9, 0.5, 0.3]), (["a"], [0.8])], "cosine", "dense_rank")
    assert frame.rows() == [(0, "a", 0.3, 3), (0, "b", 0.5, 2), (1, "a", 0.8, 1)]
