"""What vectors say: a query without names, against turns less what all turns of one speaker share."""

import logging
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from lcm.errors import LcmError
from lcm.faults import is_of_machine
from lcm.protocols.models import Embedder, Vectors
from lcm.protocols.retrieval import Batch, VectorIndex
from lcm.retrieval.ranking.columns import Evidence, speakers_of, with_evidence
from lcm.retrieval.ranking.evidence.excerpt import Excerpt, Seen
from lcm.retrieval.ranking.evidence.haystack import Numbers, Places, highest
from lcm.retrieval.ranking.evidence.laid_vectors import LaidVectors
from lcm.retrieval.ranking.ordering import query_runs
from lcm.retrieval.ranking.vector_rows import dot_products, on_grid

_log = logging.getLogger(__name__)
COLUMNS = (
    "meaning_passage", "meaning_before", "meaning_behind", "meaning_window", "meaning_wide_window", "meaning_section",
    "meaning_session",
)  # fmt: skip
_RADIUS = 2
"""Of the wide window."""


@dataclass(frozen=True, slots=True)
class VectorEvidence:
    """Add columns: standard scores of cosines among all turns that the query may see.

    The query is embedded without author names; documents have the mean vector of their speaker (of their role, where
    none is named; of all, where it has fewer than 5 documents) taken away, for that is what the name before each turn
    adds. `meaning_passage`: of the document alone, where a turn was cut into several; `meaning_before` and
    `meaning_behind`: of the turn before and behind, which is as near as its best passage; `meaning_window` and
    `meaning_wide_window`: of the sum of the vectors of one and two turns before to as many behind; `meaning_section`
    and `meaning_session`: the nearest turn from one of the user's up to the next, and of the session. All 0 where the
    query cannot be embedded, which is logged and counted.

    Source: ours.
    """

    embedder: Embedder
    """That of the memory: documents keep their vectors."""

    makes = COLUMNS

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        names = dict(zip(COLUMNS, COLUMNS, strict=True))
        return with_cosines(frame, batch, names, self.embedder, lambda seen: _of_memory(seen, batch))


def with_cosines(
    frame: pl.DataFrame,
    batch: Batch,
    names: Mapping[str, str],
    embedder: Embedder,
    laid: Callable[[Seen], LaidVectors],
) -> pl.DataFrame:
    """Add some of what `VectorEvidence` makes, under other names.

    Args:
        frame: candidates, the rows of a query together.
        batch: what they were asked of.
        names: a column of `COLUMNS` -> what it is called.
        embedder: of the queries.
        laid: gives the vectors of what a query sees, by it.
    """
    try:
        asked = _asked(embedder, frame, batch)
        return with_evidence(frame, batch, list(names.values()), _evidence(asked, names, laid), _RADIUS)
    except LcmError as error:
        if is_of_machine(error):
            raise
        _log.warning("queries without names could not be embedded, other evidence ranks alone: %s", error)
        batch.incidents["vector evidence failed"] += frame["query_id"].n_unique()
        return frame.with_columns(pl.lit(0.0).alias(name) for name in names.values())


def _evidence(asked: Mapping[int, Numbers], names: Mapping[str, str], laid: Callable[[Seen], LaidVectors]) -> Evidence:
    def evidence(seen: Seen, row: int) -> list[Numbers]:
        known = laid(seen)
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
            "meaning_section": seen.standardised(seen.best_of(seen.sections, scores)),
            "meaning_session": seen.standardised(seen.best_of(seen.sessions, scores)),
        }
        return [found[column] for column in names]

    return evidence


def _of_memory(seen: Seen, batch: Batch) -> LaidVectors:
    """Laid out once a haystack, for the index that was asked last: another may hold other vectors."""
    ids = batch.documents["document_id"]
    if isinstance(seen, Excerpt):

        def vectors_of(numbers: Places) -> Vectors:
            return batch.document_vectors(ids[numbers].to_list())

        return LaidVectors.of_excerpt(seen, VectorEvidence, vectors_of)
    known: tuple[weakref.ref[VectorIndex], LaidVectors] | None = seen.cache.get(VectorEvidence)
    if known is None or known[0]() is not batch.vector_index:
        known = weakref.ref(batch.vector_index), LaidVectors.of(seen, batch.document_vectors(ids.to_list()))
        seen.cache[VectorEvidence] = known
    return known[1]


def _asked(embedder: Embedder, frame: pl.DataFrame, batch: Batch) -> dict[int, Numbers]:
    """Row of `batch.queries` -> the embedded query without names."""
    speakers = speakers_of(frame, batch)
    wanted = {query_id for _, query_id in query_runs(frame)}
    rows = [row for row, query_id in enumerate(batch.queries["query_id"]) if query_id in wanted]
    texts = batch.queries["text"]
    vectors = embedder.embed([speakers.without_names(texts[row]) for row in rows], "query")
    return dict(zip(rows, vectors.astype(np.float64), strict=True))
