"""Candidates that those have said whom a query names."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl

from lcm.protocols.retrieval import Batch, Branch, Raw
from lcm.retrieval.ranking.evidence.talk import talk_of
from lcm.retrieval.source.candidates import CANDIDATE_SCHEMA, asked, check_branch
from lcm.retrieval.source.dense import Dense


@dataclass(frozen=True, slots=True)
class BySpeaker:
    """What a branch finds in the documents of those speakers whom a query names, and in no others.

    A query that names none of those who speak has no candidates here. Who speaks stands at the beginning of a document.
    """

    branch: Branch = field(default_factory=Dense)

    def __post_init__(self) -> None:
        check_branch("branch", self.branch)

    @property
    def needs_vectors(self) -> bool:
        return self.branch.needs_vectors

    @property
    def asks(self) -> tuple[str, ...]:
        return asked(self.branch)

    @property
    def gives(self) -> Raw:
        return self.branch.gives

    def candidates(self, batch: Batch) -> pl.DataFrame:
        found = [self.branch.candidates(part) for part in _by_named(batch)]
        if len(found) < 2:
            return found[0] if found else pl.DataFrame(schema=CANDIDATE_SCHEMA)
        order = batch.queries.select("query_id").with_row_index("_query")
        rows = pl.concat(found).join(order, on="query_id", maintain_order="left")
        return rows.sort("_query", maintain_order=True).drop("_query")


def _by_named(batch: Batch) -> Iterator[Batch]:
    """The queries that name the same speakers, and what these have said."""
    talk = talk_of(batch)
    groups: dict[frozenset[str], list[int]] = {}
    for row, text in enumerate(batch.queries["text"]):
        if named := talk.speakers.named(text):
            groups.setdefault(named, []).append(row)
    for named, rows in groups.items():
        is_theirs = np.isin(talk.authors, [talk.talks.authors[author] for author in named])
        documents = batch.documents.filter(pl.Series(is_theirs[talk.turns]))
        yield replace(
            batch,
            queries=batch.queries[rows],
            vectors=batch.vectors[rows],
            documents=documents,
            allowed=documents["document_id"].to_list(),
        )
