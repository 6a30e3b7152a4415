"""How a turn is put: facts are long, rare-worded, full of names and in the first person; questions are not answers."""

import re
from collections import Counter
from dataclasses import dataclass

import numpy as np
import polars as pl

from lcm.protocols.retrieval import Batch
from lcm.retrieval.ranking.columns import standardised, with_evidence
from lcm.retrieval.ranking.evidence.haystack import Haystack, Numbers
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
        said = [content.partition(_CAPTION)[0] for content in haystack.contents]
        lengths = [len(words) + sum(map(len, runs)) for words, runs in map(split_words, haystack.contents)]
        holders = Counter(stem for stems in haystack.stems for stem in set(stems))
        count = len(haystack)
        idf = {stem: np.log1p((count - n + 0.5) / (n + 0.5)) for stem, n in holders.items()}
        rarity = [np.mean([idf[stem] for stem in stems]) if stems else 0.0 for stems in haystack.stems]
        names = [len(_NAME.findall(text)) for text in said]
        first = [float(not _FIRST_PERSON.isdisjoint(split_words(content)[0])) for content in haystack.contents]
        length = standardised(np.log1p(np.array(lengths, dtype=np.float64)))
        rare = standardised(np.array(rarity, dtype=np.float64))
        named = standardised(np.log1p(np.array(names, dtype=np.float64)))
        question = asks(haystack)
        is_talk = np.array([float(author is not None) for author in haystack.authors])
        haystack.cache[FormEvidence] = [of_all * is_talk for of_all in (length, rare, named, np.array(first), question)]
    forms: list[Numbers] = haystack.cache[FormEvidence]
    return forms
