"""What an experiment found, as frames: how concentrated answers are, and how all of it becomes a run."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import polars as pl

from eval.configuration import config_hash
from eval.dataset.dataset import Dataset
from eval.measures.means import ALL, Entry, entry
from eval.measures.names import SYSTEM_ARM, Direction
from eval.run import CONTROLS, QUERY_SCHEMA, Run, parquet
from lcm.records.document import ACTIONS

_LAST_FILES: dict[str, tuple[object, bytes]] = {}
"""Table of the run that was written last -> what it was made of, and its file: points of a sweep share what is asked
and what control arms answer, and coding whole histories as Parquet takes longer than to rank."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The results of an experiment: run, documents, values of measures and their means, as frames."""

    system_run: pl.DataFrame
    """What the system ranked: arm, workspace_id, query_id, document_id, rank (1-based), score, index_tier (the width
    that answered, of an index with several), stands_for (ids of near duplicates that were left out in its favour),
    related (id and score of documents that are shown with it and ranked nowhere)."""
    control_run: pl.DataFrame
    """Likewise what the control arms ranked; one object for points of a sweep that share it, as `control_values`."""
    served: pl.DataFrame
    """Rows of `SERVED_SCHEMA`, the system first: how concentrated the answers of each arm are."""
    documents: pl.DataFrame
    """workspace_id, document_id, source_message_ids, tokens: every document that a run names, or whose
    near duplicate it names."""
    system_values: pl.DataFrame
    """arm, query_id, measure, value: of every measure of queries."""
    control_values: pl.DataFrame
    """Likewise of the control arms."""
    means: pl.DataFrame
    """arm, group, measure, value, n, low, high."""
    confidence: float
    """Of the intervals: percentile bootstrap over queries."""
    frames: Mapping[str, pl.DataFrame]
    """Measure of something else than queries -> its rows."""
    sections: Mapping[str, Mapping[str, Any]]
    """Such a measure -> what the summary tells of it."""
    timing: Mapping[str, Mapping[str, Any]]
    """Measure of time -> what the summary tells of it: two equal runs may differ here."""
    decisions: pl.DataFrame
    """workspace_id beside the store's decisions: what became of every candidate that was judged."""
    counts: Mapping[str, int]
    """workspaces, messages, documents, queries, judged and unjudged queries; of datasets laid into other haystacks also
    the messages that stood when a query was asked, on average; where something compacts, contexts, and how many of them
    were compacted."""
    incidents: Mapping[str, int]
    """What failed and was survived, by name and times."""
    flags: tuple[str, ...]
    """What a reader of the numbers must know."""
    seconds: Mapping[str, float]
    """Wall time by phase."""
    directions: Mapping[str, Direction] = field(default_factory=dict)
    """Measure of queries -> which way it is better; higher where none is told."""

    @property
    def run(self) -> pl.DataFrame:
        """What each arm ranked, the system first."""
        return pl.concat([self.system_run, self.control_run])

    @property
    def values(self) -> pl.DataFrame:
        """The values of each arm, the system's first."""
        return pl.concat([self.system_values, self.control_values])


