"""Candidates of any number of branches, side by side; what one branch lends; and, as controls, by age and by chance."""

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from lcm.checks import check_choice, check_range
from lcm.errors import LcmError
from lcm.protocols.contract import Contract, contract_of
from lcm.protocols.retrieval import Batch, Branch, Raw
from lcm.retrieval.ranking.evidence.talk import talk_of
from lcm.retrieval.source.indexes import CANDIDATE_SCHEMA, RANKED_BY, Dense, Lexical, check_branch, tried

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_KEYS = ["query_id", "document_id"]
_SESSION = ("conversation_id", "session_id")
_OF_DEFAULT = {"dense": "cosine", "lexical": "bm25"}
"""What the two branches give that every candidate frame has columns for."""
_DEFAULT_COLUMNS = {"dense": ("cosine", "index_tier", "dense_rank"), "lexical": ("bm25", "contained", "lexical_rank")}


def _default() -> dict[str, Branch | None]:
    return {"dense": Dense(), "lexical": Lexical(), "session": BySession(), "speaker": BySpeaker()}


@dataclass(frozen=True, slots=True)
class Branches:
    """What each branch finds, each with a score and a rank of its own: NAME_rank, and NAME_cosine, NAME_bm25 or
    NAME_score; `dense` and `lexical` fill the columns that every source has, and are found as `Hybrid` finds them.

    A document that is not in a branch's pool lacks its columns. Where a branch fails the others answer: a warning is
    logged and the failure counted. Where all fail, so does the search.

    Source: ours.
    """

    branches: Mapping[str, Branch | None] = field(default_factory=_default)
    """Name -> a source of one order; None = there is no such branch."""

    def __post_init__(self) -> None:
        for name, branch in self._given.items():
            if not _NAME.fullmatch(name):
                raise ValueError(f"branches must be named in small letters, digits and _, got {name!r}")
            check_branch(f"branches.{name}", branch)
            if branch.gives != _OF_DEFAULT.get(name, branch.gives):
                raise ValueError(
                    f"branches.{name} must give {_OF_DEFAULT[name]}, got {branch.gives}: name it otherwise"
                )
        if not self._given:
            raise ValueError("branches must name at least one, got none")

    @property
    def contract(self) -> Contract:
        told = [contract_of(branch) for branch in self._given.values()]
        return Contract(
            asks=tuple(dict.fromkeys(index for branch in told for index in branch.asks)),
            fills=tuple(_OF_DEFAULT[name] for name in self._given if name in _OF_DEFAULT),
            needs_vectors=any(branch.needs_vectors for branch in told),
        )

    def candidates(self, batch: Batch) -> pl.DataFrame:
        rows, errors, columns = (
            pl.DataFrame(schema=dict.fromkeys(_KEYS, pl.String)),
            dict[str, Exception](),
            list[str](),
        )
        for name, branch in self._given.items():
            found, error = tried(name, partial(branch.candidates, batch), batch, "the others answer without it")
            if error is not None:
                errors[name] = error
            own = _columns(name, branch)
            kept = (pl.DataFrame(schema=CANDIDATE_SCHEMA) if found is None else found).select(*_KEYS, **own)
            rows = rows.join(kept, on=_KEYS, how="full", coalesce=True, maintain_order="left_right")
            columns += own
        if len(errors) == len(self._given):
            told = "; ".join(f"{name}: {error}" for name, error in errors.items())
            raise LcmError(f"every branch failed: {told}") from error
        order = batch.queries.select("query_id", "asked_at").with_row_index("_query")
        rows = rows.join(order, on="query_id", maintain_order="left").sort("_query", maintain_order=True)
        absent = [pl.lit(None, kind).alias(name) for name, kind in CANDIDATE_SCHEMA.items() if name not in rows.columns]
        further = [name for name in columns if name not in CANDIDATE_SCHEMA]
        return rows.with_columns(absent).select(*CANDIDATE_SCHEMA, *further)

    @property
    def _given(self) -> dict[str, Branch]:
        return {name: branch for name, branch in self.branches.items() if branch is not None}


def _columns(name: str, branch: Branch) -> dict[str, pl.Expr]:
    """The columns of a branch among the candidates, and what they are of its own frame."""
    if name in _DEFAULT_COLUMNS:
        return {column: pl.col(column) for column in _DEFAULT_COLUMNS[name]}
    taken = (branch.gives, "contained") if branch.gives == "bm25" else (branch.gives,)
    return {f"{name}_{column}": pl.col(column) for column in taken} | {f"{name}_rank": RANKED_BY[branch.gives]}


