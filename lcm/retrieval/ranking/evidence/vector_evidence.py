"""What vectors say: a query without names, against turns less what all turns of one speaker share."""

import logging
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl
from scipy.sparse import csr_array

from lcm.errors import LcmError
from lcm.faults import is_of_machine
from lcm.protocols.models import Embedder, Vectors
from lcm.protocols.retrieval import Batch
from lcm.retrieval.frames import query_runs
from lcm.retrieval.ranking.evidence.kept_rows import (
    NOTHING,
    BlockSums,
    KeptRows,
    Numbers,
    Places,
    Rows,
    dot_products,
    on_grid,
    units,
)
from lcm.retrieval.ranking.evidence.talk import Excerpt, Talk, highest, talk_of, with_evidence

_log = logging.getLogger(__name__)
COLUMNS = (
    "meaning_passage", "meaning_before", "meaning_behind", "meaning_window", "meaning_wide_window", "meaning_section",
)  # fmt: skip
FEW = 5
"""Documents of one speaker whose mean is no better known than that of all, if there are no more."""
_RADIUS = 2
"""Of the wide window."""
VectorsOf = Callable[[Places], Vectors]
"""The vectors of some documents, by their places in a talk."""


@dataclass(frozen=True, slots=True)
class VectorEvidence:
    """Add columns: standard scores of cosines among all turns that the query may see.

    The query is embedded without author names; documents have the mean vector of their speaker (of their role, where
    none is named; of all, where it has fewer than 5 documents) taken away, for that is what the name before each turn
    adds. `meaning_passage`: of the document alone, where a turn was cut into several; `meaning_before` and
    `meaning_behind`: of the turn before and behind, which is as near as its best passage; `meaning_window` and
    `meaning_wide_window`: of the sum of the vectors of one and two turns before to as many behind; `meaning_section`:
    the nearest turn from one of the user's up to the next. All 0 where the query cannot be embedded, which is logged
    and counted.

    Source: ours.
    """

    embedder: Embedder
    """That of the memory: documents keep their vectors."""

    makes = COLUMNS

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        names, ids = dict(zip(COLUMNS, COLUMNS, strict=True)), batch.documents["document_id"]

        def vectors_of(documents: Places) -> Vectors:
            return batch.document_vectors(ids[pl.Series(documents.astype(np.uint32))].to_list())

        return with_cosines(frame, batch, names, self.embedder, VectorEvidence, vectors_of)


def with_cosines(
    frame: pl.DataFrame,
    batch: Batch,
    names: Mapping[str, str],
    embedder: Embedder,
    key: Hashable,
    vectors_of: VectorsOf,
) -> pl.DataFrame:
    """Add some of what `VectorEvidence` makes, and `meaning_session`, the nearest turn of the session.

    Args:
        frame: candidates, the rows of a query together.
        batch: what they were asked of.
        names: one of these -> what it is called.
        embedder: of the queries.
        key: tells the vectors of the documents from others.
        vectors_of: gives them.
    """
    talk = talk_of(batch)

    def evidence(seen: Excerpt, row: int) -> list[Numbers]:
        known = _laid(talk, key, vectors_of).of(seen, vectors_of)
        query = asked[row] - known.mean
        length = np.linalg.norm(query)
        query = on_grid(query / length if length else query)
        of_passages = dot_products(known.passages, query)
        scores = seen.standardised(highest(seen.turns, of_passages))
        of_turns = known.of_turns(seen, of_passages)
        near = of_turns + seen.beside(of_turns, 1) + seen.beside(of_turns, -1)
        wide = near + seen.beside(of_turns, 2) + seen.beside(of_turns, -2)
        found = {
            "meaning_passage": seen.standardised(of_passages),
            "meaning_before": seen.beside(scores, 1),
            "meaning_behind": seen.beside(scores, -1),
            "meaning_window": seen.standardised(near * known.per_window),
            "meaning_wide_window": seen.standardised(wide * known.per_wide_window),
            "meaning_section": seen.standardised(highest(seen.sections, scores)[seen.sections]),
            "meaning_session": seen.standardised(highest(seen.sessions, scores)[seen.sessions]),
        }
        return [found[column] for column in names]

    try:
        asked = _asked(embedder, frame, batch, talk)
        return with_evidence(frame, batch, list(names.values()), evidence, _RADIUS)
    except LcmError as error:
        if is_of_machine(error):
            raise
        _log.warning("queries without names could not be embedded, other evidence ranks alone: %s", error)
        batch.incidents["vector evidence failed"] += frame["query_id"].n_unique()
        return frame.with_columns(pl.lit(0.0).alias(name) for name in names.values())


def _asked(embedder: Embedder, frame: pl.DataFrame, batch: Batch, talk: Talk) -> dict[int, Numbers]:
    """Row of `batch.queries` -> the embedded query without names."""
    wanted = {query_id for _, query_id in query_runs(frame)}
    rows = [row for row, query_id in enumerate(batch.queries["query_id"]) if query_id in wanted]
    texts = batch.queries["text"]
    vectors = embedder.embed([talk.speakers.without_names(texts[row]) for row in rows], "query")
    return dict(zip(rows, vectors.astype(np.float64), strict=True))


