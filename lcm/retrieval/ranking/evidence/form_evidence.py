"""How a turn is put: facts are long, rare-worded, full of names and in the first person; questions are not answers."""

import re
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import polars as pl

from lcm.protocols.retrieval import Batch
from lcm.retrieval.ranking.columns import standardised, with_evidence
from lcm.retrieval.ranking.evidence.haystack import READ_TEXTS, Haystack, Numbers
from lcm.retrieval.ranking.evidence.postings import TermIndex
from lcm.retrieval.ranking.evidence.word_evidence import asks
from lcm.retrieval.text_index.words import split_words

COLUMNS = ("form_length", "form_rarity", "form_names", "form_first_person", "form_question")
_FIRST_PERSON = frozenset(("i", "me", "my", "mine", "we", "us", "our", "ours"))
_NAME = re.compile(r"(?<=[\w,;:'\"(] )[A-Z][a-z]+")  # a capital where no sentence begins
_CAPTION = "[picture:"


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
        return with_evidence(frame, batch, COLUMNS, lambda haystack, row: _forms(haystack))


def _forms(haystack: Haystack) -> list[Numbers]:
    if FormEvidence not in haystack.cache:
        lengths, names, first = np.array([_form(content) for content in haystack.contents]).reshape(-1, 3).T
        index = TermIndex.of(haystack.stems)
        held = index.holder_counts()
        idf = np.log1p((len(haystack) - held + 0.5) / (held + 0.5))
        weights = index.counts * np.repeat(idf, held.astype(np.int64))
        rarity = np.bincount(index.holders, weights, len(haystack)) / np.maximum(index.lengths, 1.0)
        length, rare, named = map(standardised, (np.log1p(lengths), rarity, np.log1p(names)))
        is_talk = np.array([float(author is not None) for author in haystack.authors])
        haystack.cache[FormEvidence] = [one * is_talk for one in (length, rare, named, first, asks(haystack))]
    forms: list[Numbers] = haystack.cache[FormEvidence]
    return forms


@lru_cache(maxsize=READ_TEXTS)
def _form(content: str) -> tuple[float, float, float]:
    """How many words a turn has and how many names, and whether it speaks of the speaker."""
    words, runs = split_words(content)
    names = len(_NAME.findall(content.partition(_CAPTION)[0]))
    return float(len(words) + sum(map(len, runs))), float(names), float(not _FIRST_PERSON.isdisjoint(words))
