"""Where an answer has failed, the raw turns that may mend it come behind it; how they are packed."""

import logging
import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Protocol

import numpy as np
import polars as pl

from lcm.checks import check_range
from lcm.protocols.contract import Contract, contract_of
from lcm.protocols.retrieval import Batch, Columns, Recovery, Signals, Truths
from lcm.records.document import TURN_KINDS
from lcm.records.query import Recalled
from lcm.retrieval.frames import beside, best_first, taken, with_rows
from lcm.retrieval.recovery.question import TemporalQueries
from lcm.retrieval.recovery.turns import RawUserRanking, SemanticSlots, TemporalOrder, TemporalRanking
from lcm.retrieval.source.indexes import dense_branch, describe
from lcm.retrieval.terms import Terms

_MARKS = ("deferred", "is_recovered")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class NoRecovery:
    """No answer has ever failed."""

    contract = Contract(is_off=True)

    def signals(self, answer: Sequence[Recalled], has_session: bool) -> Signals:
        return Signals(False, False, False, False)

    def reserve_tokens(self, prompt: str, signals: Signals, budget_tokens: int) -> int:
        return 0

    def order(
        self, prompt: str, recovered: Sequence[Recalled], tokens: Sequence[int], reserve_tokens: int, now: datetime
    ) -> list[int]:
        return []


@dataclass(frozen=True, slots=True)
class FailureRule:
    """Three signals about an answer, and one about where it was asked.

    From the widest index tier: some document was found there, so the narrow ones were not sure. Weak: the best score
    is below `floor_score`. Vague: at least `min_top_k` documents came, the first `min_top_k` are all summaries, and
    the mean of their confidence is below `min_mean_confidence`. Elsewhere: there is nothing of the asker's own session,
    neither at hand nor in the answer.

    Of an empty answer none of the first three holds. Source: libravdb memory 1.4.4.
    """

    floor_score: float = 0.15
    min_top_k: int = 4
    min_mean_confidence: float = 0.5

    def __post_init__(self) -> None:
        check_range(self, "floor_score")
        check_range(self, "min_top_k", ge=1)
        check_range(self, "min_mean_confidence", ge=0, le=1)

    def signals(self, answer: Sequence[Recalled], has_session: bool, widest_tier: int) -> Signals:
        """Judge an answer, best first.

        Args:
            answer: without what was recovered.
            has_session: something of the asker's own session is at hand, a turn or what was made of turns.
            widest_tier: the width of the widest index tier.
        """
        first = answer[: self.min_top_k]
        return Signals(
            is_from_widest=any(document.index_tier == widest_tier for document in answer),
            is_weak=bool(answer) and answer[0].score < self.floor_score,
            is_vague=len(first) == self.min_top_k
            and all(document.kind == "summary" for document in first)
            and sum(document.confidence for document in first) / len(first) < self.min_mean_confidence,
            is_elsewhere=not has_session and all(document.scope_class != "session" for document in answer),
        )


@dataclass(frozen=True, slots=True)
class Reserve:
    """min(budget, max(floor(fraction * budget), least_tokens), most_tokens), and of a question that compares two events
    min(budget, max(reserve, ceil(comparison_factor * reserve))): it needs a witness of each.

    Source: libravdb memory 1.4.4.
    """

    fraction: float = 0.1
    least_tokens: int = 16
    most_tokens: int = 128
    comparison_factor: float = 1.8
    """1 = a comparison gets no more than another question."""

    def __post_init__(self) -> None:
        check_range(self, "fraction", ge=0, le=1)
        if not 0 <= self.least_tokens <= self.most_tokens:
            raise ValueError(f"least_tokens must be in [0, most_tokens = {self.most_tokens}], got {self.least_tokens}")
        check_range(self, "comparison_factor", ge=1)

    def tokens(self, budget_tokens: int, *, is_comparison: bool) -> int:
        if budget_tokens <= 0:
            return 0
        reserve = min(
            budget_tokens, max(math.floor(self.fraction * budget_tokens), self.least_tokens), self.most_tokens
        )
        if is_comparison:
            reserve = min(budget_tokens, max(reserve, math.ceil(self.comparison_factor * reserve)))
        return reserve


