"""What `lcm compact` prints of a batch: the conversations that were compacted most, and all together."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from eval.batch.report import REPORT, contexts_note
from eval.table import Column
from pipelines.views.terminal import kept, say, show_incidents, show_table

_ROWS = 15


def show_batch(rows: pl.DataFrame, incidents: Mapping[str, int], into: Path, shards: int) -> None:
    """Print a batch.

    Args:
        rows: of its report.
        incidents: what was survived, by name and times.
        into: its folder.
        shards: how many stores it has.
    """
    there = rows.filter(pl.col("conversation_id").is_not_null())
    if there.is_empty():
        say("No conversation was compacted.")
        return
    numbers = (Column(name, "number", 2) for name in ("messages", "tokens", "after", "ratio", "by depth"))
    say("compacted; by depth: summaries, leaves first")
    show_table(("conversation", *numbers, "levels, or why none"), _shown(there))
    show_incidents(incidents)
    say(f"note: {contexts_note(rows)}")
    kept(into, f" ({shards} store{'s' if shards != 1 else ''}, {REPORT})")


def _shown(kept: pl.DataFrame) -> Iterator[list[Any]]:
    """The conversations that were compacted most, and all together."""
    levels = [name for name in kept.columns if name.startswith("level_")]
    largest = kept.sort("tokens_before", descending=True, maintain_order=True).head(_ROWS)
    for row in largest.iter_rows(named=True):
        cells = _cells(row, row["summaries_by_depth"], levels)
        why = [] if row["summaries_by_depth"] else [row["reason"] or "-"]
        yield [row["conversation_id"], *(cells[:-1] + why if why else cells)]
    if kept.height > 1:
        sums = kept.select(pl.col("messages", "tokens_before", "tokens_after", *levels).sum()).row(0, named=True)
        by_depth = [
            int(kept["summaries_by_depth"].list.get(depth, null_on_oob=True).sum())
            for depth in range(kept.select(pl.col("summaries_by_depth").list.len().max()).item() or 0)
        ]
        yield [f"{kept.height} conversations", *_cells(sums, by_depth, levels)]


def _cells(row: dict[str, Any], by_depth: Sequence[int], levels: Sequence[str]) -> list[Any]:
    ratio = row["tokens_before"] / row["tokens_after"] if row["tokens_after"] else 1.0
    pressed = ", ".join(f"{row[level]} {level.removeprefix('level_')}" for level in levels if row[level])
    return [
        row["messages"], row["tokens_before"], row["tokens_after"], ratio,
        " / ".join(map(str, by_depth)) or "-", pressed or "-",
    ]  # fmt: skip
