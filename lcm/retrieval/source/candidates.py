"""The candidate frame: how the answers of the indexes become rows."""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Literal

import numpy as np
import polars as pl

from lcm.protocols.columns import Columns, Truths
from lcm.protocols.contract import contract_of
from lcm.protocols.retrieval import Batch, Branch, Source
from lcm.records.document import GLOBAL_SCOPE, SCOPE_CLASSES
from lcm.retrieval.frames import beside
from lcm.retrieval.lookup import documents_of, queries_of

CANDIDATE_SCHEMA: dict[str, pl.DataType] = {
    "query_id": pl.String(),
    "asked_at": pl.Datetime("ms", "UTC"),
    "document_id": pl.String(),
    "cosine": pl.Float64(),
    "bm25": pl.Float64(),
    "contained": pl.Float64(),
    "index_tier": pl.Int64(),
    "dense_rank": pl.Int64(),
    "lexical_rank": pl.Int64(),
    "score": pl.Float64(),
}
"""What every source returns: raw scores, 1-based ranks, null where that branch did not return the row. `contained` is
the score, in (0, 1), of a document that the lexical branch found by substring because no word was found;
`index_tier` the width that answered, of an index with several."""

POOLED = "pooled"
"""A column that a source gives all rows of pools: evidence is of them and of what stands around them, not of all that
is seen."""

FOUND_BY_SCHEMA: dict[str, pl.DataType] = {
    "query_id": pl.String(),
    "branch": pl.String(),
    "document_id": pl.String(),
    "rank": pl.Int64(),
    "score": pl.Float64(),
}
"""What each branch of a source found: its own 1-based ranks, and its raw scores."""

DESCRIBED_BY = (
    "kind", "category", "scope", "conversation_id", "session_id", "seq", "created_at", "last_accessed_at",
    "valid_until", "access_count", "importance", "confidence", "decay_tier", "temporal_type", "tokens", "length_utf16",
    "authority", "decay_rate",
)  # fmt: skip
"""What stages see of each document besides its raw scores and its `scope_class`; texts, vectors and hop targets are
asked of the batch."""

OF_USE = frozenset({"access_count", "last_accessed_at", "decay_tier"})
"""Of these, what changes where a document is used."""
OF_ANNOTATION = frozenset({"category", "importance", "temporal_type", "valid_until"})
"""Of these, what an annotation writes."""

SCOPE_CLASS = pl.Enum(SCOPE_CLASSES)
_CLASSES = pl.Series("scope_class", SCOPE_CLASSES, SCOPE_CLASS)
_SESSION, _DURABLE, _GLOBAL = map(SCOPE_CLASSES.index, ("session", "durable", "global"))

_KEYS = ["query", "document_id"]
_ASKED = ("query_id", "asked_at")
RANKED_BY = {
    "cosine": pl.col("dense_rank"),
    "bm25": pl.col("lexical_rank"),
    "score": pl.int_range(1, pl.len() + 1, dtype=pl.Int64).over("query_id"),
}
"""By what a source of one order gives: the 1-based rank of each of its rows."""
_OF_TWO = {"cosine": "dense_score", "bm25": "lexical_score"}
"""The raw scores of the two branches that every frame has, and the columns of the scores that stages make of them."""


def further_branches(frame: pl.DataFrame) -> list[str]:
    """The names of the branches that a frame has beside dense and lexical, in their order."""
    ranks = [column for column in frame.columns if column.endswith("_rank")]
    return [column.removesuffix("_rank") for column in ranks if column not in ("dense_rank", "lexical_rank")]


def scored_columns(frame: pl.DataFrame, raw: Literal["cosine", "bm25"]) -> dict[str, str]:
    """The columns of a frame that hold a raw score of this kind, of every branch, and for each that of its score."""
    further = (column for column in frame.columns if column.endswith(f"_{raw}"))
    return {raw: _OF_TWO[raw]} | {column: f"{column.removesuffix(raw)}score" for column in further}


def read_by(part: object) -> tuple[str, ...]:
    """The columns of documents that a stage or a decay says it reads; all, of one that does not say."""
    reads = contract_of(part).reads
    return tuple(DESCRIBED_BY) if reads is None else reads


def found_by(candidates: pl.DataFrame) -> pl.DataFrame:
    """Candidate rows as the answers of their branches: rows of `FOUND_BY_SCHEMA`, each branch best first.

    A source that orders its rows by nothing but a score of its own has none.
    """
    raw = {"dense": "cosine", "lexical": "bm25"}
    for name in further_branches(candidates):
        given = (f"{name}_{kind}" for kind in ("cosine", "bm25", "score"))
        raw[name] = next(column for column in given if column in candidates.columns)
    parts = [
        candidates.filter(pl.col(f"{name}_rank").is_not_null())
        .select("query_id", pl.lit(name).alias("branch"), "document_id", rank=f"{name}_rank", score=column)
        .sort(pl.col("query_id").rle_id(), "rank", maintain_order=True)
        for name, column in raw.items()
    ]
    return pl.concat([pl.DataFrame(schema=FOUND_BY_SCHEMA), *parts])


