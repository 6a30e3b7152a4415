"""What else says the words of an answer: shown with it, ranked nowhere."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from lcm.checks import check_range
from lcm.protocols.retrieval import Batch, Expansion, Stage
from lcm.retrieval.frames import beside
from lcm.retrieval.lookup import documents_of
from lcm.retrieval.ranking.ordering import best_first
from lcm.retrieval.ranking.pipeline import RELATED, passed
from lcm.retrieval.source.candidates import describe
from lcm.retrieval.source.indexes import Lexical, tried


@dataclass(frozen=True, slots=True)
class Related:
    """Look the whole text of each row up among the documents of its scope. The first that are no rows of the query
    themselves, and that the stages let through, stand in the row's column `related`, best first; order and scores stay.

    A lookup that fails is logged and counted, and leaves its row with none.

    Source: memory-lancedb-pro 1.1.0-beta.11, neighborEnrichment.
    """

    stages: Mapping[str, Stage | None]
    """By name what a found document passes before it counts, and what gives it its score; None is left out."""
    per_result: int = 0
    """Documents beside a row at most; 0 = none is looked for."""
    pool_size: int = 20
    """Documents that a lookup finds at most; fewer where few are wanted."""
    containment: bool = True
    """Where no word is found, look for the whole text inside the others."""
    reads = ()

    def __post_init__(self) -> None:
        check_range(self, "per_result", ge=0, le=5, is_whole=True)
        check_range(self, "pool_size", ge=1)

    def is_idle(self, before: Sequence[Stage | Expansion], behind: Sequence[Stage | Expansion]) -> bool:
        return self.per_result == 0

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        rows = best_first(frame)
        known = documents_of(batch, rows["document_id"], ["document_id", "text", "scope"])
        in_scope = {scope: _in_scope(batch, scope) for scope in known["scope"].unique()}
        ids = rows.group_by("query_id").agg("document_id")
        shown = {query_id: frozenset(ids) for query_id, ids in ids.iter_rows()}
        place = {query_id: at for at, query_id in enumerate(batch.queries["query_id"])}
        related = [
            self._beside(text, replace(in_scope[scope], queries=batch.queries[place[query_id]]), shown[query_id])
            for query_id, text, scope in zip(rows["query_id"], known["text"], known["scope"], strict=True)
        ]
        return beside(rows, [pl.Series("related", related, RELATED)])

    def _beside(self, text: str, batch: Batch, shown: Collection[str]) -> list[dict[str, Any]]:
        """What is related to a text, of what a batch sees, as `RELATED` holds it."""
        asked = replace(batch, queries=batch.queries.with_columns(text=pl.lit(text)))
        wanted = len(shown) + self.per_result + max(10, 4 * self.per_result)
        source = Lexical(min(wanted, self.pool_size), containment=self.containment)
        found, _ = tried("related", lambda: source.candidates(asked), asked, "an answer stands without")
        if found is None:
            return []
        rows = describe(found, asked)
        for name, stage in self.stages.items():
            rows = rows if stage is None else passed(name, stage, rows, asked)
        others = best_first(rows.filter(~pl.col("document_id").is_in(list(shown))))
        return others.head(self.per_result).select("document_id", "score").to_dicts()


def _in_scope(batch: Batch, scope: str) -> Batch:
    documents = batch.documents.filter(scope=scope)
    is_all = len(documents) == len(batch.documents)
    return batch if is_all else replace(batch, documents=documents, allowed=tuple(documents["document_id"]))
