"""Who speaks: a question about somebody is mostly answered by what that person said."""

import re
from dataclasses import dataclass

import numpy as np
import polars as pl

from lcm.protocols.retrieval import Batch
from lcm.retrieval.ranking.columns import with_evidence
from lcm.retrieval.ranking.evidence.haystack import USERS, Haystack, Numbers, Places

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

        def evidence(haystack: Haystack, row: int) -> list[Numbers]:
            speakers, is_asker, numbers = _laid(haystack)
            named = haystack.named(texts[row])
            asker = is_asker * float(_ASKER.search(texts[row]) is not None)
            if len(named) != 1:
                return [np.zeros(len(haystack)), np.zeros(len(haystack)), asker]
            (asked,) = named
            speaks = speakers == numbers[asked]
            return [speaks.astype(np.float64), ((speakers >= 0) & ~speaks).astype(np.float64), asker]

        return with_evidence(frame, batch, COLUMNS, evidence)


def _laid(haystack: Haystack) -> tuple[Places, Numbers, dict[str, int]]:
    """The number of each turn's author, -1 of one without; in which turns the user speaks, unnamed; and the authors'
    numbers."""
    if SpeakerEvidence not in haystack.cache:
        numbers = {author: number for number, author in enumerate(haystack.speakers)}
        speakers = np.array([-1 if author is None else numbers[author] for author in haystack.authors], np.int64)
        said_by_user = np.array([role in USERS for role in haystack.roles], np.bool_)
        haystack.cache[SpeakerEvidence] = speakers, ((speakers < 0) & said_by_user).astype(np.float64), numbers
    laid: tuple[Places, Numbers, dict[str, int]] = haystack.cache[SpeakerEvidence]
    return laid
