"""What a batch did to each conversation: a ledger while it is under way, a Parquet file at its end."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from eval.batch.ledger import Ledger
from eval.batch.reading import SourceReader
from lcm.encoding import well_formed
from lcm.records.summary import LEVELS
from lcm.store.store import Store

REPORT = "report.parquet"
REPORT_SCHEMA: dict[str, pl.DataType] = {
    "shard": pl.Int64(),
    "source": pl.String(),
    "digest": pl.String(),
    "conversation_id": pl.String(),
    "messages": pl.Int64(),
    "tokens_before": pl.Int64(),
    "tokens_after": pl.Int64(),
    "ratio": pl.Float64(),
    "summaries_by_depth": pl.List(pl.Int64()),
    **{f"level_{level}": pl.Int64() for level in LEVELS},
    "methods": pl.String(),
    "reason": pl.String(),
    "seconds": pl.Float64(),
    "refused": pl.String(),
}
"""The columns of the report. A source that was refused has a row without a conversation, and the reason in `refused`.

`ratio` is tokens before by tokens after; `methods` is JSON, summarizer to summaries; `seconds` are those of one run.
"""


def conversation_row(store: Store, shard: int, reading: SourceReader, conversation_id: str) -> dict[str, Any]:
    totals = store.conversation_totals(conversation_id)
    read = reading.conversation(conversation_id)
    depths = [0] * (1 + max((depth for depth, *_ in totals.summaries), default=-1))
    levels, methods = dict.fromkeys(LEVELS, 0), dict[str, int]()
    for depth, level, method, count in totals.summaries:
        depths[depth] += count
        levels[level] += count  # type: ignore[index]  # one of LEVELS
        methods[method] = methods.get(method, 0) + count
    return _row(shard, reading) | {
        "conversation_id": conversation_id,
        "messages": totals.messages,
        "tokens_before": totals.tokens_before,
        "tokens_after": totals.tokens_after,
        "ratio": totals.tokens_before / totals.tokens_after if totals.tokens_after else 1.0,
        "summaries_by_depth": depths,
        **{f"level_{level}": count for level, count in levels.items()},
        "methods": json.dumps(methods, sort_keys=True),
        "reason": read.failure or ("compacted" if totals.summaries else read.reason),
        "seconds": round(read.seconds, 6),
    }


def refused_row(shard: int, reading: SourceReader) -> dict[str, Any]:
    return _row(shard, reading) | {"refused": reading.refused}


def read_rows(paths: Sequence[Path]) -> pl.DataFrame:
    """Read what ledgers hold as rows of `REPORT_SCHEMA`: of each conversation of a store, and of each source that was
    refused, the last that was told. So a file that has grown counts once, as it stands now."""
    rows = pl.DataFrame(
        [row for path in paths for row in Ledger(path).read().rows], schema=REPORT_SCHEMA, infer_schema_length=None
    ).with_row_index("told")
    is_refused = pl.col("refused").is_not_null()
    newest = rows.filter(~is_refused).unique(["shard", "conversation_id"], keep="last", maintain_order=True)
    last = rows.group_by("shard", "source").agg(pl.col("told").max())
    refused = rows.filter(is_refused).join(last, ["shard", "source", "told"], "semi", maintain_order="left")
    return pl.concat([newest, refused]).drop("told")


def contexts_note(rows: pl.DataFrame) -> str:
    """How many contexts of a batch were compacted, and how large the largest would be as it was said."""
    kept = rows.filter(pl.col("conversation_id").is_not_null())
    compacted = kept.filter(pl.col("summaries_by_depth").list.sum() > 0).height
    largest = int(kept["tokens_before"].max() or 0)  # type: ignore[arg-type]  # whole numbers
    return f"{compacted} of {kept.height} contexts compacted; the largest had {largest:,} tokens as it was said"


def _row(shard: int, reading: SourceReader) -> dict[str, Any]:
    return {"shard": shard, "source": well_formed(str(reading.source.path)), "digest": reading.source.digest}
