"""How a turn is put: facts are long, rare-worded, full of names and in the first person; questions are not answers."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from lcm.protocols.retrieval import Batch
from lcm.retrieval.ranking.columns import with_evidence
from lcm.retrieval.ranking.evidence.excerpt import Excerpt, Seen
from lcm.retrieval.ranking.evidence.haystack import Haystack, Numbers
from lcm.retrieval.ranking.evidence.postings import stem_index
from lcm.retrieval.ranking.evidence.text_facts import asks, form_of

COLUMNS = ("form_length", "form_rarity", "form_names", "form_first_person", "form_question")


@dataclass(frozen=True, slots=True)
class FormEvidence:
    """Add columns that do not depend on the query.

    They tell of a talk among named people, and are 0 for documents that begin with no name: what an assistant or a tool
    says is long for other reasons. Standard scores: `form_length`, of ln(1 + words); `form_rarity`, of the mean idf of
    its stems; `form_names`, of ln(1 + words that begin with a capital letter inside a sentence). 0 or 1:
    `form_first_person`, whether it speaks of the speaker; `form_question`, whether its first line ends in a question
    mark.

    Source: ours.
    """

    makes = COLUMNS

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        return with_evidence(frame, batch, COLUMNS, lambda seen, row: _forms(seen))


def _forms(seen: Seen) -> list[Numbers]:
    """One array a column."""
    if isinstance(seen, Excerpt):
        return _standardised(seen, *_of_excerpt(seen))
    if FormEvidence not in seen.cache:
        seen.cache[FormEvidence] = _standardised(seen, *_of_haystack(seen))
    forms: list[Numbers] = seen.cache[FormEvidence]
    return forms


def _standardised(seen: Seen, facts: Numbers, rarity: Numbers, is_talk: Numbers) -> list[Numbers]:
    """
    Args:
        facts: words, names, and whether it speaks of the speaker and asks: a row each.
        rarity: the mean idf of the stems.
        is_talk: whether a named person speaks.
    """
    lengths, names, first_person, asks_back = facts
    scaled = [seen.standardised(one) for one in (np.log1p(lengths), rarity, np.log1p(names))]
    return [one * is_talk for one in (*scaled, first_person, asks_back)]


def _of_haystack(haystack: Haystack) -> tuple[Numbers, Numbers, Numbers]:
    facts = np.array([(*form_of(content), asks(content)) for content in haystack.contents]).reshape(-1, 4).T
    index = stem_index(haystack, of_turns=True)
    held = index.holder_counts()
    weights = index.counts * np.repeat(_idf(held, len(haystack)), held.astype(np.int64))
    rarity = np.bincount(index.holders, weights, len(haystack)) / np.maximum(index.lengths, 1.0)
    return facts, rarity, np.array([float(author is not None) for author in haystack.authors])


def _of_excerpt(seen: Excerpt) -> tuple[Numbers, Numbers, Numbers]:
    talk = seen.talk
    stems, sizes = talk.stems.of(seen.documents)
    turns, is_name = np.repeat(seen.turns, sizes), np.isin(stems, talk.name_stems)
    stems, turns = stems[~is_name], turns[~is_name]
    weights = _idf(talk.stem_turns[stems].astype(np.float64), len(talk))
    rarity = np.bincount(turns, weights, len(seen)) / np.maximum(np.bincount(turns, minlength=len(seen)), 1)
    facts = talk.facts[seen.numbers].astype(np.float64)
    return facts[:, :4].T, rarity, (seen.authors >= 0).astype(np.float64)


def _idf(held: Numbers, count: int) -> Numbers:
    found: Numbers = np.log1p((count - held + 0.5) / (held + 0.5))
    return found