class ExcerptVectors(NamedTuple):
    """The vectors of an excerpt's documents, less what all of one speaker share; and what their sums are divided by."""

    mean: Numbers
    """Of all documents of the talk, which is taken from a query too."""
    passages: Rows
    """Of each document, of unit length or nothing."""
    per_turn: Numbers
    """1 / the length of the sum of each turn's passages; 0 where there is none."""
    per_window: Numbers
    """Likewise of the sum of the turns from one before to one behind, of the turns that were asked for."""
    per_wide_window: Numbers
    """From two before to two behind."""

    def of_turns(self, seen: Excerpt, of_passages: Numbers) -> Numbers:
        """Cosines of turns from those of their passages."""
        if not seen.talk.is_cut:
            return of_passages
        return np.bincount(seen.turns, weights=of_passages, minlength=len(seen)) * self.per_turn


class LaidVectors:
    """The vectors of a talk, laid out for cosines of its passages, turns and windows with a query: one product each.

    What no query has looked at is not laid out.
    """

    def __init__(self, talk: Talk, sums: BlockSums, vectors_of: VectorsOf) -> None:
        """
        Args:
            sums: of this memory's vectors.
        """
        self._talk = talk
        centres = _centres(talk, sums, vectors_of)
        self._mean, self._centres, self._owners = centres[-1], centres.astype(np.float32), _owners(talk)
        self._passages = KeptRows(centres.shape[1], len(talk.numbers))
        self._per = np.full((3, len(talk)), np.nan)
        """As `ExcerptVectors.per_turn`, `per_window` and `per_wide_window`."""

    def of(self, seen: Excerpt, vectors_of: VectorsOf) -> ExcerptVectors:
        """The vectors of an excerpt whose radius is at least that of the wide window."""
        with self._talk.talks.lock:
            passages, wanted = self._passages_of(seen, vectors_of), seen.numbers[seen.asked]
            missing = wanted[np.isnan(self._per[2, wanted])]
            if len(missing):
                part = seen if len(missing) == len(wanted) else self._talk.excerpt_of(missing, _RADIUS)
                self._lay_out(part, passages if part is seen else self._passages_of(part, vectors_of))
            windows = np.zeros((2, len(seen)))
            windows[:, seen.asked] = self._per[1:, wanted]
            return ExcerptVectors(self._mean, passages, self._per[0, seen.numbers], *windows)

    def _passages_of(self, seen: Excerpt, vectors_of: VectorsOf) -> Rows:
        def made(documents: Places) -> Rows:
            return units(vectors_of(documents), self._centres, self._owners[documents])

        return self._passages.of(seen.documents, made)

    def _lay_out(self, seen: Excerpt, passages: Rows) -> None:
        """Work out what the sums around the turns that were asked for are divided by."""
        turns, numbers = passages, seen.numbers
        if self._talk.is_cut:
            ones, own = np.ones(len(passages), np.float32), (seen.turns, np.arange(len(passages)))
            turns = csr_array((ones, own), (len(seen), len(passages))) @ passages
            self._per[0, numbers] = _one_over_lengths(turns)
            turns *= self._per[0, numbers, np.newaxis].astype(np.float32)
        else:
            self._per[0, numbers] = 1.0
        near = turns[seen.asked]
        for radius in (1, _RADIUS):
            for distance in (radius, -radius):
                lenders = seen.near(distance)[seen.asked]
                is_there = lenders >= 0
                near[is_there] += turns[lenders[is_there]]
            self._per[radius, numbers[seen.asked]] = _one_over_lengths(near)


def _laid(talk: Talk, key: Hashable, vectors_of: VectorsOf) -> LaidVectors:
    """Made once a talk."""
    key = LaidVectors, key
    if key not in talk.cache:
        with talk.talks.lock:
            talk.cache[key] = LaidVectors(talk, talk.talks.kept.setdefault(key, BlockSums()), vectors_of)
    laid: LaidVectors = talk.cache[key]
    return laid


def _owners(talk: Talk) -> Places:
    """Who has said each document: twice the number of the author; where none is named, that of the role and one."""
    authors = talk.authors[talk.turns]
    return np.where(authors >= 0, 2 * authors, 2 * talk.roles[talk.turns] + 1)


def _centres(talk: Talk, sums: BlockSums, vectors_of: VectorsOf) -> Numbers:
    """The mean vectors of those who speak, by `_owners`, that of all where one has few documents; behind the last, the
    mean of all."""
    place_of = np.full(len(talk.talks.documents), -1)
    place_of[talk.numbers] = np.arange(len(talk.numbers))
    owners = _owners(talk)
    found = sums.of(talk.numbers, owners, lambda numbers: vectors_of(place_of[numbers]))
    counts, totals = zip(*found.values(), strict=True)
    mean = np.sum(totals, axis=0) / sum(counts)
    centres = np.tile(mean, (int(owners.max()) + 2, 1))
    for owner, (count, total) in found.items():
        if count >= FEW:
            centres[owner] = total / count
    return centres


def _one_over_lengths(rows: Rows) -> Numbers:
    lengths = np.linalg.norm(rows, axis=1).astype(np.float64)
    return np.where(lengths > NOTHING, 1.0 / np.maximum(lengths, NOTHING), 0.0)