@dataclass(frozen=True, slots=True)
class BySession:
    """Every document of a session has the score of the session: the best, or the sum, of what a branch gives its
    documents. Those of one session stand in the order that the branch gives them, then as they were said.

    A session of which the branch returns nothing is not returned.
    """

    branch: Branch = field(default_factory=Lexical)
    lends: Literal["best", "sum"] = "best"
    pool_size: int = 1000

    def __post_init__(self) -> None:
        check_branch("branch", self.branch)
        check_choice(self, lends=("best", "sum"))
        check_range(self, "pool_size", ge=1)

    @property
    def contract(self) -> Contract:
        return contract_of(self.branch)

    @property
    def gives(self) -> Raw:
        return self.branch.gives

    def candidates(self, batch: Batch) -> pl.DataFrame:
        raw = self.gives
        own = self.branch.candidates(batch).with_columns(_own=pl.int_range(pl.len()).over("query_id"))
        place = batch.documents.select("document_id", *_SESSION, _said=pl.int_range(pl.len()))
        scores = pl.col(raw, "contained")
        lent = scores.max() if self.lends == "best" else pl.when(scores.count() > 0).then(scores.sum())
        sessions = (
            own.join(place, on="document_id", maintain_order="left")
            .group_by("query_id", "asked_at", *_SESSION, maintain_order=True)
            .agg(lent)
        )
        rows = (
            sessions.join(place, on=_SESSION, nulls_equal=True, maintain_order="left_right")
            .join(own.select("query_id", "document_id", "_own"), on=["query_id", "document_id"], how="left")
            .with_columns(_query=pl.col("query_id").rle_id())
            .sort(
                *("_query", raw, "contained", "_own", "_said"),
                descending=[False, True, True, False, False],
                nulls_last=True,
            )
            .with_columns(_rank=pl.int_range(1, pl.len() + 1, dtype=pl.Int64).over("_query"))
            .filter(pl.col("_rank") <= self.pool_size)
        )
        if raw != "score":
            rows = rows.rename({"_rank": "dense_rank" if raw == "cosine" else "lexical_rank"})
        return rows.match_to_schema(CANDIDATE_SCHEMA, missing_columns="insert", extra_columns="ignore")


@dataclass(frozen=True, slots=True)
class BySpeaker:
    """What a branch finds in the documents of those speakers whom a query names, and in no others.

    A query that names none of those who speak has no candidates here. Who speaks stands at the beginning of a document.
    """

    branch: Branch = field(default_factory=Dense)

    def __post_init__(self) -> None:
        check_branch("branch", self.branch)

    @property
    def contract(self) -> Contract:
        return contract_of(self.branch)

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


@dataclass(frozen=True, slots=True)
class Recent:
    """The last `pool_size` visible documents, newest first, the same for every query: the last-n control.

    Without a `pool_size` it is all of them: the whole-history control.
    """

    pool_size: int | None = 100
    gives: ClassVar[Raw] = "score"
    contract = Contract(asks=())

    def __post_init__(self) -> None:
        check_range(self, "pool_size", ge=1, or_null=True)

    def candidates(self, batch: Batch) -> pl.DataFrame:
        newest = batch.documents.select("document_id").reverse().slice(0, self.pool_size)
        ranked = newest.with_columns(score=1.0 / pl.int_range(1, pl.len() + 1))
        pairs = batch.queries.select("query_id", "asked_at").join(ranked, how="cross", maintain_order="left_right")
        return pairs.match_to_schema(CANDIDATE_SCHEMA, missing_columns="insert")


@dataclass(frozen=True, slots=True)
class Shuffled:
    """`pool_size` visible documents in an order drawn anew for each query: the random control.

    The order depends on the seed and the query's id, so a query's row never depends on its batch.
    """

    pool_size: int = 100
    seed: int = 0
    gives: ClassVar[Raw] = "score"
    contract = Contract(asks=())

    def __post_init__(self) -> None:
        check_range(self, "pool_size", ge=1)

    def candidates(self, batch: Batch) -> pl.DataFrame:
        document_ids = batch.documents["document_id"]
        size = min(self.pool_size, len(document_ids))
        orders = [self._order(query_id, len(document_ids))[:size] for query_id in batch.queries["query_id"]]
        asked = batch.queries.select("query_id", "asked_at")[np.repeat(np.arange(len(orders)), size)]
        rows = pl.DataFrame(
            {
                "query_id": asked["query_id"],
                "asked_at": asked["asked_at"],
                "document_id": document_ids.gather(np.concatenate([*orders, np.empty(0, np.int64)])),
                "score": np.tile(1.0 / np.arange(1, size + 1), len(orders)),
            }
        )
        return rows.match_to_schema(CANDIDATE_SCHEMA, missing_columns="insert")

    def _order(self, query_id: str, size: int) -> npt.NDArray[np.int64]:
        digest = hashlib.sha256(f"{self.seed}\x00{query_id}".encode()).digest()
        return np.random.default_rng(int.from_bytes(digest[:8])).permutation(size)
