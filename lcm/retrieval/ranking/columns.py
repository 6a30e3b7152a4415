"""Evidence to columns: values for every document of a haystack, laid beside the rows of the frame."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from lcm.protocols.retrieval import Batch
from lcm.retrieval.frames import beside, columns_of
from lcm.retrieval.ranking.evidence.excerpt import Excerpt, Seen, excerpt
from lcm.retrieval.ranking.evidence.growing_talk import talk_of
from lcm.retrieval.ranking.evidence.haystack import Haystack, Numbers, Places, haystack_of
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
    ids = frame["document_id"]
    rows = {query_id: row for row, query_id in enumerate(batch.queries["query_id"].to_list())}
    found = np.zeros((len(names), len(frame)))
    first = 0
    for length, query_id in query_runs(frame):
        of_query = ids[first : first + length]
        if POOLED in frame.columns:
            seen: Seen = excerpt(talk_of(batch), of_query, radius)
        else:
            seen = haystack_of(batch.documents)
        documents, turns, is_known = _places(seen, of_query)
        if len(documents):
            for column, of_one in enumerate(evidence(seen, rows[query_id])):
                found[column, first : first + length][is_known] = of_one[
                    turns if len(of_one) == len(seen) else documents
                ]
        first += length
    return beside(frame, columns_of(names, found))


def _places(seen: Seen, ids: pl.Series) -> tuple[Places, Places, npt.NDArray[np.bool_]]:
    """The places of documents that are seen, those of their turns, and which of all they are.

    Those asked for last stay at hand: several stages look at the rows of one query.
    """
    cache, key = (seen.cache, None) if isinstance(seen, Haystack) else (seen.talk.cache, seen)
    known: _Known | None = cache.get(_Known)
    if known is None or known.excerpt is not key or not known.ids.equals(ids):
        here = seen.places_of(ids)
        is_known = here >= 0
        documents = here[is_known]
        known = cache[_Known] = _Known(key, ids, (documents, seen.turns[documents], is_known))
    return known.places


class _Known(NamedTuple):
    """Where documents stand in a haystack, or in an excerpt."""

    excerpt: Excerpt | None
    ids: pl.Series
    places: tuple[Places, Places, npt.NDArray[np.bool_]]


def speakers_of(frame: pl.DataFrame, batch: Batch) -> Speakers:
    """Who speaks in what the queries see."""
    return talk_of(batch).speakers if POOLED in frame.columns else haystack_of(batch.documents).speakers
