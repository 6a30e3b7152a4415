"""Who speaks: a question about somebody is mostly answered by what that person said."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from lcm.protocols.retrieval import Batch
from lcm.retrieval.ranking.columns import with_evidence
from lcm.retrieval.ranking.evidence.haystack import Haystack, Numbers

COLUMNS = ("asked_speaks", "other_speaks")


@dataclass(frozen=True, slots=True)
class SpeakerEvidence:
    """Add columns of 0 and 1, where a query names exactly one of those who speak: `asked_speaks` of documents that
    begin with that name, `other_speaks` of those that begin with another. A query that names nobody, or several,
    leaves both 0; so do documents that begin with no name.

    Source: ours.
    """

    makes = COLUMNS

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        texts = batch.queries["text"]

        def evidence(haystack: Haystack, row: int) -> list[Numbers]:
            named = haystack.named(texts[row])
            if len(named) != 1:
                return [np.zeros(len(haystack)), np.zeros(len(haystack))]
            (asked,) = named
            return [
                np.array([float(author == asked) for author in haystack.authors]),
                np.array([float(author is not None and author != asked) for author in haystack.authors]),
            ]

        return with_evidence(frame, batch, COLUMNS, evidence)
