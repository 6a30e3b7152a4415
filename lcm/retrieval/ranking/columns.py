"""Evidence to columns: values for every document of a haystack, laid beside the rows of the frame."""

from collections.abc import Callable, Sequence

import numpy as np
import polars as pl

from lcm.protocols.retrieval import Batch
from lcm.retrieval.formula import beside
from lcm.retrieval.ranking.evidence.excerpt import Seen, excerpt
from lcm.retrieval.ranking.evidence.growing_talk import talk_of
from lcm.retrieval.ranking.evidence.haystack import Numbers, haystack_of
from lcm.retrieval.ranking.evidence.speakers import Speakers
from lcm.retrieval.ranking.ordering import query_runs
from lcm.retrieval.source.candidates import POOLED

Evidence = Callable[[Seen, int], Sequence[Numbers]]


def with_evidence(
    frame: pl.DataFrame, batch: Batch, names: Sequence[str], evidence: Evidence, radius: int = 0
) -> pl.DataFrame:
    """Add Float64 columns; a row whose document the batch does not show gets 0.

    Args:
        frame: candidates, the rows of a query together; with a column `POOLED` each query sees an excerpt of its rows.
        batch: what they were asked of.
        names: of the columns.
        evidence: gives for the query in one row of `batch.queries` one array a column, one value a turn, which all its
            passages share, or one a document.
        radius: how many turns around those of its rows it looks at in an excerpt.
    """
    ids = frame["document_id"].to_list()
    rows = {query_id: row for row, query_id in enumerate(batch.queries["query_id"].to_list())}
    found = np.zeros((len(names), len(frame)))
    first = 0
    for length, query_id in query_runs(frame):
        of_query = ids[first : first + length]
        if POOLED in frame.columns:
            seen: Seen = excerpt(talk_of(batch), of_query, radius)
        else:
            seen = haystack_of(batch.documents)
        here = seen.places_of(of_query)
        is_known = here >= 0
        if is_known.any():
            documents = here[is_known]
            turns = seen.turns[documents]
            for column, of_one in enumerate(evidence(seen, rows[query_id])):
                found[column, first : first + length][is_known] = of_one[
                    turns if len(of_one) == len(seen) else documents
                ]
        first += length
    return beside(frame, [pl.Series(name, column) for name, column in zip(names, found, strict=True)])


def speakers_of(frame: pl.DataFrame, batch: Batch) -> Speakers:
    """Who speaks in what the queries see."""
    return talk_of(batch).speakers if POOLED in frame.columns else haystack_of(batch.documents).speakers
