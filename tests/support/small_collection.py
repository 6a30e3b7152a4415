"""A small collection in the layout of BEIR, with whatever a folder may hold."""

from pathlib import Path

import polars as pl
import pytest

from eval.dataset.beir import write_beir
from eval.dataset.collection import (
    CANDIDATES_SCHEMA,
    CORPUS_SCHEMA,
    INSTRUCTIONS_SCHEMA,
    JUDGED_SCHEMA,
    QUERIES_SCHEMA,
    Collection,
)


def collection(
    corpus: list[tuple[str, str, str]],
    queries: list[tuple[str, str]],
    qrels: list[tuple[str, str, int]],
    candidates: list[tuple[str, list[str]]] | None = None,
    instructions: list[tuple[str, str]] | None = None,
) -> Collection:
    def frame(rows: list[tuple[object, ...]] | None, schema: dict[str, pl.DataType]) -> pl.DataFrame:
        return pl.DataFrame(rows, schema=schema, orient="row")

    return Collection(
        corpus=frame(corpus, CORPUS_SCHEMA),
        queries=frame(queries, QUERIES_SCHEMA),
        qrels=frame(qrels, JUDGED_SCHEMA),
        candidates=None if candidates is None else frame(candidates, CANDIDATES_SCHEMA),
        instructions=None if instructions is None else frame(instructions, INSTRUCTIONS_SCHEMA),
    )


HOUSEHOLD = collection(
    [
        ("d1", "Kettle", "It is broken."),
        ("d2", "", "Ada drinks tea."),
        ("d3", "", "The goats are in the garden."),
        ("d4", "", "Bo painted the kettle."),
        ("q3", "", "Where are the goats?"),
    ],
    [("q1", "What is broken?"), ("q2", "What does Ada drink?"), ("q3", "Where are the goats?"), ("q4", "Who?")],
    [("q1", "d1", 2), ("q1", "d4", 1), ("q1", "d2", 0), ("q2", "d2", 1), ("q3", "d3", 1)],
    [("q1", ["d1", "d2", "d4"]), ("q2", ["d4", "d2", "d1"]), ("q3", ["d3", "d4", "q3"])],
    [("q1", "Find the fault")],
)
"""Two sets of candidates, grades, a judged document that is not relevant, a query without judgements, and one that is a
document itself."""


def write_small_beir(folder: Path, monkeypatch: pytest.MonkeyPatch | None = None) -> str:
    """The household, a folder `tiny-queries` beside it, and another split of judgements."""
    write_beir(folder, HOUSEHOLD)
    (folder / "qrels" / "dev.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td4\t1\n")
    (folder / "tiny-queries.jsonl").write_text('{"_id": "q1", "text": "What was painted?"}\n')
    return str(folder)