def branch(answers: Sequence[tuple[Sequence[str], Sequence[float]]], score: str, rank: str) -> pl.DataFrame:
    """Lay out the answers of one index, an (ids, scores) pair a query, as rows: query, document_id, score, rank.

    `query` is the position of the query in its batch. An id named twice keeps its first place and takes its last
    score and rank.
    """
    counts = [len(ids) for ids, _ in answers]
    ranks = [np.arange(1, count + 1) for count in counts]
    frame = pl.DataFrame(
        [
            pl.Series("query", np.repeat(np.arange(len(counts), dtype=np.uint32), counts)),
            pl.Series("document_id", list(chain.from_iterable(ids for ids, _ in answers)), pl.String),
            pl.Series(score, list(chain.from_iterable(scores for _, scores in answers)), pl.Float64),
            pl.Series(rank, np.concatenate([np.empty(0, np.int64), *ranks])),
        ]
    )
    if any(len(set(ids)) < len(ids) for ids, _ in answers):
        frame = frame.group_by(_KEYS, maintain_order=True).agg(pl.col(score).last(), pl.col(rank).last())
    return frame


def merge(batch: Batch, *branches: pl.DataFrame) -> pl.DataFrame:
    """Join branches into candidate rows, the queries in the order of the batch.

    Within a query: the rows of the first branch in their order, then those that only the next one found, in theirs.
    """
    rows = branches[0]
    for further in branches[1:]:
        rows = rows.join(further, on=_KEYS, how="full", coalesce=True, maintain_order="left_right")
        rows = rows.sort("query", maintain_order=True)
    asked = [batch.queries[name][rows["query"]] for name in _ASKED]  # a frame would go to Polars' threads
    return laid_out(beside(rows, asked), CANDIDATE_SCHEMA)


def laid_out(rows: pl.DataFrame, schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """The columns of a schema: those that the rows have, and null in all others."""
    names = rows.columns
    return pl.DataFrame(
        [rows[name] if name in names else _nothing(name, dtype, len(rows)) for name, dtype in schema.items()]
    )


def _nothing(name: str, dtype: pl.DataType, rows: int) -> pl.Series:
    return pl.Series(name, [None], dtype).new_from_index(0, rows)


def describe(candidates: pl.DataFrame, batch: Batch) -> pl.DataFrame:
    """Put the documents' columns beside their candidate rows, and what each document is to its query.

    A row whose document the batch does not know is dropped; columns that the rows have already are read anew.
    """
    known = documents_of(batch, candidates["document_id"], ["document_id", *DESCRIBED_BY])
    again = [name for name in (*DESCRIBED_BY, "scope_class") if name in candidates.columns]
    rows = candidates.drop(again) if again else candidates
    if known["document_id"].has_nulls():
        rows, known = rows.filter(is_known := known["document_id"].is_not_null()), known.filter(is_known)
    return _classed(rows.hstack([column for column in known if column.name != "document_id"]), batch)


def _classed(rows: pl.DataFrame, batch: Batch) -> pl.DataFrame:
    """Add `scope_class`: `session` of what was said in the asker's own session (conversation, where the query names no
    session); of the rest `global` what is shared, else `durable`.
    """
    is_shared = Columns(rows).are("scope", GLOBAL_SCOPE) & (batch.scopes is not None)
    classes = np.where(_are_own(rows, batch), _SESSION, np.where(is_shared, _GLOBAL, _DURABLE)).astype(np.uint32)
    return rows.hstack([_CLASSES[pl.Series(classes)]])


def _are_own(rows: pl.DataFrame, batch: Batch) -> Truths:
    """Which rows were said in the session of their query, or in its conversation where a session is unknown."""
    own = batch.queries.select("session_id", "conversation_id")
    if all(column.null_count() == len(column) for column in own):
        return np.zeros(len(rows), np.bool_)
    of_query = queries_of(rows, batch)
    told = rows["session_id"] == own["session_id"][of_query]
    if told.has_nulls():
        is_talk = rows["conversation_id"] == own["conversation_id"][of_query]
        told = told.zip_with(told.is_not_null(), is_talk)
    return np.asarray(told.to_numpy() == True)  # noqa: E712  # where nothing is known it is not the same


def filled(source: Source) -> tuple[str, ...]:
    """Which of cosine and bm25 a source has."""
    return (source.gives,) if isinstance(source, Branch) else contract_of(source).fills


def check_branch(key: str, value: object) -> None:
    """Refuse what gives no single order of documents.

    Raises:
        TypeError: naming the key, and what it holds.
    """
    if not isinstance(value, Branch):
        raise TypeError(f"{key} must be a source of one order (dense, lexical ...), got {value!r}")
