"""One side of a comparison: what a run folder holds of the system that was measured."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from eval.experiment.conversation_means import conversation_direction, conversation_means, conversation_values
from eval.experiment.run_folder import CONFIG, directions_in, read_config, read_summary, read_table
from eval.measures.coverage import with_near_duplicates
from eval.measures.measure import Direction
from eval.measures.names import EXTERNAL_MEMORY, RANKING_MEASURES, REPAIRED, SYSTEM_ARM, kind_of
from lcm.errors import LcmError
from lcm.redaction import redacted

_AGAIN = "run `lcm evaluate` again with this lcm"
_QUERY_COLUMNS = ("query_id", "workspace_id", "category", "text", "evidence")
CONVERSATION = "a conversation"
"""The category of what stands for a question, where conversations do."""
_ORIGIN = "origin"
"""The column of queries that says which workspace a query comes from, where several may be pooled; older runs have
none, and pool nothing."""


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a comparison: the results of one system, read from a run folder."""

    name: str
    """How it was asked for, without what looks like a key."""
    folder: Path
    summary: Mapping[str, Any]
    queries: pl.DataFrame
    """query_id, workspace_id (that the query comes from), category, text, evidence (message ids). Of a run in which no
    question was judged, conversations stand for them."""
    values: pl.DataFrame
    """query_id, measure, value: of the system, one a judged query; nothing where there is no number."""
    directions: Mapping[str, Direction]
    """Measure -> which way it is better; empty where the run does not say."""
    config: Mapping[str, Any] | None
    """The whole configuration; None where it is not at hand."""

    @property
    def is_of_conversations(self) -> bool:
        """Whether conversations stand for questions."""
        return not self.queries.is_empty() and bool((self.queries["category"] == CONVERSATION).all())

    @property
    def is_external(self) -> bool:
        """Whether an external memory was measured, which may leave queries unanswered: they have no value."""
        return any(flag.startswith(EXTERNAL_MEMORY) for flag in self.summary.get("flags", ()))

    @property
    def incidents(self) -> str:
        """What failed, or came otherwise than it should, and was survived, in a line; empty where nothing did."""
        counted: Mapping[str, int] = self.summary.get("incidents") or {}
        return ", ".join(f"{what} ({times:,} times)" for what, times in counted.items())

    @property
    def measures(self) -> list[str]:
        return self.values["measure"].unique(maintain_order=True).to_list()

    @property
    def levels(self) -> list[str]:
        """At which levels retrieval was measured: some of message, session."""
        kinds = {
            "session" if name.removeprefix(REPAIRED).startswith("session.") else "message"
            for name in self.measures
            if _is_leveled(name)
        }
        return sorted(kinds)


def read_side(folder: Path, name: str, *, has_config: bool = True) -> Side:
    """Read a run folder, or as much of it as a comparison needs: summary.json, per_query.parquet, queries.parquet.

    Args:
        has_config: whether its configuration is read too, where it is at hand.
    Raises:
        LcmError: if it is no run, was written before runs could be compared, or a file is missing or damaged.
    """
    summary = read_summary(folder)
    kind = summary.get("kind", "run")
    if kind != "run":
        raise LcmError(f"{name} is a {kind}, not a run: name a folder that `lcm evaluate` wrote")
    if "definitions" not in summary:
        raise LcmError(f"{name} does not say by which definitions its measures were made: {_AGAIN}")
    told = _read(folder / "per_query.parquet", name, ("arm", "query_id", "measure", "value"), "direction")
    values = told.filter(pl.col("value").is_finite(), arm=SYSTEM_ARM).select("query_id", "measure", "value")
    twice = values.filter(values.select("query_id", "measure").is_duplicated())
    if not twice.is_empty():
        query, measure, _ = twice.row(0)
        raise LcmError(f"{folder / 'per_query.parquet'} has several values of {measure} for query {query}: {_AGAIN}")
    queries = _read(folder / "queries.parquet", name, _QUERY_COLUMNS, _ORIGIN)
    if _ORIGIN in queries.columns:
        queries = queries.with_columns(workspace_id=_ORIGIN)
    asked, ways = queries.select(_QUERY_COLUMNS), directions_in(told)
    if values.is_empty() and conversation_means(summary):
        told = conversation_values(folder, summary)
        asked = told.select(query_id=pl.col("conversation_id").unique(maintain_order=True)).with_columns(
            workspace_id="query_id",
            category=pl.lit(CONVERSATION),
            text=pl.lit(""),
            evidence=pl.lit(None, asked.schema["evidence"]),
        )
        values = told.rename({"conversation_id": "query_id"}).filter(pl.col("value").is_finite())
        ways = {measure: conversation_direction(measure) for measure in values["measure"].unique(maintain_order=True)}
    return Side(redacted(name), folder, summary, asked, values, ways, _config(folder) if has_config else None)


def ranking_of(side: Side) -> pl.DataFrame | None:
    """The rows that the system of a side ranked: query_id, workspace_id, document_id, rank, source_message_ids.

    None where only the summary and the values are at hand.
    """
    folder, name = side.folder, side.name
    if not ((folder / "run.parquet").exists() and (folder / "documents.parquet").exists()):
        return None
    columns = ("arm", "workspace_id", "query_id", "document_id", "rank")
    run = with_near_duplicates(_read(folder / "run.parquet", name, columns, "stands_for"))
    documents = _read(folder / "documents.parquet", name, ("workspace_id", "document_id", "source_message_ids"))
    return (
        run.filter(arm=SYSTEM_ARM)
        .join(documents, on=["workspace_id", "document_id"], how="left", maintain_order="left")
        .select("query_id", "workspace_id", "document_id", "rank", "source_message_ids")
    )


def _is_leveled(measure: str) -> bool:
    return kind_of(measure) in RANKING_MEASURES and not measure.startswith("tokens")


def _config(folder: Path) -> Mapping[str, Any] | None:
    path = folder / CONFIG
    if not path.exists():
        return None
    return read_config(folder)


def _read(path: Path, name: str, columns: tuple[str, ...], *where_there: str) -> pl.DataFrame:
    if not path.exists():
        raise LcmError(f"{name} has no {path.name} beside its summary: copy it there, or {_AGAIN}")
    return read_table(path, columns, where_there)