class HasDim(Protocol):
    """What is asked of an embedder: how wide its vectors are."""

    @property
    def dim(self) -> int: ...


@dataclass(frozen=True, slots=True)
class RawTurnRecovery:
    """Fires on a failed answer, keeps a reserve of the budget, and ranks what was fetched.

    Turns of the asker's own session come by cosine. Turns of other sessions are ranked by `temporal`, where the
    question is about time and names events that can be told apart, else by `raw_user`. All are shown by score, a pair
    of witnesses first, or all that `temporal` chose for the events they speak of.

    Source: libravdb memory 1.4.4.
    """

    embedder: HasDim
    """Its width is that of the widest index tier."""
    failure: FailureRule = field(default_factory=FailureRule)
    reserve: Reserve = field(default_factory=Reserve)
    compared_by: Terms = field(default_factory=Terms)
    raw_user: RawUserRanking = field(default_factory=RawUserRanking)
    queries: TemporalQueries = field(default_factory=TemporalQueries)
    temporal: TemporalRanking | SemanticSlots = field(default_factory=TemporalRanking)
    puts_pair_first: bool = True
    """False: a pair of witnesses stands where its scores put it."""
    puts_chosen_first: bool = False
    """The turns that `temporal` chose, its pair among them, come first in the order of choosing. False: as in the
    original they stand where their scores put them, and choosing them changes nothing."""

    def signals(self, answer: Sequence[Recalled], has_session: bool) -> Signals:
        return self.failure.signals(answer, has_session, self.embedder.dim)

    def reserve_tokens(self, prompt: str, signals: Signals, budget_tokens: int) -> int:
        if not (signals.has_failed or signals.is_elsewhere):
            return 0
        question = self.queries.read(prompt, self.compared_by)
        return self.reserve.tokens(budget_tokens, is_comparison=question.is_selected and question.is_comparison)

    def order(
        self, prompt: str, recovered: Sequence[Recalled], tokens: Sequence[int], reserve_tokens: int, now: datetime
    ) -> list[int]:
        elsewhere = [place for place, turn in enumerate(recovered) if turn.scope_class != "session"]
        turns = [recovered[place] for place in elsewhere]
        scores = [turn.score for turn in recovered]
        question = self.queries.read(prompt, self.compared_by)
        if question.is_selected:
            costs = [tokens[place] for place in elsewhere]
            ranked = self.temporal.rank(question, turns, costs, reserve_tokens, now, self.compared_by)
            order = ranked.order
            preferred = ranked.chosen if self.puts_chosen_first else self._pair(ranked)
            found = [one.score for one in ranked.considered]
        else:
            raw = self.raw_user.scores(prompt, turns, now, self.compared_by)
            order, preferred = tuple(self.raw_user.order(turns, raw)), ()
            found = [one.score for one in raw]
        for place, score in zip(elsewhere, found, strict=True):
            scores[place] = score
        own = [place for place, turn in enumerate(recovered) if turn.scope_class == "session"]
        by_score = sorted([*own, *(elsewhere[place] for place in order)], key=lambda place: -scores[place])
        first = [elsewhere[place] for place in preferred]
        return first + [place for place in by_score if place not in first]

    def _pair(self, ranked: TemporalOrder) -> tuple[int, ...]:
        return ranked.pair or () if self.puts_pair_first else ()


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
    def contract(self) -> Contract:
        is_off = contract_of(self.recovery).is_off
        return Contract(is_off=is_off, needs_vectors=not is_off)

    def expand(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        """Add what was recovered; nothing, with a warning that is counted, where the queries could not be embedded."""
        if self.contract.is_off:
            return frame
        names = frame.columns
        marked = beside(
            frame, [pl.Series(name, [False] * len(frame), pl.Boolean) for name in _MARKS if name not in names]
        )
        if batch.embedding_error is not None:
            _log.warning("nothing is recovered, for the queries have no vectors: %s", batch.embedding_error)
            batch.incidents["recovery without vectors"] += len(batch.queries)
            return marked
        answers, ids = _answers(marked), batch.queries["query_id"].to_list()
        held = [{one.document_id for one in answers.get(query_id, ())} for query_id in ids]
        found: list[pl.DataFrame] = []
        for asker, queries in _askers(batch).items():
            has_session = batch.is_in_session or bool(_are_of(asker, Columns(batch.documents)).any())
            signals = {at: self.recovery.signals(answers.get(ids[at], ()), has_session) for at in queries}
            failed = [at for at in queries if signals[at].has_failed]
            elsewhere = [at for at in queries if signals[at].is_elsewhere]
            for some, are_meant, k in (
                (failed, partial(_are_of, asker), self.session_k),
                (elsewhere, _are_of_users, self.user_k),
            ):
                if some and (turns := _turns(batch, are_meant)):
                    found.append(_nearest(batch, some, turns, k, held))
        if not found:
            return marked
        rows = found[0]
        if len(found) > 1:
            rows = pl.concat(found).unique(["query_id", "document_id"], keep="first", maintain_order=True)
        marks = [pl.Series(name, [True] * len(rows), pl.Boolean) for name in _MARKS]
        added = describe(beside(rows, [*marks, rows["cosine"].alias("score")]), batch)
        return with_rows(marked, added, batch.queries["query_id"])


_Asker = tuple[str | None, str | None]
"""Whose session it is, and in which conversation."""


def _askers(batch: Batch) -> dict[_Asker, list[int]]:
    """The queries of each session, by their positions in the batch."""
    groups: dict[_Asker, list[int]] = {}
    for position, asker in enumerate(batch.queries["session_id", "conversation_id"].iter_rows()):
        groups.setdefault(asker, []).append(position)
    return groups


def _turns(batch: Batch, are_meant: Callable[[Columns], Truths]) -> tuple[str, ...]:
    """Some of the turns that a batch knows, whether it sees them or not."""
    ids: list[str] = []
    for frame in (batch.documents, batch.turns):
        if frame is not None:
            columns = Columns(frame)
            ids += (
                frame["document_id"].filter(pl.Series(columns.are("kind", *TURN_KINDS) & are_meant(columns))).to_list()
            )
    return tuple(ids)


def _are_of(asker: _Asker, columns: Columns) -> Truths:
    """Which are of where somebody asks: of the conversation where no session is named, of nowhere without either."""
    session_id, conversation_id = asker
    if session_id is not None:
        return columns.are("session_id", session_id)
    return columns.are("conversation_id", *([] if conversation_id is None else [conversation_id]))


def _are_of_users(columns: Columns) -> Truths:
    return columns.are("role", "user") | columns.are("kind", "exchange")


def _answers(frame: pl.DataFrame) -> dict[str, list[Recalled]]:
    """The answers that the rows are so far, by query id, best first; without texts."""
    columns = (
        "query_id", "document_id", "kind", "created_at", "score", "cosine", "scope_class", "confidence", "index_tier",
    )  # fmt: skip
    answers: dict[str, list[Recalled]] = {}
    rows = best_first(frame)[columns].iter_rows()
    for query_id, document_id, kind, created_at, score, cosine, scope_class, confidence, tier in rows:
        told = Recalled(
            document_id, "", kind, (), created_at, score or 0.0, cosine or 0.0, "", scope_class, confidence or 0.0, tier
        )
        answers.setdefault(query_id, []).append(told)
    return answers


def _nearest(
    batch: Batch, queries: Sequence[int], turns: tuple[str, ...], k: int, held: Sequence[Collection[str]]
) -> pl.DataFrame:
    """The turns nearest to some queries of the batch, of those that their answers do not hold: so many as asked for,
    and as many more as the answer holds documents."""
    asked = replace(
        batch, queries=taken(batch.queries, np.array(queries)), vectors=batch.vectors[queries], allowed=turns
    )
    rows = dense_branch(asked, min(len(turns), 2 * (k + max(len(held[at]) for at in queries))))
    kept, counts = [], [0] * len(queries)
    for row, (query, document_id) in enumerate(
        zip(rows["query"].to_list(), rows["document_id"].to_list(), strict=True)
    ):
        answer = held[queries[query]]
        if document_id not in answer and counts[query] < k + len(answer):
            counts[query] += 1
            kept.append(row)
    found = taken(rows, np.array(kept, np.int64))
    columns = [column for column in found if column.name != "query"]
    return beside(asked.queries["query_id", "asked_at"][found["query"]], columns)
