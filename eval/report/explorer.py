"""The questions of a page, one by one: what each ranking answered, where the evidence lies, what a context held."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from eval.ladder.losses import REASONS
from eval.report.column import ShownRanking, shown_measures
from eval.report.folding import Folding, ladder_told
from eval.report.insight import StoredDocument
from eval.report.packing import Blocks, parted
from eval.report.texts import Texts
from lcm.redaction import redacted

_AT_ONCE = 50
"""Questions in a block."""
_DEPTH = 20
"""Ranks that are shown; deeper ones only of evidence."""
_PREVIEW = 160
"""Letters of a question in the list."""


@dataclass(frozen=True, slots=True)
class Explorer:
    """Rankings side by side, over the questions that they share."""

    queries: pl.DataFrame
    """query_id, workspace_id, conversation_id, category, text, asked_at, evidence."""
    columns: Sequence[ShownRanking]
    """The first is what is looked at, the second what it is held against at first."""
    about: Mapping[str, str]
    """Name -> what a bug report says of the page: dataset, configuration, commit."""
    notes: Sequence[str] = field(default_factory=tuple)
    """What is missing, and what would bring it."""

    def pack(self, blocks: Blocks, texts: Texts) -> None:
        """Write the blocks of the explorer."""
        measures = shown_measures(self.columns)
        values = [_values(column, measures) for column in self.columns]
        ranked = [column.by_query() for column in self.columns]
        folding = Folding(texts)
        for number, column in enumerate(self.columns):
            if column.insight is not None:
                folding.add(number, column.insight)
        rows, listed, needed = [], [], set[int]()
        for query in self.queries.iter_rows(named=True):
            told = self._question(query, ranked, texts, folding)
            needed.update(told["evidence"])
            rows.append(told)
            query_id = query["query_id"]
            listed.append(
                (
                    query_id,
                    query["category"] or "",
                    _preview(query["text"]),
                    len(told["evidence"]),
                    [of_column.get(query_id, []) for of_column in values],
                    [None if one.insight is None else one.insight.lost(query_id) for one in self.columns],
                )
            )
        blocks.add_series("q", parted(rows, [1] * len(rows), _AT_ONCE))
        is_deep = any(column.insight is not None for column in self.columns)
        starts = folding.pack(blocks) | texts.pack(blocks, None if is_deep else needed)
        directions = {name: way for column in self.columns for name, way in column.directions.items()}
        blocks.add(
            "index",
            {
                "columns": [redacted(column.name) for column in self.columns],
                "measures": measures,
                "lower": [directions.get(measure) == "lower" for measure in measures],
                "at_once": _AT_ONCE,
                "questions": listed,
                "starts": starts,
                "conversations": texts.conversations,
                "folded": [(one["id"], one["workspace"], one["column"]) for one in folding.conversations],
                "about": dict(self.about),
                "notes": list(self.notes),
                "unseen": list(REASONS),
            },
        )
        for number, one in enumerate(folding.conversations):
            blocks.add(f"c{number}", one)

    def _question(
        self,
        query: Mapping[str, Any],
        ranked: Sequence[Mapping[str, list[dict[str, Any]]]],
        texts: Texts,
        folding: Folding,
    ) -> dict[str, Any]:
        workspace, query_id = query["workspace_id"], query["query_id"]
        evidence = [texts.message(workspace, message_id) for message_id in query["evidence"] or ()]
        insights = [column.insight for column in self.columns]
        return {
            "text": redacted(query["text"]),
            "asked_at": None if query["asked_at"] is None else f"{query['asked_at']:%Y-%m-%d %H:%M}",
            "workspace": workspace,
            "evidence": evidence,
            "rankings": [
                _ranking(found.get(query_id, []), set(evidence), texts, {} if one is None else one.documents)
                for found, one in zip(ranked, insights, strict=True)
            ],
            "ladders": [
                []
                if one is None
                else [
                    ladder_told(ladder, workspace, texts, one.documents.get((workspace, ladder.document_id or "")))
                    for ladder in one.ladders.get(query_id, ())
                ]
                for one in insights
            ],
            "contexts": [
                []
                if one is None
                else [folding.context(number, workspace, shown) for shown in one.contexts.get(query_id, ())]
                for number, one in enumerate(insights)
            ],
        }


def _ranking(
    rows: Sequence[Mapping[str, Any]],
    evidence: set[int],
    texts: Texts,
    stored: Mapping[tuple[str, str], StoredDocument],
) -> list[tuple[Any, ...]]:
    """Document, rank, score, messages of evidence in it: the first ranks, and those below that hold evidence."""
    found = []
    for row in rows:
        workspace, sources = row["workspace_id"], row["source_message_ids"] or ()
        held = (*sources, *(row["twin_message_ids"] or ()))
        gold = [number for source in held if (number := texts.message(workspace, source)) in evidence]
        if row["rank"] <= _DEPTH or gold:
            number = texts.document(
                workspace, row["document_id"], sources, row["tokens"], stored.get((workspace, row["document_id"]))
            )
            found.append((number, row["rank"], row["score"], list(dict.fromkeys(gold))))
    return found


def _values(column: ShownRanking, measures: Sequence[str]) -> dict[str, list[float | None]]:
    """Query id -> a value for each measure."""
    found: dict[str, list[float | None]] = {}
    place = {measure: i for i, measure in enumerate(measures)}
    told = column.values.filter(pl.col("measure").is_in(measures))
    for query_id, measure, value in told.select("query_id", "measure", "value").iter_rows():
        found.setdefault(query_id, [None] * len(measures))[place[measure]] = round(value, 4)
    return found


def _preview(text: str) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= _PREVIEW else f"{plain[: _PREVIEW - 1]}…"
