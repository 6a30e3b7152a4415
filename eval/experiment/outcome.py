"""What an experiment found, as frames: what a run folder is written from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from eval.measures.measure import Direction


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
