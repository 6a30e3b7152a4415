"""Datasets of a test's own."""

from collections.abc import Iterable
from typing import Any

import polars as pl

from eval.dataset.dataset import QRELS_SCHEMA, Dataset
from lcm.records.conversation import Transcript
from lcm.records.query import Query


def tiny(
    transcripts: Iterable[Transcript] = (),
    queries: Iterable[Query] = (),
    judged: Iterable[tuple[str, str] | tuple[str, str, int]] = (),
    **others: Any,
) -> Dataset:
    """A dataset; `judged` are rows of query and message, with a grade unless that is 1."""
    qrels = pl.DataFrame([(*row, 1)[:3] for row in judged], schema=QRELS_SCHEMA, orient="row")
    named = {"name": "tiny", "protocol": "tiny", "digest": "0"} | others
    return Dataset(transcripts=tuple(transcripts), queries=tuple(queries), qrels=qrels, **named)