def write_run(
    folder: Path,
    outcome: Outcome,
    dataset: Dataset,
    resolved: Mapping[str, Any],
    config_text: str,
    seconds: Mapping[str, float],
    asked: Mapping[str, Any] = MappingProxyType({}),
) -> dict[str, Any]:
    """Write a run, and return its summary.

    What may differ between two equal runs stands under `timing` in the summary, or in environment.json.

    Args:
        resolved: the settings that the numbers depend on.
        config_text: all settings.
        asked: `overrides`, what was asked for, and `changed`, what of that is not the default; empty where nobody
            composed the configuration.
    """
    run = Run.begin(folder)
    run.write("run", outcome.system_run)
    run.write("documents", outcome.documents)
    run.write("per_query", _directed(outcome.system_values, outcome.directions))
    run.write("measures", outcome.means)
    run.write("decisions", outcome.decisions)
    for name, frame in outcome.frames.items():
        run.write(name, frame)
    controls = outcome.control_values
    run.write("queries", _file_once("queries", dataset, lambda: _queries(dataset)))
    run.write(f"{CONTROLS}run", _file_once(f"{CONTROLS}run", outcome.control_run, lambda: outcome.control_run))
    directed = _file_once(f"{CONTROLS}per_query", controls, lambda: _directed(controls, outcome.directions))
    run.write(f"{CONTROLS}per_query", directed)
    summary = {
        "dataset": dataset.identity(),
        "config_hash": config_hash(resolved),
        **asked,
        "counts": dict(outcome.counts),
        "served": {row.pop("arm"): row for row in outcome.served.iter_rows(named=True)},
        "decisions": _by_action(outcome.decisions),
        **{name: dict(section) for name, section in outcome.sections.items()},
        "incidents": dict(outcome.incidents),
        "notes": list(dataset.notes),
        "flags": list(outcome.flags),
        "interval": {"kind": "percentile bootstrap over queries", "confidence": outcome.confidence},
        "measures": _measures(outcome.means, SYSTEM_ARM, ALL),
        "arms": {
            arm: _measures(outcome.means, arm, ALL)
            for arm in outcome.means["arm"].unique(maintain_order=True)
            if arm != SYSTEM_ARM
        },
        "categories": {
            group: _measures(outcome.means, SYSTEM_ARM, group)
            for group in outcome.means["group"].unique(maintain_order=True)
            if group != ALL
        },
        "timing": {
            **{f"{name}_ms": dict(section) for name, section in outcome.timing.items()},
            "seconds": {**outcome.seconds, **seconds},
        },
    }
    return run.finish(summary, config_text, seconds.get("total", 0.0))


def _queries(dataset: Dataset) -> pl.DataFrame:
    """The queries, and the ids of the messages that are their evidence: what two runs are compared by."""
    evidence = dataset.evidence()
    rows = [
        (
            *(q.workspace_id, q.query_id, q.conversation_id, q.category, q.text, q.asked_at),
            *(dataset.origin(q), evidence.get(q.query_id, [])),
        )
        for q in dataset.queries
    ]
    return pl.DataFrame(rows, schema={**QUERY_SCHEMA, "evidence": pl.List(pl.String())}, orient="row")


def _by_action(decisions: pl.DataFrame) -> dict[str, int]:
    """How often each action was decided; empty where nothing was judged."""
    found = dict(decisions.group_by("action").len().iter_rows())
    return {action: found[action] for action in ACTIONS if action in found}


def _measures(means: pl.DataFrame, arm: str, group: str) -> dict[str, Entry]:
    rows = means.filter((pl.col("arm") == arm) & (pl.col("group") == group))
    return {row["measure"]: entry(row) for row in rows.iter_rows(named=True)}


def _file_once(name: str, origin: object, made: Callable[[], pl.DataFrame]) -> bytes:
    """The file of a table, that of the last run where it is made of the very same thing."""
    if name not in _LAST_FILES or _LAST_FILES[name][0] is not origin:
        _LAST_FILES[name] = origin, parquet(made())
    return _LAST_FILES[name][1]


def _directed(values: pl.DataFrame, directions: Mapping[str, Direction]) -> pl.DataFrame:
    """With the way in which each measure is better."""
    way = pl.col("measure").replace_strict(directions, default="higher", return_dtype=pl.String)
    return values.with_columns(direction=way)


_MOST = 10
SERVED_SCHEMA: dict[str, pl.DataType] = {
    "arm": pl.String(),
    "k": pl.Int64(),
    "places": pl.Int64(),
    "documents": pl.Int64(),
    "top_10_share": pl.Float64(),
}
"""`k`: the most documents of one answer; `places`: of all answers together; `documents`: how many different ones took
them; `top_10_share`: of the places, in (0, 1], those of the ten documents that took most."""


def served(run: pl.DataFrame) -> pl.DataFrame:
    """Rows of `SERVED_SCHEMA`, one an arm that served anything, in the order of the run.

    Whatever a ranking returns counts as served, down to its own last rank. Documents of two workspaces are two.

    Args:
        run: columns arm, workspace_id, document_id, rank (1-based, without gaps).
    """
    each = run.group_by("arm", "workspace_id", "document_id", maintain_order=True).agg(
        k=pl.col("rank").max(), places=pl.len()
    )
    return (
        each.group_by("arm", maintain_order=True)
        .agg(
            pl.col("k").max(),
            pl.col("places").sum(),
            documents=pl.len(),
            top_10_share=pl.col("places").top_k(_MOST).sum() / pl.col("places").sum(),
        )
        .cast(pl.Schema(SERVED_SCHEMA))
    )
