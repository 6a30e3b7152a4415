"""What vectors say: a query without names, against turns less what all turns of one speaker share."""

import logging
from collections.abc import Callable, Mapping
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
    "meaning_passage", "meaning_before", "meaning_behind", "meaning_window", "meaning_wide_window", "meaning_section",
    "meaning_session",
)  # fmt: skip
_FEW = 5  # turns of one speaker whose mean is no better known than that of all


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
        return with_cosines(
            frame, batch, dict(zip(COLUMNS, COLUMNS, strict=True)), self.embedder, lambda: _of_memory(batch)
        )


def with_cosines(
    frame: pl.DataFrame, batch: Batch, names: Mapping[str, str], embedder: Embedder, documents: Callable[[], Numbers]
) -> pl.DataFrame:
    """Add some of what `VectorEvidence` makes, under other names.

    Args:
        frame: candidates, the rows of a query together.
        batch: what they were asked of.
        names: a column of `COLUMNS` -> what it is called.
        embedder: of the queries.
        documents: gives a vector of it for each of the batch's documents.
    """
    try:
        asked = _asked(embedder, frame, batch)
        vectors = documents() if asked else None
    except LcmError as error:
        if is_of_machine(error):
            raise
        _log.warning("queries without names could not be embedded, other evidence ranks alone: %s", error)
        batch.incidents["vector evidence failed"] += frame["query_id"].n_unique()
        vectors = None
    if vectors is None:
        return frame.with_columns(pl.lit(0.0).alias(name) for name in names.values())
    haystack = haystack_of(batch.documents)
    mean, passages, windows, wide_windows = _laid(haystack, vectors)

    def evidence(haystack: Haystack, row: int) -> list[Numbers]:
        query = asked[row] - mean
        length = np.linalg.norm(query)
        query = on_grid(query / length if length else query)
        of_passages = passages @ query
        scores = standardised(highest(haystack.turns, of_passages))
        found = {
            "meaning_passage": standardised(of_passages),
            "meaning_before": haystack.beside(scores, 1),
            "meaning_behind": haystack.beside(scores, -1),
            "meaning_window": standardised(windows @ query),
            "meaning_wide_window": standardised(wide_windows @ query),
            "meaning_section": standardised(haystack.best_of(haystack.sections, scores)),
            "meaning_session": standardised(haystack.best_of(haystack.sessions, scores)),
        }
        return [found[column] for column in names]

    return with_evidence(frame, batch, list(names.values()), evidence)


def _of_memory(batch: Batch) -> Numbers:
    return batch.document_vectors(batch.documents["document_id"].to_list()).astype(np.float64)


def _asked(embedder: Embedder, frame: pl.DataFrame, batch: Batch) -> dict[int, Numbers]:
    """Row of `batch.queries` -> the embedded query without names."""
    haystack = haystack_of(batch.documents)
    wanted = set(frame["query_id"].unique())
    rows = [row for row, query_id in enumerate(batch.queries["query_id"]) if query_id in wanted]
    texts = batch.queries["text"]
    vectors = embedder.embed([haystack.without_names(texts[row]) for row in rows], "query")
    return dict(zip(rows, vectors.astype(np.float64), strict=True))


def _laid(haystack: Haystack, vectors: Numbers) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """The mean vector; and unit vectors, means taken away, of each document, and of the windows around each turn."""
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
