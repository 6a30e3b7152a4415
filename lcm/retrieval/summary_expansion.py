"""What lies beneath the summaries of an answer, added to it: query-time expansion, as a step of a ranking."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import polars as pl

from lcm.checks import check_range
from lcm.protocols.contract import Contract
from lcm.protocols.retrieval import Batch
from lcm.records.document import TURN_KINDS
from lcm.retrieval.frames import best_first, with_rows
from lcm.retrieval.source.indexes import describe

_DEFAULT_SCORE = 0.0


@dataclass(frozen=True, slots=True)
class NoSummaryExpansion:
    """Nothing is added."""

    contract = Contract(is_off=True)

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        return frame


class ExpandableSummary(NamedTuple):
    """A summary in an answer that could be expanded."""

    summary_id: str
    confidence: float
    depth: int = 0
    """How many expansions led to it."""


class SummaryChild(NamedTuple):
    """A message or summary that lies directly beneath a summary."""

    item_id: str
    score: float
    tokens: float
    """0 or less: nobody counted them, and it is left out."""


class ExpandedChild(NamedTuple):
    """A child of an expanded summary, as it is shown."""

    item_id: str
    score: float
    parent_id: str
    depth: int


Children = Callable[[str, int], Sequence[SummaryChild]]
"""A summary's id and how deep to look, to what lies beneath it."""


@dataclass(frozen=True, slots=True)
class SummaryExpansion:
    """Adds to summaries that are sure of themselves what lies beneath them, while it fits."""

    confidence_threshold: float = 0.7
    """A summary that is less sure stays closed."""
    depth: int = 2
    """How deep a summary is expanded."""
    token_budget: float | None = None
    """Of all that is added. None = no bound of its own."""
    penalty_factor: float = 0.85
    """What a child's score is multiplied by."""

    def __post_init__(self) -> None:
        check_range(self, "confidence_threshold", ge=0, le=1)
        check_range(self, "penalty_factor", ge=0)
        check_range(self, "depth", ge=1)
        check_range(self, "token_budget", ge=0, or_null=True)

    def expand(
        self, summaries: Iterable[ExpandableSummary], children: Children, room_tokens: float = math.inf
    ) -> list[ExpandedChild]:
        """Expand summaries in the order given; a child that does not fit is passed over.

        Args:
            summaries: best first.
            children: asked of each summary that is opened.
            room_tokens: what there is; `token_budget` may be less.
        """
        left = room_tokens if self.token_budget is None else min(room_tokens, self.token_budget)
        expanded: list[ExpandedChild] = []
        for summary in summaries:
            if left <= 0:
                break
            if not summary.confidence >= self.confidence_threshold:
                continue
            for child in children(summary.summary_id, self.depth):
                if not child.tokens > 0:
                    continue
                cost = max(1, math.floor(child.tokens))
                if cost > left:
                    continue
                left -= cost
                score = min(1.0, max(0.0, child.score * self.penalty_factor))
                expanded.append(ExpandedChild(child.item_id, score, summary.summary_id, summary.depth + 1))
        return expanded


