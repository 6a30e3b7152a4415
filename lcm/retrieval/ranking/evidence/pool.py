"""Where much is seen, a pool: the documents that are worth a closer look, for evidence of these alone."""

from dataclasses import dataclass, replace
from datetime import date

import numpy as np
import numpy.typing as npt
import polars as pl

from lcm.checks import check_range
from lcm.protocols.columns import Places, numbers_of
from lcm.protocols.contract import Contract, contract_of
from lcm.protocols.retrieval import Batch, Source
from lcm.retrieval.frames import beside, places, query_runs, taken
from lcm.retrieval.ranking.evidence.talk import Talk, talk_of, told_apart
from lcm.retrieval.ranking.evidence.text_evidence import says_i, spans
from lcm.retrieval.source.candidates import POOLED, filled

_UNRANKED = 2**31
_NONE = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class Pool:
    """What a source finds; of a query that sees more than `whole_documents`, a pool of it, and what stands beside that.

    A pool holds the `best` documents of each branch of the source; as many as `speakers` more of what the source found
    by the one whom the query names, or by the user where it says I; `times` more of what was said in a time that it
    names; and the turns before and behind the first `neighbours` of each branch. Its rows have the column `pooled`:
    stages of evidence look at these, and at turns around them, and no longer at every document.

    Source: ours.
    """

    source: Source
    whole_documents: int = 4000
    best: int = 150
    speakers: int = 50
    times: int = 50
    neighbours: int = 20

    def __post_init__(self) -> None:
        check_range(self, "best", ge=1)
        check_range(self, "whole_documents", "speakers", "times", "neighbours", ge=0)

    @property
    def contract(self) -> Contract:
        return replace(contract_of(self.source), fills=filled(self.source))

    def candidates(self, batch: Batch) -> pl.DataFrame:
        found = self.source.candidates(batch)
        if len(batch.documents) <= self.whole_documents:
            return found
        talk, ids = talk_of(batch), batch.documents.select("document_id")
        numbers, ranks = talk.rows_of(batch.documents, found["document_id"]), _best_ranks(found)
        rows = {query_id: row for row, query_id in enumerate(batch.queries["query_id"].to_list())}
        kept, near, firsts = [_NONE], [_NONE], []
        first = 0
        for length, query_id in query_runs(found):
            here = slice(first, first + length)
            chosen, others = self._pooled(batch, rows[query_id], talk, numbers[here], ranks[here])
            kept.append(first + chosen)
            near.append(others)
            firsts.append(first)
            first += length
        queries = [np.repeat(firsts, list(map(len, parts[1:]))).astype(np.int64) for parts in (kept, near)]
        around = beside(taken(found.select("query_id", "asked_at"), queries[1]), taken(ids, np.concatenate(near)))
        pool = pl.concat([taken(found, np.concatenate(kept)), around], how="diagonal")
        pool = taken(pool, np.argsort(np.concatenate(queries), kind="stable"))
        return beside(pool, [pl.Series(POOLED, np.ones(len(pool), np.bool_))])

    def _pooled(self, batch: Batch, row: int, talk: Talk, numbers: Places, ranks: Places) -> tuple[Places, Places]:
        """Which rows of a query are in its pool, and the numbers of the documents beside them.

        Args:
            numbers: of the documents of its rows.
            ranks: the best rank of each in any branch, from 1.
        """
        text, asked_at = batch.queries["text"][row], batch.queries["asked_at"][row]
        turns = talk.turns[numbers]
        is_kept = ranks <= self.best
        for wanted, most in (
            (_is_by(talk, turns, text), self.speakers),
            (_is_then(talk, turns, text, asked_at.date()), self.times),
        ):
            further = np.flatnonzero(wanted & ~is_kept)
            is_kept[further[np.argsort(ranks[further], kind="stable")[:most]]] = True
        centres = turns[ranks <= self.neighbours]
        near = np.concatenate([talk.near(1)[centres], talk.near(-1)[centres]])
        is_near = np.zeros(len(talk.numbers), np.bool_)
        is_near[talk.documents_of(told_apart(near[near >= 0], len(talk))[0])[0]] = True
        is_near[numbers[is_kept & (numbers >= 0)]] = False
        return np.flatnonzero(is_kept), np.flatnonzero(is_near)


def _best_ranks(found: pl.DataFrame) -> Places:
    """The best rank of each row in any branch; of a row without one its place in its query."""
    ranks = [numbers_of(found[name], _UNRANKED) for name in found.columns if name.endswith("_rank")]
    best = np.min(ranks, axis=0) if ranks else np.full(len(found), _UNRANKED)
    return np.where(best == _UNRANKED, places(found) + 1, best).astype(np.int64)


def _is_by(talk: Talk, turns: Places, text: str) -> npt.NDArray[np.bool_]:
    """Which turns the one has said whom a query names, or the user, where it says I."""
    named = talk.speakers.named(text)
    found = np.zeros(len(turns), np.bool_)
    if len(named) == 1:
        found |= talk.authors[turns] == talk.talks.authors[next(iter(named))]
    elif says_i(text):
        found |= talk.is_user[turns]
    return found


def _is_then(talk: Talk, turns: Places, text: str, asked_on: date) -> npt.NDArray[np.bool_]:
    """Which turns were said in a time that a query names."""
    days, found = talk.days[turns], np.zeros(len(turns), np.bool_)
    for start, end in spans(text, asked_on, talk.years):
        found |= (days >= start) & (days < end)
    return found
