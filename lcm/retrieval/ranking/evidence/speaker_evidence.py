"""Who speaks: a question about somebody is mostly answered by what that person said."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from lcm.protocols.retrieval import Batch
from lcm.retrieval.ranking.columns import with_evidence
from lcm.retrieval.ranking.evidence.excerpt import Excerpt, Seen
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

        def evidence(seen: Seen, row: int) -> list[Numbers]:
            speakers, is_asker, numbers = _of_excerpt(seen) if isinstance(seen, Excerpt) else _laid(seen)
            named = seen.speakers.named(texts[row])
            asker = is_asker * float(says_i(texts[row]))
            if len(named) != 1:
                return [np.zeros(len(seen)), np.zeros(len(seen)), asker]
            (asked,) = named
            speaks = speakers == numbers[asked]
            return [speaks.astype(np.float64), ((speakers >= 0) & ~speaks).astype(np.float64), asker]

        return with_evidence(frame, batch, COLUMNS, evidence)


def says_i(text: str) -> bool:
    """Whether a query speaks of who asks."""
    return _ASKER.search(text) is not None


_Laid = tuple[Places, Numbers, Mapping[str, int]]
"""The number of each turn's author, -1 of one without; in which turns the user speaks, unnamed; and the authors'
numbers."""


def _laid(haystack: Haystack) -> _Laid:
    if SpeakerEvidence not in haystack.cache:
        numbers = {author: number for number, author in enumerate(haystack.speakers.authors)}
        speakers = np.array([-1 if author is None else numbers[author] for author in haystack.authors], np.int64)
        said_by_user = np.array([role in USERS for role in haystack.roles], np.bool_)
        haystack.cache[SpeakerEvidence] = speakers, ((speakers < 0) & said_by_user).astype(np.float64), numbers
    laid: _Laid = haystack.cache[SpeakerEvidence]
    return laid


def _of_excerpt(seen: Excerpt) -> _Laid:
    is_user = np.array([role in USERS for role in seen.talk.role_names], np.bool_)
    authors = seen.authors
    said_by_user = is_user[seen.talk.roles[seen.numbers]]
    return authors, ((authors < 0) & said_by_user).astype(np.float64), seen.talk.author_numbers
