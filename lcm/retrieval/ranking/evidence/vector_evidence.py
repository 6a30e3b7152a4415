"""What vectors say: a query without names, against turns less what all turns of one speaker share."""

import logging
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from lcm.errors import LcmError
from lcm.faults import is_of_machine
from lcm.protocols.models import Embedder
from lcm.protocols.retrieval import Batch
from lcm.retrieval.ranking.columns import on_grid, standardised, with_evidence
from lcm.retrieval.ranking.evidence.haystack import Haystack, Numbers, haystack_of, highest

_log = logging.getLogger(__name__)
COLUMNS = (
    "meaning", "meaning_gap", "meaning_passage", "meaning_before", "meaning_behind", "meaning_window",
    "meaning_wide_window", "meaning_section", "meaning_asked", "meaning_session",
)  # fmt: skip
_FEW = 5  # turns of one speaker whose mean is no better known than that of all
_GAP_UNIT = 0.1  # cosine


@dataclass(frozen=True, slots=True)
class VectorEvidence:
    """Add columns: standard scores of cosines among all turns that the query may see, but for the gap.

    The query is embedded without author names; documents have the mean vector of their speaker (of their role, where
    none is named; of all, where it has fewer than 5 documents) taken away, for that is what the name before each turn
    adds. `meaning`: the cosine, of the best passage where a turn was cut into several; `meaning_gap`: by how many
    tenths it is below the query's best, <= 0; `meaning_passage`: of the document alone; `meaning_before` and
    `meaning_behind`: `meaning` of the turn before and behind; `meaning_window` and `meaning_wide_window`: of the sum of
    the vectors of one and two turns before to as many behind; `meaning_section` and `meaning_session`: the best
    `meaning` from one turn of the user up to the next, and of the session; `meaning_asked`: that of the user's turn
    that the section begins with, 0 for that turn itself. All 0 where the query cannot be embedded, which is logged and
    counted.

    Source: ours.
    """

    embedder: Embedder
    """That of the memory: documents keep their vectors."""

    makes = COLUMNS

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        asked = _asked(self.embedder, frame, batch)
        if asked is None or frame.is_empty():
            return frame.with_columns(pl.lit(0.0).alias(name) for name in COLUMNS)
        haystack = haystack_of(batch.documents)
        mean, passages, windows, wide_windows = _laid(haystack, batch)

        def evidence(haystack: Haystack, row: int) -> list[Numbers]:
            query = asked[row] - mean
            length = np.linalg.norm(query)
            query = on_grid(query / length if length else query)
            of_passages = passages @ query
            cosines = highest(haystack.turns, of_passages)
            scores = standardised(cosines)
            return [
                scores,
                (cosines - cosines.max(initial=-1.0)) / _GAP_UNIT,
                standardised(of_passages),
                haystack.beside(scores, 1),
                haystack.beside(scores, -1),
                standardised(windows @ query),
                standardised(wide_windows @ query),
                standardised(haystack.best_of(haystack.sections, scores)),
                haystack.of_asked(scores),
                standardised(haystack.best_of(haystack.sessions, scores)),
            ]

        return with_evidence(frame, batch, COLUMNS, evidence)


def _asked(embedder: Embedder, frame: pl.DataFrame, batch: Batch) -> dict[int, Numbers] | None:
    """Row of `batch.queries` -> the embedded query without names; None where that fails."""
    haystack = haystack_of(batch.documents)
    wanted = set(frame["query_id"].unique())
    rows = [row for row, query_id in enumerate(batch.queries["query_id"]) if query_id in wanted]
    texts = batch.queries["text"]
    try:
        vectors = embedder.embed([haystack.without_names(texts[row]) for row in rows], "query")
    except LcmError as error:
        if is_of_machine(error):
            raise
        _log.warning("queries without names could not be embedded, other evidence ranks alone: %s", error)
        batch.incidents["vector evidence failed"] += len(rows)
        return None
    return dict(zip(rows, vectors.astype(np.float64), strict=True))


def _laid(haystack: Haystack, batch: Batch) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """The mean vector; and unit vectors, means taken away, of each document, and of the windows around each turn."""
    vectors = batch.document_vectors(list(haystack.positions)).astype(np.float64)
    mean = vectors.mean(axis=0)
    own = vectors - mean
    speakers = [author or f"\n{role}" for author, role in zip(haystack.authors, haystack.roles, strict=True)]
    numbers = {speaker: number for number, speaker in enumerate(dict.fromkeys(speakers))}
    owners = np.array([numbers[speaker] for speaker in speakers], dtype=np.int64)[haystack.turns]
    for number in range(len(numbers)):
        said = np.flatnonzero(owners == number)
        if len(said) >= _FEW:
            own[said] -= own[said].mean(axis=0)
    passages = _unit(own)
    turns = np.zeros((len(haystack), passages.shape[1]))
    np.add.at(turns, haystack.turns, passages)
    turns = turns if len(turns) == len(passages) else _unit(turns)
    near = turns + haystack.beside(turns, 1) + haystack.beside(turns, -1)
    wide = near + haystack.beside(turns, 2) + haystack.beside(turns, -2)
    return mean, passages, _unit(near), _unit(wide)


def _unit(rows: npt.NDArray[np.float64]) -> Numbers:
    """Rows of unit length, on the grid; what is next to nothing becomes nothing."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return on_grid(np.where(lengths > 1e-6, rows / np.maximum(lengths, 1e-6), 0.0))
