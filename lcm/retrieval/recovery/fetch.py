"""Where an answer has failed, the raw turns that may mend it come behind it."""

import logging
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import polars as pl

from lcm.checks import check_range
from lcm.protocols.retrieval import Batch, Recovery
from lcm.records.document import TURN_KINDS
from lcm.records.query import Recalled
from lcm.retrieval.frames import beside
from lcm.retrieval.lookup import KeptBeside
from lcm.retrieval.ranking.ordering import best_first
from lcm.retrieval.source.candidates import describe, laid_out
from lcm.retrieval.source.indexes import dense_branch

_MARKS = ("deferred", "is_recovered")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Fetch:
    """Judges each answer as `recovery` does, and adds turns by cosine, which is their score: behind every other row,
    marked `is_recovered`.

    A failed answer gets turns of the asker's own session, also those that are not durable; one asked where nothing was
    said yet the turns of users, wherever they said them. Of each, so many as asked for that the answer does not hold,
    and as many more as it holds: who packs them may have chosen some already.

    Source: libravdb memory 1.4.4: max(topK, 4) turns of the session, max(4 topK, 8) of users; topK is 8.
    """

    recovery: Recovery
    session_k: int = 8
    user_k: int = 32

    def __post_init__(self) -> None:
        check_range(self, "session_k", "user_k", ge=1)

    @property
    def is_off(self) -> bool:
        """Whether nothing is ever fetched."""
        return self.recovery.is_off

    @property
    def needs_vectors(self) -> bool:
        return not self.is_off

    def expand(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        """Add what was recovered; nothing, with a warning that is counted, where the queries could not be embedded."""
        if self.is_off:
            return frame
        names = frame.columns
        marked = beside(
            frame, [pl.Series(name, [False] * len(frame), pl.Boolean) for name in _MARKS if name not in names]
        )
        if batch.embedding_error is not None:
            _log.warning("nothing is recovered, for the queries have no vectors: %s", batch.embedding_error)
            batch.incidents["recovery without vectors"] += len(batch.queries)
            return marked
        turns, answers = _turns_of(batch), _answers(marked)
        held = {query_id: {one.document_id for one in answer} for query_id, answer in answers.items()}
        found: list[_Found] = []
        for asker, positions in _askers(batch).items():
            has_session = batch.is_in_session or turns.holds(asker)
            ids = batch.queries["query_id"]
            said = {at: self.recovery.signals(answers.get(ids[at], ()), has_session) for at in positions}
            failed = [at for at, signals in said.items() if signals.has_failed]
            elsewhere = [at for at, signals in said.items() if signals.is_elsewhere]
            found += _nearest(batch, failed, turns.of(asker), self.session_k, held)
            found += _nearest(batch, elsewhere, turns.users, self.user_k, held)
        return _beside(marked, found, batch) if found else marked


class _Asker(NamedTuple):
    """Whose session it is: a conversation where the query names no session; nobody's where it names neither."""

    session_id: str | None
    conversation_id: str | None


class _Found(NamedTuple):
    """A turn for a query."""

    position: int
    """Of the query in its batch."""
    document_id: str
    cosine: float
    dense_rank: int
    index_tier: int | None


@dataclass(frozen=True, slots=True)
class _Turns:
    """The ids of turns that a batch knows: of users, and by where they were said."""

    users: tuple[str, ...]
    of_sessions: Mapping[str, tuple[str, ...]]
    of_conversations: Mapping[str, tuple[str, ...]]
    places: frozenset[tuple[str, str]]
    """`session` or `conversation` and its id, of every document that is seen, be it a turn or not."""

    def of(self, asker: _Asker) -> tuple[str, ...]:
        """What was said where somebody asks."""
        if asker.session_id is not None:
            return self.of_sessions.get(asker.session_id, ())
        return () if asker.conversation_id is None else self.of_conversations.get(asker.conversation_id, ())

    def holds(self, asker: _Asker) -> bool:
        """Whether any document is of where somebody asks."""
        if asker.session_id is not None:
            return ("session", asker.session_id) in self.places
        return asker.conversation_id is not None and ("conversation", asker.conversation_id) in self.places


def _turns_of(batch: Batch) -> _Turns:
    """Found once for the same documents."""
    known = _known(batch.documents)
    if not known or known[0][0]() is not batch.turns:
        known[:] = [(_nothing if batch.turns is None else weakref.ref(batch.turns), _laid_out(batch))]
    return known[0][1]


def _nothing() -> None:
    """Stands for a reference to a frame that there is not."""


_known: KeptBeside[pl.DataFrame, list[tuple[Callable[[], pl.DataFrame | None], _Turns]]] = KeptBeside(lambda _: [], 16)


def _laid_out(batch: Batch) -> _Turns:
    columns = ("document_id", "kind", "role", "session_id", "conversation_id")
    known = batch.documents.select(columns)
    places = {("session", name) for name in known["session_id"].unique() if name is not None}
    places |= {("conversation", name) for name in known["conversation_id"].unique() if name is not None}
    if batch.turns is not None:
        known = pl.concat([known, batch.turns.select(columns)])
    turns = known.filter(pl.col("kind").is_in(TURN_KINDS))
    users = turns.filter((pl.col("role") == "user") | (pl.col("kind") == "exchange"))

    def by(column: str) -> dict[str, tuple[str, ...]]:
        groups = turns.drop_nulls(column).group_by(column, maintain_order=True).agg("document_id")
        return {name: tuple(ids) for name, ids in groups.iter_rows()}

    return _Turns(tuple(users["document_id"]), by("session_id"), by("conversation_id"), frozenset(places))


def _askers(batch: Batch) -> dict[_Asker, list[int]]:
    """The queries of each session, by their positions in the batch."""
    groups: dict[_Asker, list[int]] = {}
    for position, row in enumerate(batch.queries["session_id", "conversation_id"].iter_rows()):
        groups.setdefault(_Asker(*row), []).append(position)
    return groups


def _answers(frame: pl.DataFrame) -> dict[str, list[Recalled]]:
    """The answers that the rows are so far, by query id, best first; without texts."""
    columns = [
        "query_id", "document_id", "kind", "created_at", "score", "cosine", "scope_class", "confidence", "index_tier",
    ]  # fmt: skip
    answers: dict[str, list[Recalled]] = {}
    for query_id, document_id, kind, created_at, score, cosine, scope_class, confidence, tier in best_first(frame)[
        columns
    ].iter_rows():
        answers.setdefault(query_id, []).append(
            Recalled(
                document_id,
                "",
                kind,
                (),
                created_at,
                score or 0.0,
                cosine or 0.0,
                scope_class=scope_class,
                confidence=confidence or 0.0,
                index_tier=tier,
            )
        )
    return answers


def _nearest(
    batch: Batch, positions: Sequence[int], turns: tuple[str, ...], k: int, held: Mapping[str, set[str]]
) -> Iterator[_Found]:
    """The turns nearest to some queries of the batch, of those that their answers do not hold: so many as asked for,
    and as many more as the answer holds documents."""
    if not positions or not turns:
        return
    places, ids = list(positions), batch.queries["query_id"]
    answers = [held.get(ids[at], set()) for at in places]
    most = min(len(turns), 2 * (k + max(map(len, answers))))
    part = replace(batch, queries=batch.queries[places], vectors=batch.vectors[places], allowed=turns)
    rows = dense_branch(part, most)
    tiers = rows["index_tier"].to_list() if "index_tier" in rows.columns else [None] * len(rows)
    counts = [0] * len(places)
    told = (rows[name].to_list() for name in ("query", "document_id", "cosine", "dense_rank"))
    for query, document_id, cosine, rank, tier in zip(*told, tiers, strict=True):
        if document_id not in answers[query] and counts[query] < k + len(answers[query]):
            counts[query] += 1
            yield _Found(places[query], document_id, cosine, rank, tier)


def _beside(frame: pl.DataFrame, found: Sequence[_Found], batch: Batch) -> pl.DataFrame:
    """The frame with the turns that were found, those of each query together and the added ones last."""
    once = list({(one.position, one.document_id): one for one in reversed(found)}.values())[::-1]
    positions, ids, cosines, ranks, tiers = zip(*once, strict=True)
    asked = batch.queries["query_id", "asked_at"][pl.Series(positions, dtype=pl.UInt32)]
    added = beside(
        asked,
        [
            pl.Series("document_id", ids, pl.String),
            pl.Series("cosine", cosines, pl.Float64),
            pl.Series("score", cosines, pl.Float64),
            pl.Series("dense_rank", ranks, pl.Int64),
            pl.Series("index_tier", tiers, pl.Int64),
            *(pl.Series(name, [True] * len(ids), pl.Boolean) for name in _MARKS),
        ],
    )
    described = describe(added, batch)
    whole = frame.vstack(laid_out(described, frame.schema))
    if len(batch.queries) == 1:
        return whole
    order = batch.queries.select("query_id").with_row_index("_at")
    placed = whole.join(order, on="query_id", how="left", maintain_order="left")
    return placed.sort("_at", maintain_order=True).drop("_at")