@dataclass(frozen=True, slots=True)
class OpenedSummaries:
    """Add the documents beneath each summary that is sure of itself, with a share of the summary's own score.

    Beneath a summary lie the documents all of whose messages it stands for: visible ones, and those hidden behind it
    that the asker may find. `depth` levels down: of a summary of summaries that lies deeper, the summaries at that
    level; else what was said itself. A document that is a row already stays as it is.

    Source: the summary expansion of libravdb memory 1.3.17, which scores a child by the child's own score; that a
    document which no search found takes its parent's is ours.
    """

    policy: SummaryExpansion
    contract = Contract(reads_unit_scores=True)

    def expand(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        summaries = best_first(frame).filter(pl.col("kind") == "summary")
        if summaries.is_empty():
            return best_first(frame)
        beneath = _CoveredDocuments(batch)
        rows: dict[str, list[object]] = {"query_id": [], "asked_at": [], "document_id": [], "score": []}
        columns = ("query_id", "asked_at", "document_id", "score", "confidence")
        for (query_id,), of_query in summaries.select(columns).group_by("query_id", maintain_order=True):
            asked_at = of_query["asked_at"][0]
            opened = [ExpandableSummary(*row) for row in of_query.select("document_id", "confidence").iter_rows()]
            scores = dict(of_query.select("document_id", "score").iter_rows())
            held = set(frame.filter(pl.col("query_id") == query_id)["document_id"])

            def children(
                summary_id: str, depth: int, scores: dict[str, float] = scores, held: set[str] = held
            ) -> Sequence[SummaryChild]:
                score = scores[summary_id] or _DEFAULT_SCORE
                found = {name: n for name, n in beneath.of(summary_id, depth).items() if name not in held}
                held.update(found)
                return [SummaryChild(name, score, tokens) for name, tokens in found.items()]

            for one in self.policy.expand(opened, children):
                for name, value in zip(rows, (query_id, asked_at, one.item_id, one.score), strict=True):
                    rows[name].append(value)
        if not rows["query_id"]:
            return best_first(frame)
        added = pl.DataFrame(rows, schema={name: frame.schema[name] for name in rows})
        return best_first(with_rows(frame, describe(added, batch), batch.queries["query_id"]))


class _PlacedDocument(NamedTuple):
    """A document, as it lies beneath a summary or is one."""

    kind: str
    sources: frozenset[str]
    tokens: int


class _CoveredDocuments:
    """Which documents lie beneath which summary: looked up for those that are opened, once a batch."""

    def __init__(self, batch: Batch) -> None:
        columns = ("document_id", "kind", "source_message_ids", "tokens")
        known = batch.documents.select(columns)
        if batch.turns is not None:
            known = pl.concat([known, _findable(batch, batch.turns).select(columns)])
        self._known = known
        self._first = known["source_message_ids"].list.first()
        self._found: dict[tuple[str, int], dict[str, int]] = {}

    def of(self, summary_id: str, depth: int) -> Mapping[str, int]:
        """At most `depth` levels down: what was said, or the summaries that are not opened; with their tokens."""
        key = summary_id, depth
        if key not in self._found:
            lying = self._lying(summary_id)
            self._found[key] = {name: lying[name].tokens for name in _below(lying, summary_id, depth)}
        return self._found[key]

    def _lying(self, summary_id: str) -> dict[str, _PlacedDocument]:
        """The summary, and all that lies beneath it on any level."""
        sources = self._known.filter(pl.col("document_id") == summary_id)["source_message_ids"].explode().drop_nulls()
        covered = frozenset(sources)
        near = self._known.filter(self._first.is_in(sources.implode()))
        rows = ((name, _PlacedDocument(kind, frozenset(own), tokens)) for name, kind, own, tokens in near.iter_rows())
        return {name: row for name, row in rows if row.sources <= covered}


def _findable(batch: Batch, turns: pl.DataFrame) -> pl.DataFrame:
    """Without what was said in another session and is not durable; where such is known, a batch asks from one."""
    asker = batch.queries.row(0, named=True)
    if asker["session_id"] is not None:
        return turns.filter(pl.col("is_durable") | (pl.col("session_id") == asker["session_id"]))
    return turns.filter(pl.col("is_durable") | (pl.col("conversation_id") == (asker["conversation_id"] or "")))


def _below(lying: Mapping[str, _PlacedDocument], summary_id: str, depth: int) -> list[str]:
    if summary_id not in lying:
        return []
    covered = lying[summary_id].sources
    inner = [name for name, row in lying.items() if row.kind == "summary" and row.sources < covered]
    tops = [name for name in inner if not any(lying[name].sources < lying[other].sources for other in inner)]
    if depth == 1 and tops:
        return tops
    below = [name for top in tops for name in _below(lying, top, depth - 1)]
    opened = frozenset[str]().union(*(lying[top].sources for top in tops))
    said = [(name, row.sources) for name, row in lying.items() if row.kind in TURN_KINDS]
    return [*below, *(name for name, sources in said if sources <= covered and not sources <= opened)]
