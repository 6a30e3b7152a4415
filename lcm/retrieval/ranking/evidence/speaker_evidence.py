"""Who speaks: a question about somebody is mostly answered by what that person said."""

import re
from dataclasses import dataclass

import numpy as np
import polars as pl

from lcm.protocols.retrieval import Batch
from lcm.retrieval.ranking.evidence.kept_rows import Numbers
from lcm.retrieval.ranking.evidence.talk import Excerpt, with_evidence

COLUMNS = ("asked_speaks", "other_speaks", "asker_speaks")
_ASKER = re.compile(
    r"\b(?:I|[Ii]ch|[Jj]e|[Jj](?=['’])|[Yy]o|[Ee]u|[Яя]|[Мм]не|[Мм]еня)\b|[我私僕俺]|わたし|ぼく|내가|제가|나는|저는"
)


@dataclass(frozen=True, slots=True)
class SpeakerEvidence:
    """Add columns of 0 and 1. Where a query names exactly one of those who speak: `asked_speaks` of documents that
    begin with that name, `other_speaks` of those that begin with another. A query that names nobody, or several,
    leaves both 0; so do documents that begin with no name. Of these, where a query says I (in English, German, French,
    Spanish, Portuguese, Russian, Chinese, Japanese or Korean), `asker_speaks` tells which the user speaks in.

    Source: ours.
    """

    makes = COLUMNS

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        texts = batch.queries["text"]

        def evidence(seen: Excerpt, row: int) -> list[Numbers]:
            talk, authors = seen.talk, seen.talk.authors[seen.numbers]
            named = talk.speakers.named(texts[row])
            asker = ((authors < 0) & talk.is_user[seen.numbers] & says_i(texts[row])).astype(np.float64)
            if len(named) != 1:
                return [np.zeros(len(seen)), np.zeros(len(seen)), asker]
            (asked,) = named
            speaks = authors == talk.talks.authors[asked]
            return [speaks.astype(np.float64), ((authors >= 0) & ~speaks).astype(np.float64), asker]

        return with_evidence(frame, batch, COLUMNS, evidence)


def says_i(text: str) -> bool:
    """Whether a query speaks of who asks."""
    return _ASKER.search(text) is not None
