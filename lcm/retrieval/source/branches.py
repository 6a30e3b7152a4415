"""Candidates of any number of branches, side by side."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

import polars as pl

from lcm.errors import LcmError
from lcm.protocols.retrieval import Batch, Branch
from lcm.retrieval.source.by_session import BySession
from lcm.retrieval.source.by_speaker import BySpeaker
from lcm.retrieval.source.candidates import CANDIDATE_SCHEMA, RANKED_BY, asked, check_branch
from lcm.retrieval.source.dense import Dense
from lcm.retrieval.source.hybrid import tried
from lcm.retrieval.source.lexical import Lexical

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_KEYS = ["_query", "document_id"]
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
    def needs_vectors(self) -> bool:
        return any(branch.needs_vectors for _, branch in self._given.items())

    @property
    def asks(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(index for branch in self._given.values() for index in asked(branch)))

    @property
    def fills(self) -> tuple[str, ...]:
        return tuple(_OF_DEFAULT[name] for name in self._given if name in _OF_DEFAULT)

    def candidates(self, batch: Batch) -> pl.DataFrame:
        order = batch.queries.select("query_id", "asked_at").with_row_index("_query")
        rows, errors, further = pl.DataFrame(schema={"_query": pl.UInt32, "document_id": pl.String}), {}, list[str]()
        for name, branch in self._given.items():
            found, error = tried(name, partial(branch.candidates, batch), batch, "the others answer without it")
            if error is not None:
                errors[name] = error
            columns = _columns(name, branch)
            own = (pl.DataFrame(schema=CANDIDATE_SCHEMA) if found is None else found).select(
                "query_id", "document_id", **columns
            )
            placed = own.join(order, on="query_id", maintain_order="left").drop("query_id", "asked_at")
            rows = rows.join(placed, on=_KEYS, how="full", coalesce=True, maintain_order="left_right")
            further += [column for column in columns if column not in CANDIDATE_SCHEMA]
        if len(errors) == len(self._given):
            told = "; ".join(f"{name}: {error}" for name, error in errors.items())
            raise LcmError(f"every branch failed: {told}") from error
        rows = rows.sort("_query", maintain_order=True).join(order, on="_query", maintain_order="left")
        absent = [pl.lit(None, kind).alias(name) for name, kind in CANDIDATE_SCHEMA.items() if name not in rows.columns]
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
