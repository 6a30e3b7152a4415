"""A batch as a run folder: what tracking logs, and `lcm log` later where it could not."""

import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from eval.batch.report import REPORT, contexts_note
from eval.run import (
    CONFIG,
    SUMMARY,
    commit,
    environment,
    read_summary,
    write_frame,
    write_json,
    write_summary,
)
from eval.tracking.naming import title
from lcm.files import private, write_text
from lcm.records.summary import LEVELS


@private()
def write_compaction_run(
    folder: Path,
    rows: pl.DataFrame,
    source: Mapping[str, str],
    identity: str,
    config_text: str,
    seconds: float,
    incidents: Mapping[str, int],
    changed: Mapping[str, Any],
) -> None:
    """Write every file of the folder and, last, its summary; a batch that goes on writes it anew.

    Incidents add up over the runs of a batch that came to this.

    Args:
        folder: of the run.
        rows: as `eval.batch.report` reads them.
        source: the name and the digest of all that was taken in.
        identity: the hash of the configuration.
        config_text: the configuration as YAML.
        seconds: that this run of the batch took.
        incidents: what it survived, by name and times.
        changed: what of the configuration is not the default.
    """
    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / CONFIG, config_text)
    write_json(folder / "environment.json", environment())
    write_frame(folder / REPORT, rows)
    kept = rows.filter(pl.col("conversation_id").is_not_null())
    before, after = (int(kept[name].sum()) for name in ("tokens_before", "tokens_after"))
    depths = int(kept["summaries_by_depth"].list.len().max() or 0)  # type: ignore[arg-type]  # whole numbers
    counts = {
        "conversations": kept.height,
        "contexts_compacted": kept.filter(pl.col("summaries_by_depth").list.sum() > 0).height,
        "messages": int(kept["messages"].sum()),
        "refused": rows.height - kept.height,
        "tokens_before": before,
        "tokens_after": after,
        "tokens_saved": before - after,
        "summaries": int(kept["summaries_by_depth"].list.sum().sum()),
        "depth": depths,
        **{f"level_{level}": int(kept[f"level_{level}"].sum()) for level in LEVELS},
    }
    ratio = before / after if after else 1.0
    contexts = f"{counts['contexts_compacted']} of {counts['conversations']} contexts, {ratio:.2f} times smaller"
    survived = Counter(incidents_of(folder))
    survived.update(incidents)
    summary: dict[str, Any] = {
        "dataset": {"name": source["name"], "protocol": "compact", "digest": source["digest"]},
        "title": title([f"compaction into {source['name']}"], [], [contexts]),
        "config_hash": identity,
        "changed": dict(changed),
        "commit": commit(),
        "tags": {"mlflow.source.name": "lcm compact"},
        "counts": counts,
        "incidents": dict(sorted(survived.items())),
        "flags": [contexts_note(rows)],
        "measures": {"compression_ratio": {"value": ratio, "n": kept.height, "low": None, "high": None}},
        "arms": {},
        "categories": {},
        "timing": {"latency_ms": {}, "seconds": {"compact": seconds}},
    }
    write_summary(folder, summary, time.time() - seconds)


def tells_of(folder: Path, source: Mapping[str, str]) -> bool:
    """Whether the summary of a folder is of all that was taken in, and no more."""
    return (folder / SUMMARY).exists() and read_summary(folder)["dataset"].get("digest") == source["digest"]


def incidents_of(folder: Path) -> dict[str, int]:
    """What the runs of a batch survived, by name and times; of a folder without a summary nothing is known."""
    if not (folder / SUMMARY).exists():
        return {}
    incidents: dict[str, int] = read_summary(folder).get("incidents", {})
    return incidents
