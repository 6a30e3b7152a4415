"""Where a run loses messages, and what became of one, as JSON."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import polars as pl

from eval.ladder.explanation import Explanation, Shown
from eval.ladder.losses import FIRST, counted, missed
from eval.measures.means import ALL


def losses_record(folder: Path, rows: pl.DataFrame) -> dict[str, Any]:
    """The places of all judged messages of a run, counted and one by one."""
    counts = counted(rows)
    return {
        "run": str(folder),
        "first": FIRST,
        "judged": len(rows),
        "missed": sum(missed(counts[ALL]).values()),
        "places": counts[ALL],
        "categories": {name: of for name, of in counts.items() if name != ALL},
        "messages": rows.to_dicts(),
    }


def explanation_record(folder: Path, found: Explanation, contexts: Sequence[Shown]) -> dict[str, Any]:
    """What became of one message."""
    return {
        "run": str(folder),
        "query_id": found.query.query_id,
        "question": found.query.text,
        "expected": found.expected,
        "headline": found.headline,
        "place": found.place,
        "document_id": found.document_id,
        "rank": found.rank,
        "pool": found.pool,
        "found_by": found.found_by.drop("query_id", "document_id").to_dicts(),
        "ladder": found.ladder.drop("query_id", "document_id").to_dicts(),
        "taken_by": [{**row, "text": found.texts.get(row["document_id"], "")} for row in found.taken_by.to_dicts()],
        "would_keep": [asdict(trial) for trial in found.trials],
        "contexts": [asdict(one) for one in contexts],
    }
