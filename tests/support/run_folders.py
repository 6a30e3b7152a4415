"""Run folders made by hand: what a comparison reads of a run, with any values."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from eval.comparison.pairing import comparable
from eval.run import Run


def write_run_folder(
    folder: Path,
    values: Mapping[str, Sequence[float | None]],
    categories: Sequence[str] | None = None,
    workspaces: Sequence[str] | None = None,
    rankings: Mapping[str, Sequence[str]] | None = None,
    text: str = "What?",
    **summary: Any,
) -> Path:
    """A run of the queries q000, q001 ...

    Args:
        values: measure -> one value a query; None where it is not judged.
        rankings: query id -> documents, best first; a document `m1` stands for the message `m1`, and the evidence of
            every query is `m1`.
        summary: keys that replace those of the summary.
    """
    n = len(next(iter(values.values())))
    ids = [f"q{i:03d}" for i in range(n)]
    folder.mkdir(parents=True, exist_ok=True)
    spaces = list(workspaces or ["w"] * n)
    pl.DataFrame(
        {
            "query_id": ids,
            "workspace_id": spaces,
            "category": list(categories or ["one"] * n),
            "text": [text] * n,
            "evidence": [["m1"]] * n,
        }
    ).write_parquet(folder / "queries.parquet")
    rows = [
        ("system", query, measure, value)
        for measure, column in values.items()
        for query, value in zip(ids, column, strict=True)
        if value is not None
    ]
    schema = {"arm": pl.String, "query_id": pl.String, "measure": pl.String, "value": pl.Float64}
    direction = pl.when(pl.col("measure").str.contains("tokens|expansions|latency")).then(pl.lit("lower"))
    found_values = pl.DataFrame(rows, schema=schema, orient="row").with_columns(
        direction=direction.otherwise(pl.lit("higher"))
    )
    found_values.write_parquet(folder / "per_query.parquet")
    if rankings is not None:
        found = [
            ("system", spaces[ids.index(query)], query, document, rank)
            for query, documents in rankings.items()
            for rank, document in enumerate(documents, 1)
        ]
        columns = ["arm", "workspace_id", "query_id", "document_id", "rank"]
        run = pl.DataFrame(found, schema=columns, orient="row")
        run.write_parquet(folder / "run.parquet")
        run.select("workspace_id", "document_id", source_message_ids=pl.concat_list("document_id")).unique(
            maintain_order=True
        ).write_parquet(folder / "documents.parquet")
    whole = {
        "kind": "run",
        "dataset": {"name": "toy", "protocol": "as is", "digest": "a" * 64},
        "definitions": "1",
        "config_hash": "0" * 16,
        "commit": None,
        **summary,
    }
    kept = {key: value for key, value in whole.items() if value != "left out"}
    (folder / "summary.json").write_text(json.dumps(kept))
    return folder


def side(folder: Path, values: Mapping[str, Sequence[float | None]], **more: Any) -> Run:
    return comparable(write_run_folder(folder, values, **more), folder.name)
