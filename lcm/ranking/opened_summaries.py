"""What lies beneath the summaries of an answer, added to it: query-time expansion, as a step of a ranking."""

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from lcm.assembly.summary_expansion import Child, Opened, SummaryExpansion
from lcm.protocols import Batch
from lcm.ranking.ordering import best_first
from lcm.source.candidates import describe

_DEFAULT_SCORE = 0.0


@dataclass(frozen=True, slots=True)
class ClosedSummaries:
    """Nothing is added."""

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        return frame


@dataclass(frozen=True, slots=True)
class OpenedSummaries:
    """Add the documents beneath each summary that is sure of itself, with a share of the summary's own score.

    Beneath a summary lie the visible documents all of whose messages it stands for. `depth` levels down: of a summary
    of summaries that lies deeper, the summaries at that level; else what was said itself. A document that is a row
    already stays as it is.

    Source: the summary expansion of libravdb memory 1.3.17, which scores a child by the child's own score; that a
    document which no search found takes its parent's is ours.
    """

    policy: SummaryExpansion

    def expand(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        summaries = best_first(frame).filter(pl.col("kind") == "summary")
        if summaries.is_empty():
            return best_first(frame)
        beneath = _Beneath(batch.documents)
        rows: dict[str, list[object]] = {"query_id": [], "asked_at": [], "document_id": [], "score": []}
        columns = ("query_id", "asked_at", "document_id", "score", "confidence")
        for (query_id,), of_query in summaries.select(columns).group_by("query_id", maintain_order=True):
            asked_at = of_query["asked_at"][0]
            opened = [Opened(*row) for row in of_query.select("document_id", "confidence").iter_rows()]
            scores = dict(of_query.select("document_id", "score").iter_rows())
            held = set(frame.filter(pl.col("query_id") == query_id)["document_id"])

            def children(
                summary_id: str, depth: int, scores: dict[str, float] = scores, held: set[str] = held
            ) -> Sequence[Child]:
                score = scores[summary_id] or _DEFAULT_SCORE
                found = [name for name in beneath.of(summary_id, depth) if name not in held]
                held.update(found)
                return [Child(name, score, beneath.tokens[name]) for name in found]

            for one in self.policy.expand(opened, children):
                for name, value in zip(rows, (query_id, asked_at, one.item_id, one.score), strict=True):
                    rows[name].append(value)
        if not rows["query_id"]:
            return best_first(frame)
        added = pl.DataFrame(rows, schema={name: frame.schema[name] for name in rows})
        aligned = describe(added, batch).match_to_schema(frame.schema, missing_columns="insert", extra_columns="ignore")
        order = frame.select("query_id").unique(maintain_order=True).with_row_index("_query")
        both = pl.concat([frame, aligned]).join(order, on="query_id", how="left", maintain_order="left")
        both = both.sort("_query", maintain_order=True).drop("_query")
        if "deferred" in both.columns:
            both = both.with_columns(pl.col("deferred").fill_null(False))
        return best_first(both)


class _Beneath:
    """Which documents lie beneath which summary."""

    def __init__(self, documents: pl.DataFrame) -> None:
        columns = ("document_id", "kind", "source_message_ids", "tokens")
        rows = [row for row in documents.select(columns).iter_rows() if row[2]]
        self.tokens: dict[str, int] = {name: tokens for name, _, _, tokens in rows}
        self._sources = {name: frozenset(sources) for name, _, sources, _ in rows}
        self._summaries = {name for name, kind, _, _ in rows if kind == "summary"}
        self._said = [name for name, kind, _, _ in rows if kind == "message"]

    def of(self, summary_id: str, depth: int) -> list[str]:
        """At most `depth` levels down: what was said, or the summaries that are not opened."""
        covered = self._sources.get(summary_id, frozenset())
        inner = [name for name in self._summaries if self._sources[name] < covered]
        tops = [name for name in inner if not any(self._sources[name] < self._sources[other] for other in inner)]
        tops.sort(key=list(self._sources).index)
        if depth == 1 and tops:
            return tops
        below = [name for top in tops for name in self.of(top, depth - 1)]
        opened = frozenset[str]().union(*(self._sources[top] for top in tops))
        direct = [name for name in self._said if self._sources[name] <= covered and not self._sources[name] <= opened]
        return [*below, *direct]
